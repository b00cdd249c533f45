"""The cases of sync_batch_norm: equal parts and unequal ones, one row alone, values far from zero, a large eps."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("sync_batch_norm")
def batches(rng: Any) -> list[Case]:
    def case(rows: list[int], **changed: float) -> dict[str, Any]:
        drawn = {"seed": int(rng.integers(1, 10**6)), "channels": int(rng.integers(2, 4))}
        return {**drawn, "rows": rows, "momentum": 0.1, "eps": 1e-5, "centre": 0.0, "spread": 1.0, **changed}

    def some(count: int) -> list[int]:
        return [int(rows) for rows in rng.permutation(range(4, 12))[:count]]

    cases = [
        case([4, 4]),
        case(some(3), momentum=0.3),
        case([*some(3), 1]),
        case([6, 6], centre=1e5, spread=0.01),
        case(some(4), eps=0.2, momentum=0.25),
    ]
    return [Case(given=one) for one in cases]
