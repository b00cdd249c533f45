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
    mine, why = found["least"], f"its error is {ratio:.4g} times the least"
    if is_grid(mine, right["max"]):
        then = "try smaller ranges: what is kept has an error too, and the wider the step the more"
        return Wrong("the least error is that of everything kept", why=why, next=then)
    if is_grid(mine, right["percentile"]):
        return Wrong("the percentile's range was taken for the least error's", why=why, next="compare errors")
    slips = seen["slips"]
    if close(mine[0], slips["finest"][0]):
        then = "what is cut off costs the square of its distance to the nearer end"
        return Wrong("the finest grid of all was taken for the least error's", why=why, next=then)
    for name, (what, then) in _LEAST.items():
        if name in slips and is_grid(mine, slips[name]):
            return Wrong(what, why=f"{why}; this gives your result", next=then)
    then = "price your range and a narrower one by the text's rule, by hand, for three bins: which costs less?"
    return Wrong("another range has a smaller error", why=why, next=then)


def told_range(seen: Any, method: str, found: Any, right: Any) -> Wrong:
    """What is wrong with the range of "max" or "percentile"."""
    (scale, zero), (aimed, place) = found[method], right[method]
    why = f"{method}: scale {scale:.6g}, zero point {zero:g}; {aimed:.6g} and {place:g} are right"
    if close(scale, aimed):
        return Wrong("the scale is right, and its zero point is not", why=why, next="end in grid(low, high)")
    for name, (what, then) in _RANGES[method].items():
        if name in seen["slips"] and close(scale, seen["slips"][name][0]):
            return Wrong(what, why=why, next=then)
    if method == "max":
        then = "from the first bin with a count to the last"
        return Wrong("the range of all counts is another one", why=why, next=then)
    if is_grid((scale, zero), right["max"]):
        return Wrong("single outliers still set the range", why=why, next="leave out bins while few counts are there")
    then = "0.05 % of the counts at each end, symmetric 0.1 % beyond both: whole bins, never more than that"
    return Wrong("the percentile leaves out another share of the counts", why=why, next=then)


_FEW = "few counts may be there as well"
_LOWER = ("the lower end of the least error's range was not searched", _FEW)
_UPPER = ("the upper end of the least error's range was not searched", _FEW)
_LEAST = {
    "not squared": ("what is kept is priced by the scale, not by its square", "a squared error, as the other one"),
    "no counts": ("each bin costs alike, whatever its count", "a bin stands for counts[i] values"),
    "distance": ("what is cut off is priced by its distance, not by the square", "the question is the squared error"),
    "kept is free": ("what is kept costs nothing", "a wide grid is coarse: scale**2 / 12 for each value"),
    "lower end 0": _LOWER,
    "lower end 1": _LOWER,
    "upper end 0": _UPPER,
    "upper end 1": _UPPER,
}
_RANGES = {
    "max": {
        "whole": ("you let empty bins at the ends widen the range", "where are the first and last counts?"),
        "last bin": ("the last bin with a count is cut off", "bin i ends at edges[i + 1]"),
    },
    "percentile": {
        "bins": ("a share of the bins was left out, not of the counts", "add up counts"),
        "each end": (
            "a symmetric percentile leaves out too little",
            "0.1 % of the counts may be beyond -end and end, both together: not 0.05 %, and not each end separately",
        ),
    },
}
