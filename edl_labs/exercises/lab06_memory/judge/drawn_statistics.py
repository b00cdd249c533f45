"""The cases of merge_statistics: parts with counts, means and variances, near zero and far from it."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("merge_statistics")
def batches(rng: Any) -> list[Case]:
    cases = [
        _case(rng, parts=4, centre=0.0, deviation=1.0, is_even=True),
        _case(rng, parts=3, centre=2.0, deviation=1.0),
        _case(rng, parts=5, centre=-3.0, deviation=2.0, is_single=True),
        _case(rng, parts=4, centre=1e4, deviation=0.01),
        _case(rng, parts=8, centre=-5e4, deviation=0.02, is_single=True),
    ]
    return [Case(given=one) for one in cases]


def _case(
    rng: Any, *, parts: int, centre: float, deviation: float, is_even: bool = False, is_single: bool = False
) -> dict[str, Any]:
    size = int(rng.integers(8, 40))
    counts = [size] * parts if is_even else [int(n) for n in rng.permutation([2, 64, *rng.integers(3, 64, parts - 2)])]
    drawn = [
        {
            "count": count,
            "mean": round(centre + deviation * float(rng.uniform(-2, 2)), 4),
            "variance": round(deviation**2 * float(rng.uniform(0.3, 2.0)), 8),
        }
        for count in counts
    ]
    if is_single:
        drawn[1] |= {"count": 1, "variance": 0.0}
    before = [round(centre + deviation * float(rng.uniform(3, 5)), 4), round(deviation**2 * 3, 8)]
    return {"parts": drawn, "running": before, "momentum": float(rng.choice([0.05, 0.1, 0.2]))}
