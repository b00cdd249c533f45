# exercise: split_a_block
# told: a rank has less than its share
def shards(block, rank, ranks):
    """The first ranks have the quotient rounded up, the last one what is left."""

    def cut(count):
        size = -(-count // ranks)
        return slice(min(rank * size, count), min((rank + 1) * size, count))

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {"up": block["up"][:, mine], "up_bias": block["up_bias"][mine], "down": block["down"][mine]}
    heads, size = block["heads"], block["query"].shape[1] // block["heads"]
    mine = slice(rank * heads // ranks, (rank + 1) * heads // ranks)
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
