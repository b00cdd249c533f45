"""where_it_breaks and static_scale: the ends of a format, and a histogram of gradients to fit between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.scale_slips import filled_bins, known_scale_slip

_ENDS = ("flushed", "largest", "overflows", "rounded")


@exercise("where_it_breaks", uses=("encode_decode",), digits=17)
class WhereItBreaks(Exercise):
    """The last number that flushes, the largest, the first that overflows, the first whole number that is rounded.

    `student.where_it_breaks(fmt)` gives a dict of four numbers: flushed, largest, overflows, rounded.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        return student.where_it_breaks(dict(given))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if _other_bias(case, got, want):
            usual = 2 ** (case["exponent_bits"] - 1) - 1
            why = (
                f"your `flushed` and `largest` are those of a bias of {usual}, but this format has "
                f"a bias of {case['bias']} ({case['name']})"
            )
            raise Wrong("your code does not use the bias of the format", why=why, next='use fmt["bias"]')
        for end in _ENDS:
            if got[end] != want[end]:
                mistake = _END_MISTAKES[end](case, got[end], want[end])
                raise Wrong(mistake, why=f"{case['name']}: your `{end}` is {got[end]!r}", next=_END_NEXT[end])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """One mistake in the largest numbers of all formats, or one format's number for all formats."""
        return _largest_slip(cases, got, want) or _one_for_all(cases, got, want)


