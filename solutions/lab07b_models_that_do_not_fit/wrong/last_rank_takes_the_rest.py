# exercise: split_a_block
# told: the parts are not as equal as they can be
def shards(block, rank, ranks):
    """Whatever does not divide goes to the last rank."""

    def cut(count):
        size = count // ranks
        return slice(rank * size, count if rank == ranks - 1 else (rank + 1) * size)

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {"up": block["up"][:, mine], "up_bias": block["up_bias"][mine], "down": block["down"][mine]}
    mine, size = cut(block["heads"]), block["query"].shape[1] // block["heads"]
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
