# exercise: own_checkpoint
# told: the block does not run exactly twice


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(inputs[0])
        ctx.count = len(inputs)
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return None, gradient, *([None] * (ctx.count - 1))
