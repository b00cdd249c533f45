"""The cases of sharded_step: layers whose messages hide behind passes, and memory for two of them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_RATE = 40e9  # bytes per second: NVLink of deck [003]
_STATE = 16  # bytes of weights, gradients and Adam's averages for each parameter


@case_source("sharded_step")
def models(rng: Any) -> list[Case]:
    cases = [
        _case(rng, 2, [6] * 6, 0.5),
        _case(rng, 4, [int(n) for n in rng.integers(6, 9, size=7)], 0.6),
        _case(rng, 4, [int(n) for n in rng.integers(5, 10, size=5)], 0.4),
        _case(rng, 8, [int(n) for n in rng.integers(6, 9, size=8)], 0.8),
        _case(rng, 3, [4, 4, 4, 4, 9], 0.3),
    ]
    return [Case.split(one, "budget_bytes") for one in cases]


def _case(rng: Any, ranks: int, sizes: list[int], share: float) -> dict[str, Any]:
    """Layers of millions of parameters; gathering one takes `share` of its forward pass."""
    elements = [size * 1_000_000 // ranks * ranks for size in sizes]
    forward_s, backward_s = [], []
    for count in elements:
        gather_s = 4 * count * (ranks - 1) / ranks / _RATE
        forward_s.append(round(gather_s / share * float(rng.uniform(0.95, 1.05)), 7))
        backward_s.append(round(2 * forward_s[-1], 7))
    behind = [*elements[1:], 0]
    before = [0, *elements[:-1]]
    back = [2 * own + one + other for own, one, other in zip(elements, behind, before, strict=True)]
    return {
        "ranks": ranks,
        "byte_per_s": _RATE,
        "elements": elements,
        "forward_s": forward_s,
        "backward_s": backward_s,
        "budget_bytes": _STATE * sum(elements) // ranks + 4 * max(back) + min(elements),
    }
