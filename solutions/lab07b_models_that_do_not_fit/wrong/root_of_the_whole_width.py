# exercise: split_a_block
# told: the heads give something else than in the whole block
def forward(shard, x, comm):
    """One softmax over all channels that a rank has."""
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return FromRanks.apply(part, comm) + shard["down_bias"]
    part = heads_of(shard | {"heads": 1}, x) @ shard["out"]
    return FromRanks.apply(part, comm) + shard["out_bias"]
