"""where_it_breaks and static_scale: the ends of a format, and a histogram of gradients to fit between them."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.encode_decode import NAMED, draw_format, largest_exponent

_ENDS = ("flushed", "largest", "overflows", "rounded")
_TARGETS = (NAMED[0], NAMED[3], NAMED[2])
# Above this, a whole number and the next one would be the same double.
_MOST_EXPONENT = 40


@exercise("where_it_breaks", uses=("encode_decode",), digits=17)
class WhereItBreaks:
    """The last number that flushes, the largest, the first that overflows, the first whole number that is rounded.

    `student.where_it_breaks(fmt)` gives a dict of four numbers: flushed, largest, overflows, rounded.
    """

    def cases(self, rng: Any) -> list[Any]:
        drawn: list[dict[str, Any]] = []
        while len(drawn) < 8:
            fmt = draw_format(rng, has_inf=len(drawn) % 2 == 0)
            if fmt["mantissa_bits"] + 2 <= largest_exponent(fmt) <= _MOST_EXPONENT:
                drawn.append(fmt)
        return [dict(one) for one in NAMED] + drawn

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

    def cases(self, rng: Any) -> list[Any]:
        # What is asked for: "few" is a histogram that fits easily, "tight" just fits, "wide" cannot.
        kinds = ["few", "few", "large", "tight", "tight", "wide", "wide", "few", "lumps", "lumps", "at one per cent"]
        # These fill the format to its end, and empty bins lie above.
        kinds += ["flat", "flat"]
        return [_histogram(rng, kind, dict(_TARGETS[i % 3])) for i, kind in enumerate(kinds)]

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
        why = "at that scale one per cent of the values or more becomes 0"
        return Wrong("too many values are still flushed", why=why, next="count values, not bins, and stay below 1 %")
    why = f"a scale of {right / mine:.3g} times yours saves 99 % too, and leaves more room above"
    return Wrong("the scale is larger than needed", why=why, next="return the smallest that flushes less than 1 %")


def _histogram(rng: Any, kind: str, fmt: dict[str, Any]) -> dict[str, Any]:
    """Counts by bin of log2 magnitude, placed against the format's range as `kind` says."""
    width = largest_exponent(fmt) - (1 - fmt["bias"] - fmt["mantissa_bits"])
    span = {"wide": width + int(rng.integers(3, 9)), "tight": width - 1, "flat": width}.get(
        kind, int(rng.integers(5, max(6, width - 3)))
    )
    start = int(rng.integers(-60, -20)) if kind != "large" else int(rng.integers(largest_exponent(fmt) - 3, 20))
    exponents = list(range(start - 6, start + span + 4))
    middle, spread = start + span / 2, span / (2.0 if kind == "wide" else 4.5)
    heights = [math.exp(-(((k - middle) / spread) ** 2)) if start <= k < start + span else 0.0 for k in exponents]
    counts = [int(1e5 * height * float(rng.uniform(0.7, 1.3))) + (height > 0) for height in heights]
    if kind == "lumps":
        # Most values in one bin, and nearly all bins hold a few: a share of bins is not a share of values.
        counts = [40 if count else 0 for count in counts]
        counts[6 + int(rng.integers(2, span - 1))] = int(rng.integers(20_000, 60_000))
    if kind == "flat":
        counts = [int(rng.integers(300, 400)) if count else 0 for count in counts]
    if kind == "at one per cent":
        counts = [0] * len(exponents)
        counts[6], counts[8], counts[6 + span - 1] = 10, 40, 950
    return {"format": fmt, "exponents": exponents, "counts": counts}
