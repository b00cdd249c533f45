"""What a range that `calibrate` chose says of how it was chosen: each known slip is recomputed on the histogram."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong

WITHIN = 1.02  # of the least error, promised in the text


def expected_error(seen: Any, scale: float, zero: float) -> float:
    """The squared error of a histogram on a grid: a step's twelfth, squared, for what is kept, and what is cut off."""
    lowest = (-127 - zero) * scale if seen["symmetric"] else (-128 - zero) * scale
    highest = (127 - zero) * scale
    error = 0.0
    for count, low, high in zip(seen["counts"], seen["edges"], seen["edges"][1:], strict=False):
        centre = (low + high) / 2
        beyond = max(lowest - centre, centre - highest, 0.0)
        error += count * (beyond**2 if beyond else scale**2 / 12)
    return error


def is_grid(found: Any, right: Any) -> bool:
    """Whether two scales with their zero points are the same."""
    return close(found[0], right[0]) and found[1] == right[1]


def told_least(seen: Any, found: Any, right: Any, ratio: float) -> Wrong:
    """What is wrong with a range whose error is `ratio` times the least."""
    mine, why = found["least"], f"the error of your range is {ratio:.4g} times the least error"
    if is_grid(mine, right["max"]):
        then = "try narrower ranges, too: values on the grid are also rounded, and wider steps make that error larger"
        return Wrong("your range for the least error keeps every value", why=why, next=then)
    if is_grid(mine, right["percentile"]):
        what = "your range for the least error is the range of the percentile"
        return Wrong(what, why=why, next="compare the errors of the possible ranges")
    slips = seen["slips"]
    if close(mine[0], slips["finest"][0]):
        then = "for each value that is cut off, add the square of its distance to the nearer end"
        return Wrong("your range for the least error has the finest possible grid", why=why, next=then)
    for name, (what, then) in _LEAST.items():
        if name in slips and is_grid(mine, slips[name]):
            return Wrong(what, why=f"{why}; this mistake gives exactly your result", next=then)
    then = "does your search try every pair of edges, so that each end moves on its own? If so, compute by hand, for "
    then += "three bins, the error of your range and of a narrower one: which is smaller?"
    return Wrong("your range does not have the smallest error", why=why, next=then)


def told_range(seen: Any, method: str, found: Any, right: Any) -> Wrong:
    """What is wrong with the range of "max" or "percentile"."""
    (scale, zero), (aimed, place) = found[method], right[method]
    why = f"{method!r}: got scale {scale:.6g} and zero point {zero:g}, expected {aimed:.6g} and {place:g}"
    if close(scale, aimed):
        then = "return the result of grid(low, high)"
        return Wrong("your scale is right, but your zero point is not", why=why, next=then)
    for name, (what, then) in _RANGES[method].items():
        if name in seen["slips"] and close(scale, seen["slips"][name][0]):
            return Wrong(what, why=why, next=then)
    if method == "max":
        then = "start at the first bin with a count, and end at the last such bin"
        return Wrong("your range does not run from the first to the last bin with a count", why=why, next=then)
    if is_grid((scale, zero), right["max"]):
        then = "leave out bins at the ends as long as their counts stay within the allowed share"
        return Wrong("in your answer, single outliers still determine the range", why=why, next=then)
    then = (
        "leave out whole bins, with at most 0.05 % of the counts at each end (for a symmetric range, 0.1 % at both "
        "ends together)"
    )
    return Wrong("your percentile leaves out the wrong share of the counts", why=why, next=then)


_FEW = "vary this end, too: the bins there may also have few counts"
_LOWER = ("for the least error, your code does not vary the lower end of the range", _FEW)
_UPPER = ("for the least error, your code does not vary the upper end of the range", _FEW)
_LEAST = {
    "not squared": (
        "in your error, values on the grid cost the scale instead of its square",
        "square the scale: both errors are squared errors",
    ),
    "no counts": (
        "in your error, every bin costs the same, whatever its count",
        "multiply by counts[i], the number of values in the bin",
    ),
    "distance": (
        "in your error, values beyond the grid cost their distance instead of its square",
        "square the distance",
    ),
    "kept is free": (
        "in your error, values on the grid cost nothing",
        "add scale**2 / 12 for each of them: a wide grid is coarse",
    ),
    "lower end 0": _LOWER,
    "lower end 1": _LOWER,
    "upper end 0": _UPPER,
    "upper end 1": _UPPER,
}
_RANGES = {
    "max": {
        "whole": (
            "in your answer, empty bins at the ends widen the range",
            "which bins have the first and last counts?",
        ),
        "last bin": ("your code cuts off the last bin with a count", "end the range at edges[i + 1], where bin i ends"),
    },
    "percentile": {
        "bins": ("your code leaves out a share of the bins, not of the counts", "add up counts instead of bins"),
        "each end": (
            "your symmetric percentile leaves out too few counts",
            "let up to 0.1 % of the counts lie beyond -end and end together, instead of 0.05 % at each end",
        ),
    },
}
