"""bug_hunt: five training loops with torch's own scaler, run on a one-layer model and scripted batches."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.plain_data import plain_copy
from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.loop_slips import (
    EVERY,
    GAMMA,
    GROWTH_INTERVAL,
    OVERFLOWING,
    WINDOWS,
    each_clipped,
    moves_on_growth,
    norms_added,
    overflows,
    times_too_large,
    trained,
    weights_agree,
)
from edl_labs.units import counted

LOOPS = ("train_clipped", "train_logged", "train_accumulated", "train_scheduled", "train_static")
EACH = 2  # cases of each loop, both of which must be right
FEATURES = 3  # the least that makes a gradient a vector to clip, and still fits on a line
SOUND = 2.0**22  # from here on a gradient of 1e-12 has six bits and more above fp16's smallest step
_HALF_STEP = 2.0**-25  # of fp16's subnormals
_OF_FP32 = 2.0**-22  # a few roundings of fp32, which has 24 bits
_ROUNDING = 2.0**-11 + _OF_FP32  # of fp16's normal numbers


@exercise("bug_hunt")
class BugHunt(Exercise):
    """Five training loops with one fault each, fixed.

    Five functions of the notebook, each a loop; a fifth of the whole for each that is right on both its cases.
    """

    answers = ("unwritten", "weights", "scale", "values")

    answer_form: ClassVar[Any] = {"unwritten": True, "weights": [0.0], "scale": 0.0, "values": [0.0]}

    def probe(self, student: Any, given: Any) -> Any:
        try:
            return _run(getattr(student, given["loop"]), given)
        except AssertionError as error:
            if "No inf checks were recorded" in str(error):
                error.args = (f"{error} (call update() once after each scaler.step(), and never without a step)",)
            raise
        except NotImplementedError:
            # One loop after another may be mended; only when none is, there is nothing to judge.
            if not any(_is_written(student, loop, given) for loop in LOOPS if loop != given["loop"]):
                raise
            return {"unwritten": True, "weights": [], "scale": 0.0, "values": []}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["unwritten"]:
            raise Wrong(
                f"{case['loop']} is not written yet",
                why="it still raises NotImplementedError",
                next="copy the faulty loop and fix one thing",
            )
        if case["loop"] != "train_static" and not all(map(math.isfinite, got["weights"])):
            raise Wrong(
                f"{case['loop']} takes the steps of batches that overflowed",
                why="its weights are no longer finite numbers",
                next="only scaler.step(optimizer) skips such steps: what else takes steps in your loop?",
            )
        _COMPARED[case["loop"]](case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The schedule that follows the growth of the scale, in all its cases, where no loop before it is wrong."""
        rows = list(zip(cases, got, want, strict=True))
        case = next(case for case, mine, right in rows if not self._is_right(case, mine, right))
        if case["loop"] != "train_scheduled":
            return None
        scheduled = [row for row in rows if row[0]["loop"] == case["loop"]]
        moves = [moves_on_growth(case, mine) for case, mine, _ in scheduled]
        if moves[0] is None or None in moves:
            return None
        steps = sum(not overflows(batch) for batch in scheduled[0][0]["batches"])
        why = f"the schedule moved {counted(moves[0], 'time')} for {steps} steps that were taken"
        then = (
            "steps are also taken when the scale stays the same: what does the scale do when, and "
            "only when, a step is skipped?"
        )
        return Wrong("train_scheduled moves the schedule only when the scale grew", why=why, next=then)

    def _is_right(self, case: Any, got: Any, want: Any) -> bool:
        try:
            self.compare(case, got, want)
        except Wrong:
            return False
        return True

    def combine(self, fractions: list[float]) -> float:
        """The share of loops that are right on all their cases."""
        loops = [fractions[i : i + EACH] for i in range(0, len(fractions), EACH)]
        return sum(min(loop) >= 1 for loop in loops) / len(LOOPS)

    def format_case(self, case: Any) -> str:
        """Which loop, on what."""
        too_large = [i for i, batch in enumerate(case["batches"]) if overflows(batch)]
        more = f", batches {too_large} overflow" if too_large else ""
        more += f", scale {case['init_scale']:g}" if case["loop"] != "train_static" else ""  # it chooses its own
        return f"{case['loop']}, {len(case['batches'])} batches{more}, lr {case['lr']:g}"


