# exercise: split_a_block
# told: columns are lost, or held twice
def shards(block, rank, ranks):
    """Parts of a whole number of columns, and the rest is forgotten."""
    if block["kind"] == "mlp":
        size = block["up"].shape[1] // ranks
        mine = slice(rank * size, (rank + 1) * size)
        return block | {"up": block["up"][:, mine], "up_bias": block["up_bias"][mine], "down": block["down"][mine]}
    count, size = block["heads"] // ranks, block["query"].shape[1] // block["heads"]
    mine = slice(rank * count * size, (rank + 1) * count * size)
    first = {name: block[name][:, mine] for name in ("query", "key", "value")}
    return block | first | {"heads": count, "out": block["out"][mine]}