def _one_for_all(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    same = {answer["rounded"] for answer in got}
    if len(same) > 1 or not all(got[i][end] == want[i][end] for i in range(len(got)) for end in _ENDS[:-1]):
        return None
    (number,) = same
    whose = [case["name"] for case, right in zip(cases, want, strict=True) if right["rounded"] == number]
    why = f"your `rounded` is {number!r} for every format" + (f", which is that of {whose[0]}" if whose else "")
    return Wrong(
        "your function returns one number for all formats",
        why=why,
        next="search with your encode(), which receives fmt",
    )


def _largest_slip(cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
    rows = [(case, mine["largest"], right["largest"]) for case, mine, right in zip(cases, got, want, strict=True)]
    if any(mine["flushed"] != right["flushed"] for mine, right in zip(got, want, strict=True)):
        return None
    for largest, what, then in _LARGEST_SLIPS:
        off = [(case, mine) for case, mine, right in rows if mine != right]
        if off and all(mine == largest(case, right) for case, mine, right in rows):
            return Wrong(what, why=f"{off[0][0]['name']}: your largest is {off[0][1]!r}", next=then)
    return None


# Each is (a mistake's largest number by the format and the right one, what is wrong, what to do).
_LARGEST_SLIPS: list[tuple[Callable[[Any, float], float], str, str]] = [
    (
        lambda fmt, right: right * 2 if fmt["has_inf"] else right,
        "your largest number is twice the right one: with `has_inf`, the largest exponent field means infinity or NaN",
        "which exponent field is the last one for numbers?",
    ),
    (
        lambda fmt, right: right if fmt["has_inf"] else right + right / (2 ** (fmt["mantissa_bits"] + 1) - 2),
        "your code takes the pattern of all ones for the largest number, but it is NaN",
        "use the code below it: without infinity, NaN is only this one code",
    ),
]


@exercise("static_scale", uses=("where_it_breaks",), digits=17)
class StaticScale(Exercise):
    """The smallest loss scale that saves 99 % of a histogram of gradients, or a refusal.

    `student.static_scale(exponents, counts, fmt)` gives a power of two, or raises ValueError.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        try:
            scale = student.static_scale(list(given["exponents"]), list(given["counts"]), dict(given["format"]))
        except NotImplementedError:
            raise
        except ValueError:
            return {"refused": True, "scale": 0.0}
        return {"refused": False, "scale": scale}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if want["refused"] and not got["refused"]:
            why = f"{case['format']['name']}: a scale that saves 99 % of the values makes the largest ones overflow"
            raise Wrong(
                "your function returned a scale where no scale is right",
                why=why,
                next="raise ValueError if every scale flushes too many values or overflows",
            )
        if got["refused"] and not want["refused"]:
            why = f"a power of two fits this histogram into {case['format']['name']}"
            then = "can your scale be below 1? Do you count empty bins? Is your share a share of values, or of bins?"
            raise Wrong("your function refused a histogram that fits", why=why, next=then)
        if not close(got["scale"], want["scale"], rtol=1e-12):
            raise _scale_mistake(got["scale"], want["scale"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The mistake that gives every answer that came back."""
        return known_scale_slip(cases, got, want)

    def format_case(self, case: Any) -> str:
        """The histogram's filled bins, as rows, and which of the others it lists."""
        filled = ", ".join(f"2^{exponent}: {count}" for exponent, count in filled_bins(case))
        none = ", ".join(_empty_bins(case))
        more = f"\nempty bins: {none}" if none else ""
        return f"format {case['format']['name']}\nvalues in each bin from 2^k to 2^(k+1): {filled}{more}"


def _empty_bins(case: Any) -> list[str]:
    """The listed bins without values, as texts, those side by side as one."""
    filled, texts, first = {exponent for exponent, _ in filled_bins(case)}, [], None
    for exponent in sorted(case["exponents"]):
        first = None if exponent in filled else exponent if first is None else first
        if first is not None and (exponent + 1 in filled or exponent == max(case["exponents"])):
            texts.append(f"2^{first} to 2^{exponent}" if first < exponent else f"2^{first}")
    return texts


def _other_bias(fmt: Any, got: Any, want: Any) -> bool:
    """Whether both ends are those that the format would have with the bias that IEEE formats have."""
    shift = fmt["bias"] - 2 ** (fmt["exponent_bits"] - 1) + 1
    return bool(shift) and all(got[end] == want[end] * 2.0**shift for end in ("flushed", "largest"))


def _flushed(fmt: Any, mine: Any, right: float) -> str:
    if close(mine, 2 * right):
        return "your answer is the smallest number of the format, which does not become 0"
    if close(mine, right * 2 ** fmt["mantissa_bits"]) or close(mine, 2 * right * 2 ** fmt["mantissa_bits"]):
        return "your code leaves out the subnormals"
    if mine < right and close(mine, right):
        return "half of the smallest number is a tie that your code rounds up, but its even neighbour is 0"
    return "your answer is not the largest value that becomes 0"


def _largest(fmt: Any, mine: Any, right: float) -> str:
    if fmt["has_inf"]:
        return "your answer is not the largest number of the format"
    return "your answer is not the largest number of a format without infinity"


def _overflows(fmt: Any, mine: Any, right: float) -> str:
    if right - 1 == mine and not fmt["has_inf"]:
        return "at the end of the range, your code rounds a tie up, but its even neighbour is the one below"
    if right + 1 == mine:
        return "at the end of the range, your code rounds a tie down, but its even neighbour is the one above"
    if mine < right:
        what = "your answer is rounded back to the largest number"
        return what + ": neighbours are further apart there than at 1"
    return "your answer is not the smallest whole number that overflows"


def _rounded(fmt: Any, mine: Any, right: float) -> str:
    if mine == right - 1:
        return "your answer is a power of two, which is never rounded"
    if mine == (right - 1) // 2 + 1:
        return "your code does not count the leading 1: a whole number has m + 1 bits"
    return "your answer is not the first whole number that is rounded"


_END_MISTAKES = {"flushed": _flushed, "largest": _largest, "overflows": _overflows, "rounded": _rounded}
_END_NEXT = {
    "flushed": "halve the smallest number: to which of its two neighbours is this tie rounded?",
    "largest": "which code is the last before infinity, or before NaN where there is no infinity?",
    "overflows": "the midpoint between the largest number and the next one is a tie: in which direction is it rounded?",
    "rounded": "with m mantissa bits, up to which number do all whole numbers have a code? Try it with your encode()",
}


def _scale_mistake(mine: Any, right: float) -> Wrong:
    if type(mine) not in (int, float) or not math.isfinite(mine) or mine <= 0 or math.frexp(mine)[0] != 0.5:
        why = "any other factor rounds every gradient once more"
        return Wrong(
            "your scale is not a power of two", why=why, next="try 2.0**k for whole k, including negative ones"
        )
    if close(mine, 1 / right):
        return Wrong(
            "your scale is the inverse of the right one",
            why="gradients are multiplied by the scale",
            next="must gradients become larger or smaller?",
        )
    if mine < right:
        why = f"at your scale of {mine:g}, at least one per cent of the values become 0"
        then = (
            "is a bin at 2^k flushed when its lower edge is, or when its upper edge is?"
            if close(2 * mine, right)
            else ""
        )
        return Wrong(
            "your scale still flushes too many values", why=why, next=then or "count values, not bins; stay below 1 %"
        )
    why = (
        f"your scale is {mine:g}; {right / mine:.3g} times that scale also saves 99 % of the "
        "values, and leaves more room above"
    )
    return Wrong(
        "your scale is larger than needed", why=why, next="return the smallest scale that flushes less than 1 %"
    )
