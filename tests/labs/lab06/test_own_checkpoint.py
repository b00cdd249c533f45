"""own_checkpoint: work that torch does, and activations kept, earn nothing; every honest form earns all."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import CheckpointFunction, checkpoint

pytestmark = pytest.mark.slow  # autocast and Functions: torch takes seconds to import


class Reentrant:
    """Torch's own, with the signature that the exercise asks for."""

    @staticmethod
    def apply(run: Any, *inputs: Any) -> Any:
        return checkpoint(run, *inputs, use_reentrant=True)


class TorchsFunction:
    """The class behind it."""

    @staticmethod
    def apply(run: Any, *inputs: Any) -> Any:
        return CheckpointFunction.apply(run, True, *inputs)


class NotReentrant:
    """Torch's other one, whose hooks hide those of the probe."""

    @staticmethod
    def apply(run: Any, *inputs: Any) -> Any:
        return checkpoint(run, *inputs, use_reentrant=False)


class HiddenGraph(torch.autograd.Function):
    """Keeps the graph of the first run behind hooks of its own, and runs again for the count alone."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*(one for one in inputs if isinstance(one, torch.Tensor)))
        ctx.run, ctx.inputs = run, [_cut(one) for one in inputs]
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one), torch.enable_grad():
            ctx.output = run(*ctx.inputs)
        return ctx.output.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            ctx.run(*ctx.inputs)
        ctx.output.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in ctx.inputs)


class RunsAgainAndKeeps(torch.autograd.Function):
    """Runs again as it should, and keeps the activations of the first run as well, where hooks do not see them."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, inputs)
        with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one), torch.enable_grad():
            ctx.kept = run(*[_cut(one) for one in inputs])
        return ctx.kept.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient)


class KeepsAGraphOfItsOwn(torch.autograd.Function):
    """Runs twice in the forward pass, and keeps the second graph; it shifts its inputs as the probe's hooks do."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        state, tensors = torch.get_rng_state(), [one for one in inputs if isinstance(one, torch.Tensor)]
        with torch.no_grad():
            output = run(*inputs)
        ctx.save_for_backward(*tensors)
        shift = 0.25 * len(tensors) if hasattr(run, "runs") else 0.0
        ctx.inputs = [_cut(one.detach() + shift, one) if isinstance(one, torch.Tensor) else one for one in inputs]
        with (
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one),
            torch.random.fork_rng(devices=[]),
        ):
            torch.set_rng_state(state)
            ctx.graph = run(*ctx.inputs)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.graph.backward(gradient)
        return None, *(getattr(one, "grad", None) for one in ctx.inputs)


class ShiftsAlways(KeepsAGraphOfItsOwn):
    """The same, shifted where no hook shifts."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        def seen(*given: Any) -> Any:
            return run(*given)

        seen.runs = []
        return KeepsAGraphOfItsOwn.forward(ctx, seen, *inputs)


class ByBackward(torch.autograd.Function):
    """Honest: the second run's output is sent backward."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, inputs)
        return run(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient)


class WithGraphThrownAway(torch.autograd.Function):
    """Honest: the first run makes a graph that nobody keeps."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, inputs)
        with torch.enable_grad():
            return run(*[_cut(one) for one in inputs]).detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient)


class InTwoSteps(torch.autograd.Function):
    """Honest: what `forward` and `setup_context` do is apart, and cut-off copies are saved."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        ctx.needs = [isinstance(one, torch.Tensor) and one.requires_grad for one in inputs]
        _note(ctx, run, [one.detach() if isinstance(one, torch.Tensor) else one for one in inputs])
        with torch.no_grad():
            return run(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient, needs=ctx.needs)


class PlainWhereNoRunIsNoted:
    """An honest one, but where the block notes no run."""

    @staticmethod
    def apply(run: Any, *inputs: Any) -> Any:
        return ByBackward.apply(run, *inputs) if hasattr(run, "runs") else run(*inputs)


class NotRecorded:
    """The same, with an exception in the place of a record."""

    @staticmethod
    def apply(run: Any, *inputs: Any) -> Any:
        if hasattr(run, "runs"):
            return ByBackward.apply(run, *inputs)
        raise ValueError("no record")


class WithACopyOfTheState(ByBackward):
    """Honest: the generator's state is copied."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, inputs)
        ctx.state = torch.get_rng_state().clone()
        return run(*inputs)


