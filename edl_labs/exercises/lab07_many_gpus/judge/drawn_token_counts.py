"""The cases of no_sync: ranks with unequal tokens, and windows with something left over."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("no_sync")
def token_counts(rng: Any) -> list[Case]:
    shapes = ((2, 10, 4), (3, 6, 3), (4, 7, 3), (2, 5, 1), (2, 3, 5))
    return [
        Case(
            given={
                "window": window,
                "tokens": [[int(n) for n in rng.integers(10, 500, size=count)] for _ in range(ranks)],
            }
        )
        for ranks, count, window in shapes
    ]
