"""calibrate: the grid of integers for a range, the integers on it, and which range to take, from a histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.asked_form import tensor_of
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import InputGuard, asked_twice, explained_by_changes
from edl_labs.exercises.lab09_inference.range_symptoms import WITHIN, expected_error, is_grid, told_least, told_range

METHODS = ("max", "percentile", "least")
_WHOLE = 1e-9  # of a step: far above the rounding of three operations on numbers up to 255


@exercise("calibrate", digits=13)
class Calibrate(Exercise):
    """Scale and zero point of ranges, integers of tensors, and ranges chosen from histograms by three methods.

    The evidence has what `grid`, `integers` and `calibrate` give, in that order of judging. For the least error any
    choice counts whose error on the histogram is at most 2 % above that of the reference's.
    """

    answers = ("ranges", "integers", "chosen")

    returns: ClassVar[Mapping[str, Any]] = {"grid": tuple[float, float], "calibrate": tuple[float, float]}

    def probe(self, student: Any, given: Any) -> Any:
        def choose(one: Any, guard: InputGuard) -> dict[str, list[float]]:
            seen = guard("counts", one["counts"]), guard("edges", one["edges"])
            return {name: _pair(student.calibrate(*seen, method=name, symmetric=one["symmetric"])) for name in METHODS}

        def ask(guard: InputGuard) -> dict[str, Any]:
            integers = [_asked_integers(student, one, guard) for one in given["tensors"]]
            return {"integers": integers, "chosen": [choose(one, guard) for one in given["histograms"]]}

        ranges = [_pair(student.grid(one["low"], one["high"], symmetric=one["symmetric"])) for one in given["ranges"]]
        found, changed = asked_twice(ask)
        return {"ranges": ranges, **found, "changed": changed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        with explained_by_changes(got["changed"]):
            self._judge_parts(case, got, want)

    def _judge_parts(self, case: Any, got: Any, want: Any) -> None:
        _judge_ranges(case["ranges"], got["ranges"], want["ranges"])
        for asked, found, right in zip(case["tensors"], got["integers"], want["integers"], strict=True):
            _judge_integers(asked, found, right)
        for method in METHODS:
            for seen, found, right in zip(with_slips(case), got["chosen"], want["chosen"], strict=True):
                _judge_choice(seen, method, found, right)

    def student_inputs(self, case: Any) -> Any:
        """The case, with its tensors as tensors."""
        tensors = [{**one, "values": _tensor(one)} for one in case["tensors"]]
        return {"ranges": case["ranges"], "tensors": tensors, "histograms": case["histograms"]}

    def format_answer(self, case: Any, got: Any) -> str:
        """Scales and zero points."""
        grids = ", ".join(f"({scale:.4g}, {zero:g})" for scale, zero in got["ranges"])
        chosen = "; ".join(
            ", ".join(f"{name} ({one[name][0]:.4g}, {one[name][1]:g})" for name in METHODS) for one in got["chosen"]
        )
        return f"grids {grids}; from the histograms {chosen}"

    def format_case(self, case: Any) -> str:
        """The ranges, and what the histograms hold."""
        ranges = ", ".join(
            f"{one['low']:.3g} to {one['high']:.3g}{' symmetric' if one['symmetric'] else ''}" for one in case["ranges"]
        )
        seen = "; ".join(
            f"{sum(one['counts']):g} values in {len(one['counts'])} bins from {one['edges'][0]:g} to "
            f"{one['edges'][-1]:g}{', symmetric' if one['symmetric'] else ''}"
            for one in case["histograms"]
        )
        tensors = ", ".join(f"{one['shape']} with axis={one['axis']}" for one in case["tensors"])
        return f"ranges: {ranges}; histograms: {seen}; tensors of shape {tensors}"


def with_slips(case: Any) -> list[dict[str, Any]]:
    """The histograms, each with the grids that known slips choose on it."""
    return [{**one, "slips": slips} for one, slips in zip(case["histograms"], case["slips"], strict=True)]


def _pair(given: Any) -> list[float]:
    return [float(one) for one in given]


def _tensor(asked: Any) -> Any:
    import torch

    return torch.tensor(asked["values"], dtype=torch.float64).view(asked["shape"])


def _asked_integers(student: Any, asked: Any, guard: InputGuard) -> list[float]:

    scale, zero = (guard(name, asked[name]) for name in ("scale", "zero_point"))
    values = guard("values", _tensor(asked))
    given = student.integers(values, scale, zero, axis=asked["axis"], symmetric=asked["symmetric"])
    return tensor_of(given, values.shape).flatten().tolist()


def _judge_ranges(asked: Any, got: Any, want: Any) -> None:
    scales, zeros = ([one[at] for one in got] for at in (0, 1))
    right, whole = ([one[at] for one in want] for at in (0, 1))
    for slip, what, then in _SCALE_SLIPS:
        wrong = [slip(one, scale) for one, scale in zip(asked, right, strict=True)]
        if not _alike(scales, right) and _alike(scales, wrong):
            raise Wrong(what, why=_first_off(asked, scales, right, "scale"), next=then)
    for one, scale, aimed in zip(asked, scales, right, strict=True):
        if not close(scale, aimed):
            why = f"got scale {scale:.6g}, expected {aimed:.6g}, for {one['low']:.4g} to {one['high']:.4g}"
            then = "check the ends of the range and the number of steps between them"
            kind = "symmetric" if one["symmetric"] else "affine"
            raise Wrong(f"your scale of this {kind} range is wrong", why=why, next=then)
    if any(zero != round(zero) for zero in zeros if math.isfinite(zero)):
        why = _first_off(asked, zeros, whole, "zero point")
        raise Wrong(
            "your zero point is not an integer, so the grid does not contain 0", why=why, next="round the zero point"
        )
    some = [at for at, one in enumerate(asked) if one["low"] != one["high"]]
    for shifts, what, then in _ZERO_SLIPS:
        if zeros != whole and all(zeros[at] in shifts(asked[at], whole[at]) for at in some):
            raise Wrong(what, why=_first_off(asked, zeros, whole, "zero point"), next=then)
    if zeros != whole:
        why = _first_off(asked, zeros, whole, "zero point")
        raise Wrong("your zero point is wrong", why=why, next="which integer represents the value 0?")


def _unwidened(asked: Any, scale: float) -> float:
    return scale if asked["symmetric"] or asked["low"] == asked["high"] else (asked["high"] - asked["low"]) / 255


def _half_the_width(asked: Any, scale: float) -> float:
    wide = asked["symmetric"] and asked["low"] != asked["high"]
    return float((asked["high"] - asked["low"]) / 2 / 127) if wide else scale


def _to_128(asked: Any, scale: float) -> float:
    return scale * 127 / 128 if asked["symmetric"] and asked["low"] != asked["high"] else scale


def _of_256(asked: Any, scale: float) -> float:
    if asked["low"] == asked["high"]:
        return scale
    return scale * (254 / 256 if asked["symmetric"] else 255 / 256)


_SCALE_SLIPS: Any = (
    (_unwidened, "your grid does not contain 0, because its range does not", "widen the range to include 0"),
    (
        lambda asked, scale: scale if asked["symmetric"] else _of_256(asked, scale),
        "your function counts the numbers of the grid instead of its steps",
        "count the steps: there are 255 from -128 to 127",
    ),
    (
        _of_256,
        "your function counts the numbers of the grid instead of its steps",
        "count the steps: there are 255 from -128 to 127",
    ),
    (_to_128, "your symmetric grid includes -128", "keep as many numbers below 0 as above 0: where does the grid end?"),
    (
        lambda asked, scale: scale * 127 / 127.5 if asked["symmetric"] and asked["low"] != asked["high"] else scale,
        "your symmetric grid includes -128",
        "count the steps from -127 to 127: there are 254",
    ),
    (
        lambda asked, scale: abs(asked["high"]) / 127 if asked["symmetric"] and asked["high"] else scale,
        "your function ignores the lower end of a symmetric range",
        "take the larger magnitude of the two ends",
    ),
    (
        _half_the_width,
        "your function uses half the width of the range as the end of a symmetric range",
        "take the larger magnitude of the two ends",
    ),
)  # fmt: skip


def _cut_by(cut: Any) -> Any:
    """The zero points that `cut` gives in place of rounding: a place that is whole comes out on either side of it."""

    def shifts(asked: Any, zero: float) -> Any:
        place = _place_of_zero(asked)
        return [zero] if asked["symmetric"] else [cut(place - _WHOLE), cut(place + _WHOLE)]

    return shifts


_CUT = (
    "your function does not round the zero point to the nearest integer",
    "what do int(), floor() and ceil() do with 49.7 and 49.2?",
)
_ZERO_SLIPS: Any = (
    (
        lambda asked, zero: [zero if asked["symmetric"] else zero + 128],
        "your function counts the zero point from 0",
        "count from -128, the lowest integer of the grid",
    ),
    (
        lambda asked, zero: [zero if asked["symmetric"] else -zero],
        "your zero point has the wrong sign",
        "choose the zero point so that the lower end of the range becomes -128",
    ),
    *((_cut_by(cut), *_CUT) for cut in (math.trunc, math.floor, math.ceil)),
)


def _place_of_zero(asked: Any) -> float:
    """Where 0 lies among the integers of an affine grid, as a real number."""
    low = min(asked["low"], 0.0)
    return -128 - low * 255 / (max(asked["high"], 0.0) - low)


def _alike(found: Any, right: Any) -> bool:
    return all(close(a, b, rtol=1e-9) for a, b in zip(found, right, strict=True))


def _first_off(asked: Any, found: Any, right: Any, name: str) -> str:
    for one, a, b in zip(asked, found, right, strict=True):
        if not close(a, b):
            kind = "the symmetric range" if one["symmetric"] else "the range"
            return f"got {name} {a:.6g}, expected {b:.6g}, for {kind} {one['low']:.4g} to {one['high']:.4g}"
    return ""


def _judge_integers(asked: Any, found: list[float], right: list[float]) -> None:
    if len(found) != len(right):
        why = f"got {len(found)} integers for {len(right)} values"
        raise Wrong(
            "your function does not return one integer for each value", why=why, next="keep the shape of the values"
        )
    if found == right:
        return
    lowest = -127 if asked["symmetric"] else -128
    off = [(a, b) for a, b in zip(found, right, strict=True) if a != b]
    why = f"got {off[0][0]:g}, expected {off[0][1]:g}; {len(off)} of {len(right)} integers differ"
    if any(one != round(one) for one in found if math.isfinite(one)):
        raise Wrong("your results are not integers", why=why, next="round them")
    if all(b in (lowest, 127) for _, b in off):
        if asked["symmetric"] and all(a == -128 for a, _ in off):
            raise Wrong("your code uses -128 on a symmetric grid", why=why, next="clamp to -127 and 127")
        if all((a, b) == (-127, -128) for a, b in off):
            then = "clamp to -128 and 127: an affine grid has 256 numbers"
            raise Wrong("your code clamps an affine grid at -127 instead of -128", why=why, next=then)
        if any(not lowest <= a <= 127 or (a < 0) == (b < 0) for a, b in off):
            raise Wrong("your code does not set values beyond the grid to its ends", why=why, next="clamp the integers")
        then = "clamp before you convert to int8: what does 130 become as an int8?"
        raise Wrong("in your code, values beyond the grid wrap around", why=why, next=then)
    if asked["axis"] is not None:
        then = f"give the scales a shape in which scale i belongs to index i of dimension {asked['axis']}"
        what = "your code applies scales and zero points along the wrong dimension"
        raise Wrong(what, why=f"axis={asked['axis']}, shape {asked['shape']}: {why}", next=then)
    if all(abs(a - b) <= 1 for a, b in off):
        raise Wrong("your code does not round values to the nearest step", why=why, next="round after you divide")
    values = [float(one) for one in _tensor(asked).flatten()]
    scale, zero = asked["scale"], asked["zero_point"]
    if found == [float(max(lowest, min(127, round((one + zero) / scale)))) for one in values]:
        then = "divide by the scale first, then add the zero point: a zero point counts steps of the grid"
        why = f"{why}; this mistake gives exactly your result"
        raise Wrong("your code adds the zero point before the division", why=why, next=then)
    raise Wrong("your integers are wrong", why=why, next="divide by the scale, then add the zero point")


def _judge_choice(seen: Any, method: str, found: Any, right: Any) -> None:
    (scale, zero), (aimed, place) = found[method], right[method]
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(zero)):
        why = f"{method!r}: got scale {scale:g} and zero point {zero:g}"
        raise Wrong(
            "one of your scales is not positive and finite", why=why, next="return the result of grid(low, high)"
        )
    if method == "least":
        least, error = (expected_error(seen, *one[method]) for one in (right, found))
        if zero != round(zero) or error > WITHIN * least:
            raise told_least(seen, found, right, error / least)
    elif not is_grid((scale, zero), (aimed, place)):
        raise told_range(seen, method, found, right)