def _is_written(student: Any, loop: str, case: Any) -> bool:
    try:
        _run(getattr(student, loop), {**case, "loop": loop})
    except NotImplementedError:
        return False
    except Exception:
        return True
    return True


def _run(loop: Any, case: Any) -> dict[str, Any]:
    """What a loop did to the model, its scaler, and what it returned, as plain data."""
    import torch

    model = linear_in_two_parts(case["weights"])
    batches = [(torch.tensor(one["x"]), torch.tensor(one["y"])) for one in case["batches"]]
    optimizer = torch.optim.SGD(model.parameters(), lr=case["lr"])
    if case["loop"] == "train_static":
        first: list[Any] = []  # gradients of the first step
        optimizer.register_step_pre_hook(lambda *_: None if first else first.append(_gradients(model)))
        loop(model, batches, optimizer, rounded_gradients())
        return _evidence(model, 0.0, first[0] if first else [])
    scaler = torch.amp.GradScaler("cpu", init_scale=case["init_scale"], growth_interval=GROWTH_INTERVAL)
    if case["loop"] == "train_clipped":
        loop(model, batches, optimizer, scaler, max_norm=case["max_norm"])
        values: Any = []
    elif case["loop"] == "train_logged":
        returned = loop(model, batches, optimizer, scaler)
        # As plain data, so that a generator runs before the weights are read; nothing returned is no norms.
        values = [] if returned is None else plain_copy(returned)
    elif case["loop"] == "train_accumulated":
        loop(model, batches, optimizer, scaler, every=EVERY)
        values = []
    else:
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=GAMMA)
        loop(model, batches, optimizer, scaler, scheduler)
        values = [optimizer.param_groups[0]["lr"]]
    return _evidence(model, float(scaler.get_scale()), values)


def linear_in_two_parts(weights: list[float]) -> Any:
    """A linear layer whose weights are two parameters: a gradient that is left out of a loop or a norm shows."""
    import torch

    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Parameter(torch.tensor([weights[:1]]))
            self.rest = torch.nn.Parameter(torch.tensor([weights[1:]]))

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.linear(x, torch.cat([self.first, self.rest], dim=1))

    return Linear()


