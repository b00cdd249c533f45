# exercise: own_checkpoint
# told: the second run moves the random numbers of all that comes after


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(*(one if isinstance(one, torch.Tensor) else None for one in inputs))
        ctx.run, ctx.inputs = run, [None if isinstance(one, torch.Tensor) else one for one in inputs]
        ctx.drawn = torch.get_rng_state()
        ctx.cast = {"enabled": torch.is_autocast_enabled("cpu"), "dtype": torch.get_autocast_dtype("cpu")}
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.inputs, strict=True)
        ]
        torch.set_rng_state(ctx.drawn)
        with torch.enable_grad(), torch.autocast("cpu", **ctx.cast):
            output = ctx.run(*inputs)
        output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in inputs)
