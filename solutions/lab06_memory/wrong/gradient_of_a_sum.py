# exercise: own_checkpoint
# told: a gradient differs from a plain run


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(*(one if isinstance(one, torch.Tensor) else None for one in inputs))
        ctx.run, ctx.inputs = run, [None if isinstance(one, torch.Tensor) else one for one in inputs]
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.inputs, strict=True)
        ]
        with torch.enable_grad():
            output = ctx.run(*inputs)
            output.sum().backward()
        return None, *(getattr(one, "grad", None) for one in inputs)
