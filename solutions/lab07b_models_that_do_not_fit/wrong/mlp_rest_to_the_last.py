# exercise: split_a_block
# told: the parts are not as equal as they can be
# like: last_rank_takes_the_rest.py
def shards(block, rank, ranks):
    """Hidden channels that do not divide go to the last rank; heads are shared fairly."""
    if block["kind"] == "mlp":
        size = block["up"].shape[1] // ranks
        mine = slice(rank * size, block["up"].shape[1] if rank == ranks - 1 else (rank + 1) * size)
        return block | {"up": block["up"][:, mine], "up_bias": block["up_bias"][mine], "down": block["down"][mine]}
    heads, size = block["heads"], block["query"].shape[1] // block["heads"]
    mine = slice(rank * heads // ranks, (rank + 1) * heads // ranks)
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
