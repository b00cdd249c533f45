"""where_it_breaks and static_scale: the ends of a format, and a histogram of gradients to fit between them."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

_ENDS = ("flushed", "largest", "overflows", "rounded")


@exercise("where_it_breaks", uses=("encode_decode",), digits=17)
class WhereItBreaks:
    """The last number that flushes, the largest, the first that overflows, the first whole number that is rounded.

    `student.where_it_breaks(fmt)` gives a dict of four numbers: flushed, largest, overflows, rounded.
    """

    def probe(self, student: Any, case: Any) -> Any:
        return student.where_it_breaks(dict(case))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for end in _ENDS:
            if not close(got[end], want[end], rtol=1e-15):
                mistake = _END_MISTAKES[end](case, got[end], want[end])
                raise Wrong(mistake, why=f"{case['name']}: {end} came back as {got[end]!r}", next=_END_NEXT[end])


@exercise("static_scale", uses=("where_it_breaks",), digits=17)
class StaticScale:
    """The smallest loss scale that saves 99 % of a histogram of gradients, or a refusal.

    `student.static_scale(exponents, counts, fmt)` gives a power of two, or raises ValueError.
    """

    def probe(self, student: Any, case: Any) -> Any:
        try:
            scale = student.static_scale(list(case["exponents"]), list(case["counts"]), dict(case["format"]))
        except NotImplementedError:
            raise
        except ValueError:
            return {"refused": True, "scale": 0.0}
        return {"refused": False, "scale": scale}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if want["refused"] and not got["refused"]:
            why = f"{case['format']['name']}: what saves 99 % of the values makes the largest overflow"
            raise Wrong(
                "a scale came back where none is right", why=why, next="raise ValueError when no scale does both"
            )
        if got["refused"] and not want["refused"]:
            why = f"a power of two fits this histogram into {case['format']['name']}"
            then = "may the scale be below 1? Do empty bins count? Is the share one of values, or of bins?"
            raise Wrong("a histogram that fits was refused", why=why, next=then)
        if not close(got["scale"], want["scale"], rtol=1e-12):
            raise _scale_mistake(got["scale"], want["scale"])

    def show(self, case: Any) -> str:
        """The histogram's filled bins, as rows."""
        rows = zip(case["exponents"], case["counts"], strict=True)
        filled = ", ".join(f"2^{exponent}: {count}" for exponent, count in rows if count)
        return f"format {case['format']['name']}\nvalues in each bin from 2^k to 2^(k+1): {filled}"


def _flushed(fmt: Any, mine: Any, right: float) -> str:
    if close(mine, 2 * right):
        return "the smallest number of the format was taken for one that flushes"
    if close(mine, right * 2 ** fmt["mantissa_bits"]) or close(mine, 2 * right * 2 ** fmt["mantissa_bits"]):
        return "the subnormals were forgotten"
    return "that is not the largest value that becomes 0"


def _largest(fmt: Any, mine: Any, right: float) -> str:
    if fmt["has_inf"]:
        return "that is not the largest number of the format"
    return "that is not the largest number of a format that has no infinity"


def _overflows(fmt: Any, mine: Any, right: float) -> str:
    if right - 1 == mine and not fmt["has_inf"]:
        return "a tie at the end of the range was sent up, and its even neighbour is below"
    if right + 1 == mine:
        return "a tie at the end of the range was sent down, and its even neighbour is above"
    if mine < right:
        return "a value that is rounded back to the largest number was called an overflow"
    return "a smaller whole number overflows already"


def _rounded(fmt: Any, mine: Any, right: float) -> str:
    if mine == right - 1:
        return "a power of two is never rounded"
    return "that is not the first whole number that is rounded"


_END_MISTAKES = {"flushed": _flushed, "largest": _largest, "overflows": _overflows, "rounded": _rounded}
_END_NEXT = {
    "flushed": "halve the smallest number; to which neighbour does the tie go?",
    "largest": "which code is the last before infinity, or before NaN where there is no infinity?",
    "overflows": "between the largest number and what would come next there is a middle; which side does it go to?",
    "rounded": "with m mantissa bits, up to where do all whole numbers have a code? Try with your encode",
}


def _scale_mistake(mine: Any, right: float) -> Wrong:
    if type(mine) not in (int, float) or not math.isfinite(mine) or mine <= 0 or math.frexp(mine)[0] != 0.5:
        why = "any other factor rounds every gradient once more"
        return Wrong("the scale is not a power of two", why=why, next="try 2.0**k for whole k, negative ones too")
    if close(mine, 1 / right):
        return Wrong("the scale is upside down", why="gradients are multiplied by it", next="which way must they move?")
    if mine < right:
        why = f"at your scale of {mine:g} one per cent of the values or more becomes 0"
        then = "is a bin at 2^k flushed when its lower edge is, or its upper?" if close(2 * mine, right) else ""
        return Wrong(
            "too many values are still flushed", why=why, next=then or "count values, not bins; stay below 1 %"
        )
    why = f"yours is {mine:g}; {right / mine:.3g} times as much saves 99 % too, and leaves more room above"
    return Wrong("the scale is larger than needed", why=why, next="return the smallest that flushes less than 1 %")
