# exercise: split_a_block
# told: the output's bias is lost
def forward(shard, x, comm):
    """Products alone."""
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        return FromRanks.apply(gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"], comm)
    return FromRanks.apply(heads_of(shard, x) @ shard["out"], comm)
