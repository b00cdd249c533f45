# exercise: own_checkpoint
# told: the seed was kept in place of the generator's state
class Checkpoint(torch.autograd.Function):
    """Seeds the generator anew, as it was seeded before."""

    @staticmethod
    def forward(ctx, run, *inputs):
        tensors = [one if isinstance(one, torch.Tensor) else None for one in inputs]
        ctx.save_for_backward(*tensors)
        ctx.run, ctx.others = run, [None if isinstance(one, torch.Tensor) else one for one in inputs]
        ctx.seed = torch.initial_seed()
        ctx.autocast = {"enabled": torch.is_autocast_enabled("cpu"), "dtype": torch.get_autocast_dtype("cpu")}
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", **ctx.autocast):
            torch.manual_seed(ctx.seed)
            output = ctx.run(*inputs)
        output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in inputs)
