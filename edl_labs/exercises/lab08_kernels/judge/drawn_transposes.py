"""The cases of coalesced: square and ragged matrices of 4- and 8-byte elements."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source


@case_source("coalesced")
def matrices(rng: Any) -> list[Case]:
    """Sides are multiples of 16, so that rows of every type begin with a sector; the last matrix has many blocks."""
    more = [16 * int(side) for side in rng.integers(1, 5, size=4)]
    cases = [
        _case(64, 64, "float32"),
        _case(48, 32 * int(rng.integers(1, 3)), "float32"),
        _case(more[0], 48, "float64"),
        _case(48, more[1], "float32"),
        _case(more[2], more[3], "float32"),
        _case(16 * int(rng.integers(5, 8)), 16 * int(rng.integers(8, 11)), "float32"),
    ]
    return [Case(given=one) for one in cases]


def _case(rows: int, columns: int, dtype: str) -> dict[str, Any]:
    return {"rows": rows, "columns": columns, "dtype": dtype}
