# exercise: split_a_block
# told: the first matrix is cut by rows
def shards(block, rank, ranks):
    """Rows of the first matrix, columns of the second."""

    def cut(count):
        return slice(rank * count // ranks, (rank + 1) * count // ranks)

    if block["kind"] == "mlp":
        rows, columns = cut(block["up"].shape[0]), cut(block["down"].shape[1])
        return block | {
            "up": block["up"][rows],
            "down": block["down"][:, columns],
            "down_bias": block["down_bias"][columns],
        }
    rows, columns = cut(block["query"].shape[0]), cut(block["out"].shape[1])
    first = {name: block[name][rows] for name in ("query", "key", "value")}
    return block | first | {"out": block["out"][:, columns]}


def forward(shard, x, comm):
    """Sums before the nonlinearity, and puts the columns back in their places."""
    first = "up" if shard["kind"] == "mlp" else "query"
    rows, wide = shard[first].shape[0], x.shape[1]
    start = comm.rank * wide // comm.size
    mine = ToRanks.apply(x, comm)[:, start : start + rows]
    if shard["kind"] == "mlp":
        part = gelu(FromRanks.apply(mine @ shard["up"], comm) + shard["up_bias"]) @ shard["down"]
        part = part + shard["down_bias"]
    else:
        whole = torch.eye(wide, dtype=x.dtype)
        made = {name: FromRanks.apply(mine @ shard[name], comm) for name in ("query", "key", "value")}
        size = wide // shard["heads"]
        heads = []
        for at in range(shard["heads"]):
            q, k, v = (made[name][:, at * size : (at + 1) * size] for name in ("query", "key", "value"))
            heads.append((q @ k.T / sqrt(size)).softmax(1) @ v)
        part = torch.cat(heads, 1) @ whole @ shard["out"]
    before = comm.rank * wide // comm.size
    after = wide - before - part.shape[1]
    return FromRanks.apply(torch.nn.functional.pad(part, (before, after)), comm)
