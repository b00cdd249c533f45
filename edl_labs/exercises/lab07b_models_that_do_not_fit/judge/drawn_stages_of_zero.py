"""The cases of zero: recipes with layers that no number of ranks divides, some of them frozen."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_RECIPES = ((2, 2, 12), (2, 4, 12), (4, 4, 8), (2, 2, 6), (1, 2, 8))  # bytes a parameter: weights, gradients, optimizer


@case_source("zero")
def recipes(rng: Any) -> list[Case]:
    order = rng.permutation(len(_RECIPES))
    return [
        Case(given=_case(rng, _RECIPES[at], frozen=frozen)) for at, frozen in zip(order, (0, 2, 1, 0, 3), strict=True)
    ]


def _case(rng: Any, each: tuple[int, int, int], *, frozen: int) -> dict[str, Any]:
    ranks = int(rng.integers(3, 65))
    # Sizes that leave a rest: padding then shows in every layer.
    layers = [int(rng.integers(50, 900)) * ranks + int(rng.integers(1, ranks)) for _ in range(frozen + 3)]
    recipe = {"layers": layers, "frozen": frozen, "micro_batches": int(rng.integers(2, 9))}
    return {"ranks": ranks, "recipe": {**recipe, **dict(zip(("weights", "gradients", "optimizer"), each, strict=True))}}
