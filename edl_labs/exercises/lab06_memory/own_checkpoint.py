"""own_checkpoint: a function that keeps its inputs alone and runs again in the backward pass, just as it ran before."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong

ROWS, WIDTH = 6, 8  # small: a case takes milliseconds
_SAME, _SAME_BF16 = 1e-6, 2e-2  # float64 against another order of adding; bf16 has 8 bits
_OTHER_MASK = 0.2  # of a gradient's length: a mask drawn anew changes far more than rounding


@exercise("own_checkpoint", trusting=True)
class OwnCheckpoint:
    """A torch.autograd.Function that saves its inputs alone and gives the outputs and gradients of a plain run.

    `Checkpoint.apply(run, *inputs)`. Trusting: how many tensors are saved is counted in the student's process.
    """

    def probe(self, student: Any, case: Any) -> Any:
        import torch

        from edl_labs.numerics import SavedTensors

        block = _Block(case)
        first, inputs = _inputs(case)
        watched = SavedTensors([block.weight])
        torch.manual_seed(case["seed"])
        with watched.watching(), torch.autocast("cpu", enabled=case["autocast"], dtype=torch.bfloat16):
            output = student.Checkpoint.apply(block, *inputs)
            saved = watched.count
        torch.rand(5)  # what other layers draw before the backward pass comes
        output.double().square().sum().backward()
        then = float(torch.rand(()))
        return {
            "output": _listed(output),
            "input_gradient": _listed(first.grad),
            "weight_gradient": _listed(block.weight.grad),
            "runs": block.runs,
            "saved": saved,
            "then": then,
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        within = _SAME_BF16 if case["autocast"] else _SAME
        if _distance(got["output"], want["output"]) > within:
            why = "the forward pass of the checkpointed block gives something else than that of the block"
            raise Wrong("the output differs from a plain run", why=why, next="return what run(*inputs) returns")
        if got["saved"] > want["saved"]:
            why = f"{got['saved']} tensors are saved after the forward pass; the block's inputs are {want['saved']}"
            raise Wrong("more than the inputs is kept", why=why, next="inside, the first run needs no graph")
        _judge_runs(case, got["runs"], want["runs"])
        _judge_gradients(case, got, want, within)
        if abs(got["then"] - want["then"]) > 1e-9:
            why = "the next random number after the backward pass is not the one that a plain run leaves"
            then = "put the generator back where it was when the second run is over"
            raise Wrong("the second run moves the random numbers of all that comes after", why=why, next=then)

    def show(self, case: Any) -> str:
        """What the block does."""
        parts = ["a linear layer and a tanh", f"dropout of {case['dropout']}" if case["dropout"] else ""]
        parts += ["in bf16 by autocast" if case["autocast"] else "", "with an offset" if case["offset"] else ""]
        parts += ["and a factor that is a plain number" if case["factor"] else ""]
        return ", ".join(part for part in parts if part)


class _Block:
    """What is checkpointed: it notes how it was run."""

    def __init__(self, case: Any) -> None:
        import torch

        self.case, self.runs = case, []  # type: ignore[var-annotated]
        drawn = torch.Generator().manual_seed(case["seed"] + 1)
        dtype = torch.float32 if case["autocast"] else torch.float64
        # Small enough that no tanh is flat: every element of a mask then counts in the gradient.
        self.weight = (0.2 * torch.randn(WIDTH, WIDTH, generator=drawn, dtype=dtype)).requires_grad_()

    def __call__(self, x: Any, *more: Any) -> Any:
        import torch

        product = x @ self.weight.T
        rest = list(more)
        if self.case["offset"]:
            product = product + rest.pop(0)
        if self.case["factor"]:
            product = product * rest.pop(0)
        needs = any(one.requires_grad for one in more if isinstance(one, torch.Tensor))
        self.runs.append([str(product.dtype).removeprefix("torch."), torch.is_grad_enabled(), needs])
        return torch.nn.functional.dropout(torch.tanh(product), self.case["dropout"])


def _inputs(case: Any) -> tuple[Any, list[Any]]:
    """The tensor that a gradient is asked of, and the block's inputs, which come from an operation on it."""
    import torch

    drawn = torch.Generator().manual_seed(case["seed"] + 2)
    dtype = torch.float32 if case["autocast"] else torch.float64
    first = torch.randn(ROWS, WIDTH, generator=drawn, dtype=dtype).requires_grad_()
    inputs: list[Any] = [first * 1.5]
    if case["offset"]:
        inputs.append(torch.randn(WIDTH, generator=drawn, dtype=dtype))
    if case["factor"]:
        inputs.append(case["factor"])
    return first, inputs


def _judge_runs(case: Any, runs: list[Any], want: list[Any]) -> None:
    if len(runs) != len(want):
        why = f"it ran {len(runs)} times; a checkpoint runs it once forward, and once again in the backward pass"
        raise Wrong("the block does not run exactly twice", why=why, next="run it in forward, and again in backward")
    if runs[1][0] != want[1][0]:
        why = f"the first run computed in {runs[0][0]}, the second in {runs[1][0]}"
        then = "the backward pass lies outside the autocast block: note what held in the forward pass, and set it again"
        raise Wrong("the second run computes in another dtype than the first", why=why, next=then)
    if runs[1][2] != want[1][2]:
        why = "the offset needs no gradient in the first run, and one is worked out in the second"
        then = "a cut-off input needs a gradient where the input itself does"
        raise Wrong("an input without a gradient gets one in the second run", why=why, next=then)


def _judge_gradients(case: Any, got: Any, want: Any, within: float) -> None:
    for name, words in (("input_gradient", "the inputs"), ("weight_gradient", "the block's weights")):
        mine, right = got[name], want[name]
        off = _distance(mine, right)
        if off <= within:
            continue
        if not mine:
            then = "return one gradient for each input, None for run and for what is no tensor"
            raise Wrong(f"no gradient reaches {words}", why="it is None after the backward pass", next=then)
        if case["dropout"] and off > _OTHER_MASK:
            why = f"the output is right, and the gradient of {words} is {off:.0%} off: other elements were dropped"
            then = "the second run must draw what the first one drew: keep the generator's state"
            raise Wrong("the second run drops other elements than the first", why=why, next=then)
        if _distance(mine, [2 * value for value in right]) <= within:
            why = f"the gradient of {words} is twice what it should be"
            then = "the second run must begin at its inputs: cut them off what made them"
            raise Wrong("gradients flow through the first run's inputs as well", why=why, next=then)
        why = f"the gradient of {words} is {off:.1%} off"
        raise Wrong("a gradient differs from a plain run", why=why, next="hand the output's gradient to the second run")


def _listed(tensor: Any) -> list[float]:
    return [] if tensor is None else [float(value) for value in tensor.detach().double().flatten()]


def _distance(got: list[float], want: list[float]) -> float:
    """How far `got` is from `want`, as a share of its length; infinite where the sizes differ."""
    if len(got) != len(want) or not all(map(math.isfinite, got)):
        return math.inf
    size = math.sqrt(sum(value * value for value in want))
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want, strict=True))) / size if size else 0.0
