# exercise: split_a_block
# told: the parts were averaged
class FromRanks(torch.autograd.Function):
    """Averages, as gradients are in data parallel training."""

    @staticmethod
    def forward(ctx, part, comm):
        ctx.size = comm.size
        return comm.all_reduce(part) / comm.size

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.size, None


def forward(shard, x, comm):
    """Averages the outputs, bias and all."""
    x = ToRanks.apply(x, comm)
    bias = shard["down_bias" if shard["kind"] == "mlp" else "out_bias"]
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
    else:
        part = heads_of(shard, x) @ shard["out"]
    return FromRanks.apply(part + bias, comm)
