# exercise: split_a_block
# told: the gradient of the sum is summed again
class FromRanks(torch.autograd.Function):
    """A sum both ways."""

    @staticmethod
    def forward(ctx, part, comm):
        ctx.comm = comm
        return comm.all_reduce(part)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.comm.all_reduce(gradient), None
