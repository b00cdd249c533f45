"""Mistakes in static_scale that are known by the answers to all cases: each is worked out again, and must give them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

_Row = tuple[Any, Any, Any]  # a case, what came back, the reference's
_Bins = list[tuple[int, int]]


def known_scale_slip(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    """The one mistake that gives every answer that came back; None where none does."""
    rows = list(zip(cases, got, want, strict=True))
    if all(mine == right for _, mine, right in rows):
        return None
    return next((wrong for slip in _SLIPS if (wrong := slip(rows)) is not None), None)


def filled_bins(case: Any) -> _Bins:
    """The bins that hold values, from the lowest, as (exponent, count)."""
    return sorted((e, n) for e, n in zip(case["exponents"], case["counts"], strict=True) if n)


def _answered(rows: list[_Row]) -> list[_Row]:
    """Without the histograms that were refused, or should have been."""
    return [row for row in rows if not row[1]["refused"] and not row[2]["refused"]]


def _exponent_came(rows: list[_Row]) -> Wrong | None:
    answered = _answered(rows)
    if not answered or any(mine["refused"] != right["refused"] for _, mine, right in rows):
        return None
    if any(mine["scale"] != math.log2(right["scale"]) for _, mine, right in answered):
        return None
    case, mine, _ = next(row for row in answered if row[1] != row[2])
    why = (
        f"your function returned {mine['scale']:g} for "
        f"{case['format']['name']}; gradients would be multiplied by that number"
    )
    return Wrong(
        "your function returned the exponent of the scale, not the scale",
        why=why,
        next="return the power of two itself",
    )


def _never_below_one(rows: list[_Row]) -> Wrong | None:
    for _, mine, right in rows:
        is_below = not right["refused"] and right["scale"] < 1
        if not (mine["refused"] or mine["scale"] == 1) if is_below else mine != right:
            return None
    why = "only your answers for histograms that need a scale below 1 are wrong"
    then = "where does your search begin? The k of 2.0**k may be negative"
    return Wrong("your scale is never below 1, but the right scale may be", why=why, next=then)


def _empty_bins_overflow(rows: list[_Row]) -> Wrong | None:
    for case, mine, right in rows:
        uppermost = max(case["exponents"])
        overflows = not right["refused"] and not _begins_within(case, right["scale"] * 2, uppermost)
        if mine["refused"] != (right["refused"] or overflows) or (not mine["refused"] and mine != right):
            return None
    highest = next(filled_bins(case)[-1][0] for case, mine, right in rows if mine != right)
    why = f"all bins above 2^{highest} are empty, and only a bin with values can overflow"
    then = "check for overflow at the highest bin whose count is not 0"
    return Wrong("your code treats empty bins as values that overflow", why=why, next=then)


def _upper_edge_left_out(rows: list[_Row]) -> Wrong | None:
    """All answers are right but those where the uppermost bin ends above the format, and begins in it."""
    odd = [row for row in rows if row[2]["refused"] and not row[1]["refused"]]
    if not odd or any(mine != right for case, mine, right in rows if not right["refused"]):
        return None
    if len(odd) == sum(right["refused"] for _, _, right in rows):
        return None  # who never refuses
    if not all(_begins_within(case, mine["scale"], filled_bins(case)[-1][0]) for case, mine, _ in odd):
        return None
    why = "in every case where you returned a scale but no scale is right, the lower edge of the highest bin fits"
    then = "the values of a bin reach up to twice its lower edge: do they fit, too?"
    return Wrong("your code checks for overflow at the lower edge of the highest bin", why=why, next=then)


def _begins_within(case: Any, scale: Any, exponent: int) -> bool:
    """Whether 2 to the `exponent`, scaled, is at most the largest power of two of the format."""
    if type(scale) not in (int, float):
        return False
    fmt = case["format"]
    last = 2 ** fmt["exponent_bits"] - (2 if fmt["has_inf"] else 1) - fmt["bias"]  # exponent of the largest number
    return bool(scale * 2.0**exponent <= 2.0**last)


def _at_one_per_cent(rows: list[_Row]) -> Wrong | None:
    """All are right but those where a hundredth of the values lies in the lowest bins: there these are lost."""
    told = None
    for case, mine, right in rows:
        hundredth = _hundredth(case)
        if right["refused"] or hundredth is None:
            if mine != right:
                return None
            continue
        lost, total, gap = hundredth
        if mine["scale"] != right["scale"] * 2.0**-gap:
            return None
        why = f"{case['format']['name']}: {lost} of {total} values become 0 at your scale of {mine['scale']:g}"
        then = "how does your comparison treat a share of exactly 0.01?"
        what = "your scale flushes exactly 1 % of the values, but less than 1 % is allowed"
        told = told or Wrong(what, why=why, next=then)
    return told


def _hundredth(case: Any) -> tuple[int, int, int] | None:
    """How many values the lowest bins hold, and all, and how far above the next bin is, where they hold 1 % exactly."""
    bins, lost = filled_bins(case), 0
    total = sum(n for _, n in bins)
    for (exponent, count), (following, _) in pairwise(bins):
        lost += count
        if 100 * lost == total:
            return lost, total, following - exponent
    return None


def _other_share(rows: list[_Row]) -> Wrong | None:
    rows = _answered(rows)
    for lost, what, then in _SHARES:
        if all(close(mine["scale"], _smallest(case, lost), rtol=1e-12) for case, mine, _ in rows) and any(
            mine["scale"] != right["scale"] for _, mine, right in rows
        ):
            case, mine, right = next(row for row in rows if row[1]["scale"] != row[2]["scale"])
            why = f"{case['format']['name']}: your function returned {mine['scale']:g}, expected {right['scale']:g}"
            return Wrong(what, why=why, next=then)
    return None


def _smallest(case: Any, lost: Callable[[Any, _Bins, int], float]) -> float:
    """The smallest power of two with which less than 1 % is `lost`, as a mistake counts that."""
    bins = filled_bins(case)
    low, high = -400, 400
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lost(case["format"], bins, middle) < 0.01 else (middle, high)
    return 2.0**high


def _most_in_a_bin(fmt: Any, bins: _Bins, power: int) -> float:
    total = sum(n for _, n in bins)
    return max((n for e, n in bins if e + power <= -fmt["bias"] - fmt["mantissa_bits"]), default=0) / total


def _magnitude(fmt: Any, bins: _Bins, power: int) -> float:
    last = -fmt["bias"] - fmt["mantissa_bits"]
    return sum(n * 2.0**e for e, n in bins if e + power <= last) / sum(n * 2.0**e for e, n in bins)


def _not_normal(fmt: Any, bins: _Bins, power: int) -> float:
    return sum(n for e, n in bins if e + power < 1 - fmt["bias"]) / sum(n for _, n in bins)


# Each is (the share that a mistake takes for lost, what is wrong, what to do).
_SHARES: list[tuple[Callable[[Any, _Bins, int], float], str, str]] = [
    (
        _most_in_a_bin,
        "your code allows each bin to lose 1 % of the values",
        "add up what all bins lose",
    ),
    (
        _magnitude,
        "your code weights values by their size",
        "count values: a small gradient counts as much as a large one",
    ),
    (
        _not_normal,
        "your code counts subnormals as flushed",
        "subnormals have fewer bits, but are not 0: which is the largest value that becomes 0?",
    ),
]
_SLIPS = (
    _exponent_came,
    _never_below_one,
    _empty_bins_overflow,
    _upper_edge_left_out,
    _at_one_per_cent,
    _other_share,
)
