"""The cases of smooth_outliers: channels and rows of every kind, and values of which none is near a tie by accident."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_CLEAR = 1e-3  # of an integer: how far a value is from a tie; fp32 errs by 1e-5
_TRIES = 2000  # one row in ten or more is clear
# Tokens, columns, rows of the weight; then alpha, or None for one that is drawn. No two sizes of a case agree.
_SIZES = ((5, 6, 4, 0.5), (3, 8, 5, None), (4, 7, 3, 0.0), (6, 5, 7, 1.0))


@case_source("smooth_outliers")
def outliers(rng: Any) -> list[Case]:
    return [_case(rng, *size) for size in _SIZES]


def _case(rng: Any, tokens: int, columns: int, rows: int, alpha: float | None) -> Case:
    import numpy as np

    x, weight = _eighths(rng, tokens, columns), _eighths(rng, rows, columns)
    outlier, empty, unused, small = (int(one) for one in rng.permutation(columns)[:4])
    x[:, outlier] *= 64
    x[:, small] /= 64
    weight[:, small] /= 16
    x[:, empty], weight[:, unused] = 0.0, 0.0
    given = {
        "x": x.tolist(),
        "weight": weight.tolist(),
        "alpha": float(rng.choice([0.25, 0.65, 0.75, 0.85])) if alpha is None else alpha,
        "table": _table(rng, columns),
        "left": _integers(rng, tokens, columns),
        "left_scales": (rng.integers(1, 16, tokens) / 64).tolist(),
        "right": _integers(rng, rows, columns),
        "right_scales": (rng.integers(1, 16, rows) / 512).tolist(),
        "norm_weight": (rng.integers(4, 32, columns) / 16).tolist(),
        "norm_bias": (rng.integers(1, 32, columns) * rng.choice([-1, 1], columns) / 16).tolist(),
        "channel_scales": np.float32(rng.choice([0.25, 0.3, 0.6, 1.5, 3.0, 8.0], columns)).astype(float).tolist(),
    }
    return Case(given=given, hidden={})


def _eighths(rng: Any, rows: int, columns: int) -> Any:
    """Numbers up to 4 in magnitude; that of each column's and each row's largest magnitude is often negative."""
    import numpy as np

    drawn = rng.integers(1, 25, (rows, columns)) * rng.choice([-1, 1], (rows, columns)) / 8
    places = rng.permutation(columns)
    drawn[rng.integers(0, rows, columns), np.arange(columns)] = -rng.integers(26, 33, columns) / 8
    return drawn[:, places]


def _integers(rng: Any, rows: int, columns: int) -> list[list[int]]:
    """int8 numbers; the first row is so large that sums of its products need more than 16 bits."""
    import numpy as np

    drawn = rng.integers(-127, 128, (rows, columns))
    drawn[0] = rng.integers(100, 128, columns)
    return np.asarray(drawn).tolist()


def _table(rng: Any, columns: int) -> list[list[float]]:
    """Rows in any order: zeros, ties, one outlier, a largest magnitude below 0, and another one above."""
    import numpy as np

    clear = [_clear_row(rng, columns, kind) for kind in ("outlier", "low", "high")]
    rows = [np.zeros(columns), _ties(rng, columns), *clear]
    return [np.float32(rows[at]).astype(float).tolist() for at in rng.permutation(len(rows))]


def _ties(rng: Any, columns: int) -> Any:
    """Its scale is a power of two, so that n + 1/2 scales are exact: two with even n, two with odd n."""
    import numpy as np

    halves = np.array([2, -2, 3, -3]) + 4 * rng.integers(0, 12, 4) * np.array([1, -1, 1, -1])
    halves = halves + np.array([0.5, -0.5, 0.5, -0.5])
    rest = rng.integers(-60, 60, columns - 5)
    return rng.permutation([127.0 * rng.choice([-1, 1]), *halves, *rest]) * 2.0 ** -int(rng.integers(3, 8))


def _clear_row(rng: Any, columns: int, kind: str) -> Any:
    import numpy as np

    for _ in range(_TRIES):
        row = np.round(rng.normal(0, 1, columns), 3)
        row[rng.integers(columns)] = {"outlier": 60.0, "low": -5.0, "high": 4.0}[kind] + round(rng.uniform(0, 0.9), 3)
        places = np.abs(row) / (np.abs(row).max() / 127)
        if np.all(np.abs(places - np.floor(places) - 0.5) > _CLEAR) and np.all(row != 0):
            return row
    raise AssertionError("every row is near a tie; draw others")
