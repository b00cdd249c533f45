# %% mistake="autocast_forgotten"
# told: your second run computes in a different dtype than the first
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(
            *(one if isinstance(one, torch.Tensor) else None for one in inputs)
        )
        ctx.run, ctx.inputs = (
            run,
            [None if isinstance(one, torch.Tensor) else one for one in inputs],
        )
        ctx.drawn = torch.get_rng_state()
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other
            if tensor is None
            else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.inputs, strict=True)
        ]
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.drawn)
            output = ctx.run(*inputs)
        output.backward(gradient.to(output.dtype))
        return None, *(getattr(one, "grad", None) for one in inputs)


# %% mistake="forgets_requires_grad"
# told: no gradient reaches the inputs
# %% replace
inputs = [
    other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
    for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
]
# %% by
inputs = [
    other if tensor is None else tensor.detach()
    for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
]


# %% mistake="generator_left_behind"
# told: your second run changes all later random numbers
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(
            *(one if isinstance(one, torch.Tensor) else None for one in inputs)
        )
        ctx.run, ctx.inputs = (
            run,
            [None if isinstance(one, torch.Tensor) else one for one in inputs],
        )
        ctx.drawn = torch.get_rng_state()
        ctx.cast = {
            "enabled": torch.is_autocast_enabled("cpu"),
            "dtype": torch.get_autocast_dtype("cpu"),
        }
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        inputs = [
            other
            if tensor is None
            else tensor.detach().requires_grad_(tensor.requires_grad)
            for tensor, other in zip(ctx.saved_tensors, ctx.inputs, strict=True)
        ]
        torch.set_rng_state(ctx.drawn)
        with torch.enable_grad(), torch.autocast("cpu", **ctx.cast):
            output = ctx.run(*inputs)
        output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in inputs)


# %% mistake="gradient_of_a_sum"
# told: your gradient differs from a plain run
# %% replace
output = ctx.run(*inputs)
# %% by
output = ctx.run(*inputs).sum()
# %% replace
output.backward(gradient)
# %% by
output.backward()


# %% mistake="inputs_as_attributes"
# told: your code keeps input tensors without save_for_backward
# %% replace
ctx.save_for_backward(*tensors)
# %% by
ctx.tensors = tensors
# %% replace
inputs = [
    other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
    for tensor, other in zip(ctx.saved_tensors, ctx.others, strict=True)
]
# %% by
inputs = [
    other if tensor is None else tensor.detach().requires_grad_(tensor.requires_grad)
    for tensor, other in zip(ctx.tensors, ctx.others, strict=True)
]


# %% mistake="keeps_the_graph"
# told: your code keeps more than the inputs
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        cut = [
            one.detach().requires_grad_(one.requires_grad)
            if isinstance(one, torch.Tensor)
            else one
            for one in inputs
        ]
        with torch.enable_grad():
            output = run(*cut)
        ctx.cut, ctx.output = cut, output
        return output.detach()

    @staticmethod
    def backward(ctx, gradient):
        ctx.output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in ctx.cut)


# %% mistake="keeps_the_seed"
# told: your code saves the seed instead of the generator's state
# %% replace
ctx.random_state = torch.get_rng_state()
# %% by
ctx.seed = torch.initial_seed()
# %% replace
torch.set_rng_state(ctx.random_state)
# %% by
torch.manual_seed(ctx.seed)


# %% mistake="numbers_at_the_end"
# told: your second run gets its inputs in a different order
# %% replace
output = ctx.run(*inputs)
# %% by
output = ctx.run(*sorted(inputs, key=lambda one: not isinstance(one, torch.Tensor)))


# %% mistake="other_mask"
# told: your second run drops different elements than the first
# %% replace
torch.set_rng_state(ctx.random_state)
# %% by
torch.rand(1)


# %% mistake="runs_only_once"
# told: your code does not run the block exactly twice
class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, *inputs):
        ctx.save_for_backward(*(one for one in inputs if isinstance(one, torch.Tensor)))
        ctx.count = len(inputs)
        return run(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return None, gradient, *([None] * (ctx.count - 1))


# %% mistake="usual_autocast"
# told: your second run uses autocast with a different dtype
# %% replace
with (
    torch.random.fork_rng(devices=[]),
    torch.enable_grad(),
    torch.autocast("cpu", **ctx.autocast),
):
    torch.set_rng_state(ctx.random_state)
    output = ctx.run(*inputs)
# %% by
with (
    torch.random.fork_rng(devices=[]),
    torch.enable_grad(),
    torch.autocast("cpu", enabled=ctx.autocast["enabled"]),
):
    torch.set_rng_state(ctx.random_state)
    output = ctx.run(*inputs)
