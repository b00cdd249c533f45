# exercise: split_a_block
# told: the outputs of the ranks are never summed
class FromRanks(torch.autograd.Function):
    """Every rank goes on with its own part."""

    @staticmethod
    def forward(ctx, part, comm):
        return part.view_as(part)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None
