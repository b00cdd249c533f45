"""The cases of whole_graph: matrices on either side of the bound, with sums on either side of zero."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_ROWS, _COLUMNS = 3, 4  # not square, so that a mean over one side is not that over the other; read at a glance
_STEPS = 8  # eighths are exact in float32, and so are their sums


@case_source("whole_graph")
def matrices(rng: Any) -> list[Case]:
    loud = [_case(rng, sign=sign, peak=peak) for sign in (1, -1) for peak in (1, -1)]
    quiet = [_case(rng, sign=sign, peak=0) for sign in (1, -1)]
    zeros = {"x": [[0.0] * _COLUMNS for _ in range(_ROWS)], "bound": 2.0}
    return [Case(given=one) for one in [*loud, *quiet, zeros, _balanced(rng)]]


def _case(rng: Any, *, sign: int, peak: int) -> dict[str, Any]:
    """A matrix whose sum has a sign, and a value above the bound with the sign `peak`; 0 is none above it."""
    values = [sign * int(one) for one in rng.integers(4, 16, size=_ROWS * _COLUMNS)]
    for at in rng.permutation(len(values))[:3]:
        values[int(at)] *= -1
    if peak:
        # Less than what the others come to, so that it does not decide on the sum's sign.
        values[int(rng.integers(0, len(values)))] = peak * int(rng.integers(20, 26))
    if sign * sum(values) < _STEPS:
        return _case(rng, sign=sign, peak=peak)
    bound = float(rng.choice([1.25, 1.5, 1.75])) if peak else float(rng.choice([3.0, 4.0, 5.0]))
    return _as_case(values, bound)


def _balanced(rng: Any) -> dict[str, Any]:
    """A sum of exactly zero, below the bound."""
    half = [int(one) for one in rng.integers(1, 16, size=_ROWS * _COLUMNS // 2)]
    values = [*half, *(-one for one in half)]
    return _as_case([values[int(at)] for at in rng.permutation(len(values))], 4.0)


def _as_case(values: list[int], bound: float) -> dict[str, Any]:
    rows = [values[at : at + _COLUMNS] for at in range(0, len(values), _COLUMNS)]
    return {"x": [[one / _STEPS for one in row] for row in rows], "bound": bound}