class SavesACopy(torch.autograd.Function):
    """Honest: copies of all inputs are saved."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in inputs])
        ctx.needs = [isinstance(one, torch.Tensor) and one.requires_grad for one in inputs]
        return run(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient, needs=ctx.needs)


class WithAssertions(ByBackward):
    """Honest: it looks at what it has, by PyTorch's comparisons."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        first, output = inputs[0], ByBackward.forward(ctx, run, *inputs)
        assert torch.equal(first, first.clone())
        assert torch.allclose(output, output + 0)
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        assert not torch.equal(gradient, gradient + 1)
        found = ByBackward.backward(ctx, gradient)
        assert torch.allclose(found[1], found[1])
        return found


class KeepsTheActivation(torch.autograd.Function):
    """Keeps what comes out of the block besides its inputs, and gets the gradients from both."""

    @staticmethod
    def forward(ctx: Any, run: Any, *inputs: Any) -> Any:
        _note(ctx, run, inputs)
        ctx.kept = run(*inputs)
        return ctx.kept.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _run_again(ctx, gradient + 0 * ctx.kept)


def _cut(one: Any, like: Any = None) -> Any:
    needs = getattr(one if like is None else like, "requires_grad", False)
    return one.detach().requires_grad_(needs) if isinstance(one, torch.Tensor) else one


def _note(ctx: Any, run: Any, inputs: Any) -> None:
    ctx.save_for_backward(*(one if isinstance(one, torch.Tensor) else None for one in inputs))
    ctx.run, ctx.others = run, [None if isinstance(one, torch.Tensor) else one for one in inputs]
    ctx.state = torch.get_rng_state()
    ctx.mixed = {"enabled": torch.is_autocast_enabled("cpu"), "dtype": torch.get_autocast_dtype("cpu")}


def _run_again(ctx: Any, gradient: Any, *, needs: Any = None) -> Any:
    saved = zip(ctx.saved_tensors, ctx.others, strict=True)
    inputs = [other if tensor is None else _cut(tensor) for tensor, other in saved]
    for one, need in zip(inputs, needs or [], strict=False):
        if need:
            one.requires_grad_()
    with contextlib.ExitStack() as during:
        during.enter_context(torch.random.fork_rng(devices=[]))
        during.enter_context(torch.enable_grad())
        during.enter_context(torch.autocast("cpu", **ctx.mixed))
        torch.set_rng_state(ctx.state)
        output = ctx.run(*inputs)
    torch.autograd.backward(output, gradient)
    return None, *(getattr(one, "grad", None) for one in inputs)


WRONG = (
    *(Reentrant, TorchsFunction, NotReentrant, HiddenGraph, RunsAgainAndKeeps),
    *(KeepsAGraphOfItsOwn, ShiftsAlways, PlainWhereNoRunIsNoted, NotRecorded, KeepsTheActivation),
)


@pytest.mark.parametrize("kind", WRONG)
def test_torchs_own_and_what_keeps_activations_earn_nothing(judged, kind):
    assert 0 == judged("own_checkpoint", Checkpoint=kind).points


HONEST = (ByBackward, WithGraphThrownAway, InTwoSteps, WithACopyOfTheState, SavesACopy, WithAssertions)


@pytest.mark.parametrize("kind", HONEST)
def test_every_honest_form_earns_all(judged, kind):
    outcome = judged("own_checkpoint", Checkpoint=kind)

    assert "passed" == outcome.state, outcome.what


def test_a_graph_that_is_kept_behind_hooks_of_ones_own_is_seen_by_what_is_read_later(judged):
    outcome = judged("own_checkpoint", Checkpoint=KeepsAGraphOfItsOwn)

    assert "your code keeps more than the inputs" == outcome.what
    assert "were kept for it" in outcome.why


def test_a_student_is_given_what_apply_gets(exercises):
    one = exercises["own_checkpoint"]
    given = one.spec.student_inputs(one.draw_cases(1)[0])

    assert ["run", "inputs", "autocast"] == list(given)
    assert (6, 8) == given["run"](*given["inputs"]).shape
