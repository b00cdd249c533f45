"""Mistakes in bug_hunt's loops, trained again without torch: what a loop left behind tells which of them it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import close

EVERY = 2  # batches of a step of train_accumulated
GROWTH_INTERVAL, GAMMA = 3, 0.5  # of the scaler and of the schedule: small, so that a dozen batches show both
OVERFLOWING = 1e25  # its square, and so the gradient, is beyond fp32 at every scale
OVERFLOWING_SCALED = 1e18  # the loss is within fp32, and the scaled gradient beyond


def overflows(batch: Any) -> bool:
    """Whether a batch's scaled gradients are beyond fp32."""
    return batch["x"][0][0] in (OVERFLOWING, OVERFLOWING_SCALED)


def weights_agree(got: Any, want: Any) -> bool:
    """Whether two loops left the same weights, but for fp32's rounding."""
    size = max(map(abs, want["weights"]))
    pairs = zip(got["weights"], want["weights"], strict=True)
    return all(close(mine, right, rtol=2e-3, atol=1e-4 * size) for mine, right in pairs)


def trained(case: Any, step_of: Callable[[Any, list[Any]], Any], *, every: int = 1) -> list[float]:
    """The weights after training whose steps go down `step_of(case, gradients)`, of the batches since the last one.

    The gradient of a batch that overflows is None, and so is the step of a window that is skipped.
    """
    import numpy

    weights, window = numpy.array(case["weights"], dtype=float), []
    for number, batch in enumerate(case["batches"], 1):
        window.append(None if overflows(batch) else _gradient(batch, weights))
        if number % every == 0:
            step = step_of(case, window)
            weights, window = weights if step is None else weights - case["lr"] * step, []
    return [float(weight) for weight in weights]


def _gradient(batch: Any, weights: Any) -> Any:
    import numpy

    x, y = numpy.array(batch["x"]), numpy.array(batch["y"]).ravel()
    return 2 / len(y) * x.T @ (x @ weights - y)


def each_clipped(case: Any, window: list[Any]) -> Any:
    """The step that goes down a gradient whose single values are clipped."""
    return None if window[0] is None else window[0].clip(-case["max_norm"], case["max_norm"])


# Each is (the step of a mistake in train_accumulated, what is wrong, what to do).
WINDOWS: list[tuple[Callable[[Any, list[Any]], Any], str, str]] = [
    *(
        (
            lambda case, window, divisor=divisor: None if window[-1] is None else window[-1] / divisor,
            "takes each step with the gradients of only one batch",
            "backward() adds to the existing gradients: zero them only after a step",
        )
        for divisor in (1, EVERY)
    ),
    (
        lambda case, window: None if any(one is None for one in window) else sum(window),
        "adds up the losses of a step's batches; expected their mean",
        "divide each loss by `every`",
    ),
]


def norms_added(got: list[float], want: list[float]) -> bool:
    """Whether each norm is 1 to √2 times the right one, as the sum of two parts' norms is, and not always as many."""
    ratios = [mine / right for mine, right in zip(got, want, strict=True) if math.isfinite(right) and right]
    within = all(1 - 1e-3 <= ratio <= math.sqrt(2) + 1e-3 for ratio in ratios)
    return bool(ratios) and within and max(ratios) > 1.01 and max(ratios) - min(ratios) > 1e-3


def moves_on_growth(case: Any, got: Any) -> int | None:
    """How often the schedule of train_scheduled moved, where it moved only when the scale grew; None where not."""
    lr, clean, moved = case["lr"], 0, 0

    def step(case: Any, window: list[Any]) -> Any:
        nonlocal lr, clean, moved
        if window[0] is None:
            clean = 0
            return None
        taken, clean = window[0] * (lr / case["lr"]), clean + 1
        if clean == GROWTH_INTERVAL:
            lr, clean, moved = lr * GAMMA, 0, moved + 1
        return taken

    weights = trained(case, step)
    agree = weights_agree(got, {"weights": weights}) and close(got["values"][0], lr, rtol=1e-6)
    return moved if agree else None


def times_too_large(case: Any, gradients: list[float]) -> float | None:
    """How many times the true gradients those of the first step are, where they all have the same factor."""
    true = [float(value) for value in _gradient(case["batches"][0], case["weights"])]
    if len(gradients) != len(true) or not all(map(math.isfinite, gradients)):
        return None
    times = math.hypot(*gradients) / math.hypot(*true)
    size = times * max(map(abs, true))
    alike = all(close(mine, times * right, atol=1e-2 * size) for mine, right in zip(gradients, true, strict=True))
    return times if alike else None
