# exercise: split_a_block
# told: each rank has its own part of the input's gradient
class ToRanks(torch.autograd.Function):
    """Passes the gradient on as it is."""

    @staticmethod
    def forward(ctx, x, comm):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None
