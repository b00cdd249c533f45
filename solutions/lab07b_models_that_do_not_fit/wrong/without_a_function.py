# exercise: split_a_block
# told: no gradient comes through the sum
def forward(shard, x, comm):
    """Sums with the call itself."""
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return comm.all_reduce(part.detach())
    return comm.all_reduce((heads_of(shard, x) @ shard["out"]).detach())
