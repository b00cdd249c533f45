# exercise: split_a_block
# told: one sum backward is enough
def forward(shard, x, comm):
    """x enters once for each matrix."""
    if shard["kind"] == "mlp":
        x = ToRanks.apply(x, comm)
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return FromRanks.apply(part, comm) + shard["down_bias"]
    entered = {name: ToRanks.apply(x, comm) @ shard[name] for name in ("query", "key", "value")}
    query, key, value = (part.unflatten(1, (shard["heads"], -1)).transpose(0, 1) for part in entered.values())
    scores = query @ key.transpose(1, 2) / sqrt(query.shape[2])
    heads = (scores.softmax(2) @ value).transpose(0, 1).flatten(1)
    return FromRanks.apply(heads @ shard["out"], comm) + shard["out_bias"]
