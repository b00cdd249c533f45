# exercise: own_checkpoint
# told: no gradient reaches the inputs


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(*(one if isinstance(one, torch.Tensor) else None for one in inputs))
        ctx.run, ctx.inputs = run, [None if isinstance(one, torch.Tensor) else one for one in inputs]
        ctx.drawn = torch.get_rng_state()
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other if tensor is None else tensor.detach()
            for tensor, other in zip(ctx.saved_tensors, ctx.inputs, strict=True)
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.drawn)
            output = ctx.run(*inputs)
        output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in inputs)
