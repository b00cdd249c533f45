# exercise: own_checkpoint
# told: more than the inputs is kept


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        cut = [
            one.detach().requires_grad_(one.requires_grad) if isinstance(one, torch.Tensor) else one for one in inputs
        ]
        with torch.enable_grad():
            output = run(*cut)
        ctx.cut, ctx.output = cut, output
        return output.detach()

    @staticmethod
    def backward(ctx, gradient):
        ctx.output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in ctx.cut)
