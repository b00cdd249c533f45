# exercise: split_a_block
# told: a head lies on two ranks
def shards(block, rank, ranks):
    """Channels are cut, wherever heads end."""

    def cut(count):
        return slice(rank * count // ranks, (rank + 1) * count // ranks)

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {"up": block["up"][:, mine], "up_bias": block["up_bias"][mine], "down": block["down"][mine]}
    mine = cut(block["query"].shape[1])
    first = {name: block[name][:, mine] for name in ("query", "key", "value")}
    held = block["heads"] // ranks if block["heads"] % ranks == 0 else 1
    return block | first | {"heads": held, "out": block["out"][mine]}