def rounded_gradients() -> Any:
    """A function of tensors that changes nothing on the way forward and rounds to fp16 on the way back."""
    import torch

    class RoundedGradients(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.half().float()

    return RoundedGradients.apply


def _gradients(model: Any) -> list[float]:
    parts = [part for part in model.parameters() if part.grad is not None]
    return [float(value) + 0.0 for part in parts for value in part.grad.detach().flatten()]  # no -0.0


def _evidence(model: Any, scale: float, values: Any) -> dict[str, Any]:
    weights = [float(value) for part in model.parameters() for value in part.detach().flatten()]
    return {"unwritten": False, "weights": weights, "scale": scale, "values": values}


def _moved(case: Any, evidence: Any) -> float:
    return math.dist(evidence["weights"], case["weights"])


def _clipped(case: Any, got: Any, want: Any) -> None:
    if not weights_agree(got, want):
        moved, right = _moved(case, got), _moved(case, want)
        why = f"the weights moved by {moved:.3g} instead of {right:.3g}"
        if moved < right / 4:
            then = "let clip_grad_norm_ see the true gradients; step() unscales them unless unscale_ has done so"
            what = "train_clipped still clips gradients that are scaled, or unscales them twice"
            raise Wrong(what, why=why, next=then)
        if weights_agree({"weights": trained(case, each_clipped)}, got):
            then = "use clip_grad_norm_, which scales down the whole gradient; clip_grad_value_ clips individual values"
            raise Wrong("train_clipped clips individual values instead of the norm", why=why, next=then)
        raise Wrong(
            "train_clipped does not clip the true gradients to max_norm",
            why=why,
            next="first unscale, then clip, then step",
        )
    _scale(got, want, "train_clipped")


def _logged(case: Any, got: Any, want: Any) -> None:
    if len(got["values"]) == 1 < len(want["values"]) and not weights_agree(got, want):
        why = f"it returned 1 norm for {len(want['values'])} batches, and its weights are not those after all batches"
        raise Wrong("train_logged ends after one batch", why=why, next="is `return` inside the loop?")
    if not weights_agree(got, want):
        moved, right = _moved(case, got), _moved(case, want)
        why = f"the weights moved by {moved:.3g} instead of {right:.3g}"
        what = (
            "train_logged still divides by the scale twice"
            if moved < right / 4
            else "train_logged ends with different weights"
        )
        raise Wrong(what, why=why, next="what else divides by the scale, and how could it know that you already did?")
    if len(got["values"]) != len(want["values"]):
        why = f"it returned {counted(len(got['values']), 'norm')} for {len(want['values'])} batches"
        raise Wrong(
            "train_logged does not return one norm for each batch", why=why, next="append a norm in every batch"
        )
    if norms_added(got["values"], want["values"]):
        mine, right = next(pair for pair in zip(got["values"], want["values"], strict=True) if math.isfinite(pair[1]))
        why = f"it returned {mine:.4g}, expected {right:.4g}"
        then = "compute one norm of all gradients: the square root of the sum of all squares"
        raise Wrong("train_logged adds up the norms of the individual weights", why=why, next=then)
    for mine, right in zip(got["values"], want["values"], strict=True):
        if math.isfinite(right) and not close(mine, right, rtol=1e-3):
            why = f"it returned {mine:.4g}, expected {right:.4g}"
            if math.isinf(mine):
                then = "unscale first: dividing afterwards is too late for a square that is beyond fp32's range"
                raise Wrong("train_logged takes the norm while the gradients are still scaled", why=why, next=then)
            raise Wrong(
                "train_logged does not return the norms of the true gradients",
                why=why,
                next="return the norms after unscaling",
            )
    _scale(got, want, "train_logged")


def _accumulated(case: Any, got: Any, want: Any) -> None:
    for rule, what, then in WINDOWS:
        if weights_agree({"weights": trained(case, rule, every=EVERY)}, got) and not weights_agree(got, want):
            raise Wrong(
                f"train_accumulated {what}",
                why="this mistake gives exactly the weights that your loop ended with",
                next=then,
            )
    _scale(got, want, "train_accumulated")
    if not weights_agree(got, want):
        why = "its scale is right, but its weights are not"
        raise Wrong(
            "train_accumulated ends with different weights",
            why=why,
            next="take one step for every two batches, with one update per step",
        )


def _scheduled(case: Any, got: Any, want: Any) -> None:
    mine, right = got["values"][0], want["values"][0]
    if not close(mine, right, rtol=1e-6):
        why = f"the learning rate ended at {mine:.4g} instead of {right:.4g}"
        if mine < right:
            then = "after update(), how can you tell a skipped step from one that was taken?"
            finite = sum(batch["x"][0][0] != OVERFLOWING for batch in case["batches"])
            if close(mine, case["lr"] * GAMMA**finite, rtol=1e-6):
                raise Wrong("train_scheduled treats a finite loss as a step that was taken", why=why, next=then)
            raise Wrong("train_scheduled still moves the schedule when the step was skipped", why=why, next=then)
        raise Wrong(
            "train_scheduled moves the schedule too rarely",
            why=why,
            next="call scheduler.step() once for each step that was taken",
        )
    if not weights_agree(got, want):
        raise Wrong(
            "train_scheduled ends with different weights",
            why="its learning rate is right, but its weights are not",
            next="fix only one thing",
        )
    _scale(got, want, "train_scheduled")


_STILL_SCALED = "train_static takes steps with gradients that are still scaled"
_UNDO = "the loss is multiplied by the scale: what undoes that before optimizer.step()?"


def _static(case: Any, got: Any, want: Any) -> None:
    if not all(map(math.isfinite, got["weights"])):
        why = "the weights are no longer finite numbers"
        times = times_too_large(case, got["values"])
        if times is not None and times > 2:
            why = f"the gradients of the first step are {times:.3g} times the true gradients; {why}"
            raise Wrong(_STILL_SCALED, why=why, next=_UNDO)
        if not all(map(math.isfinite, got["values"])):
            why = f"the gradients of the first step are infinite or NaN; {why}"
            then = "how large may a scale be if gradients of about 1e-8 must stay below fp16's largest number?"
            raise Wrong("train_static overflows", why=why, next=then)
        then = "how large may a scale be, and is every gradient divided by it before optimizer.step()?"
        raise Wrong("train_static overflows", why=why, next=then)
    rows = zip(got["weights"], want["weights"], most_rounded(case), strict=True)
    if not all(close(mine, right, rtol=0, atol=2 * most) for mine, right, most in rows):  # each side rounds for itself
        moved, right = _moved(case, got), _moved(case, want)
        if moved > 2 * right:
            why = f"the weights moved by {moved:.3g} instead of {right:.3g}"
            raise Wrong(_STILL_SCALED, why=why, next=_UNDO)
        why = f"the weights moved by {moved:.6g} instead of {right:.6g}, or in another direction"
        then = "choose a scale that lifts the smallest gradients, about 1e-12, above 6e-8, with some bits to spare"
        raise Wrong("train_static still loses gradients in the backward pass", why=why, next=then)


def most_rounded(case: Any) -> list[float]:
    """How far fp16 can take each weight of train_static from exact training, with any sound scale.

    A scaled gradient g of the predictions is rounded to g·(1 + d) with |d| ≤ 2^-11 where it is normal, and by at most
    half a step of 2^-24 where it is not: after unscaling, by _ROUNDING·|g| + _HALF_STEP / SOUND. A step of SGD makes
    w - lr·Xᵀg of w, with g = 2/n·(Xw - y), so errors e of the weights become at most |1 - lr·2/n·XᵀX|·e + lr·|X|ᵀ·(what
    is rounded), with g taken where the weights may be. Derived, not measured: no scale of SOUND or more can be further
    off, be it a power of two or not.
    """
    import numpy

    weights = numpy.array(case["weights"], dtype=float)
    errors = numpy.zeros(FEATURES)
    for batch in case["batches"]:
        x, y = numpy.array(batch["x"]), numpy.array(batch["y"]).ravel()
        gradient, slope = 2 / len(y) * (x @ weights - y), 2 / len(y) * x
        kept = numpy.abs(numpy.eye(FEATURES) - case["lr"] * slope.T @ x)
        rounded = _ROUNDING * (numpy.abs(gradient) + numpy.abs(slope) @ errors) + _HALF_STEP / SOUND
        weights = weights - case["lr"] * x.T @ gradient
        errors = kept @ errors + case["lr"] * numpy.abs(x).T @ rounded + _OF_FP32 * numpy.abs(weights)
    return [float(error) for error in errors]


def _scale(got: Any, want: Any, loop: str) -> None:
    if got["scale"] != want["scale"]:
        why = f"the scale ended at {got['scale']:g} instead of {want['scale']:g}"
        raise Wrong(f"{loop} does not keep the scale up to date", why=why, next="call update() once after every step()")


_COMPARED = dict(zip(LOOPS, (_clipped, _logged, _accumulated, _scheduled, _static), strict=True))
