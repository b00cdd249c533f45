"""calibrate: the grid of integers for a range, the integers on it, and which range to take, from a histogram."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong

WITHIN = 1.02  # of the least error, promised in the text
METHODS = ("max", "percentile", "least")


@exercise("calibrate", digits=13)
class Calibrate:
    """Scale and zero point of ranges, integers of tensors, and ranges chosen from histograms by three methods.

    The evidence has what `grid`, `integers` and `calibrate` give, in that order of judging. For the least error any
    choice counts whose error on the histogram is at most 2 % above that of the reference's.
    """

    def probe(self, student: Any, case: Any) -> Any:
        ranges = [_pair(student.grid(one["low"], one["high"], symmetric=one["symmetric"])) for one in case["ranges"]]
        integers = [_asked_integers(student, one) for one in case["tensors"]]
        chosen = [
            {
                name: _pair(
                    student.calibrate(list(one["counts"]), list(one["edges"]), method=name, symmetric=one["symmetric"])
                )
                for name in METHODS
            }
            for one in case["histograms"]
        ]
        return {"ranges": ranges, "integers": integers, "chosen": chosen}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _judge_ranges(case["ranges"], got["ranges"], want["ranges"])
        for asked, found, right in zip(case["tensors"], got["integers"], want["integers"], strict=True):
            _judge_integers(asked, found, right)
        for method in METHODS:
            for seen, found, right in zip(case["histograms"], got["chosen"], want["chosen"], strict=True):
                _judge_choice(seen, method, found, right)

    def inputs(self, case: Any) -> Any:
        """The case, with its tensors as tensors."""
        tensors = [{**one, "values": _tensor(one)} for one in case["tensors"]]
        return {**case, "tensors": tensors}

    def yours(self, case: Any, got: Any) -> str:
        """Scales and zero points."""
        grids = ", ".join(f"({scale:.4g}, {zero:g})" for scale, zero in got["ranges"])
        chosen = "; ".join(
            ", ".join(f"{name} ({one[name][0]:.4g}, {one[name][1]:g})" for name in METHODS) for one in got["chosen"]
        )
        return f"grids {grids}; from the histograms {chosen}"

    def show(self, case: Any) -> str:
        """The ranges, and what the histograms hold."""
        ranges = ", ".join(
            f"{one['low']:.3g} to {one['high']:.3g}{' symmetric' if one['symmetric'] else ''}" for one in case["ranges"]
        )
        seen = "; ".join(
            f"{sum(one['counts']):g} values in {len(one['counts'])} bins from {one['edges'][0]:g} to "
            f"{one['edges'][-1]:g}{', symmetric' if one['symmetric'] else ''}"
            for one in case["histograms"]
        )
        return f"ranges {ranges}; histograms: {seen}"


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


def _pair(given: Any) -> list[float]:
    scale, zero = given
    return [float(scale), float(zero)]


def _tensor(asked: Any) -> Any:
    import torch

    return torch.tensor(asked["values"], dtype=torch.float64).view(asked["shape"])


def _asked_integers(student: Any, asked: Any) -> list[float]:
    import torch

    many = asked["axis"] is not None
    scale, zero = (list(asked[name]) if many else asked[name] for name in ("scale", "zero_point"))
    given = student.integers(_tensor(asked), scale, zero, axis=asked["axis"], symmetric=asked["symmetric"])
    return [float(one) for one in torch.as_tensor(given).flatten().tolist()]


def _judge_ranges(asked: Any, got: Any, want: Any) -> None:
    scales, zeros = ([one[at] for one in got] for at in (0, 1))
    right, whole = ([one[at] for one in want] for at in (0, 1))
    for slip, what, then in _SCALE_SLIPS:
        wrong = [slip(one, scale) for one, scale in zip(asked, right, strict=True)]
        if not _alike(scales, right) and _alike(scales, wrong):
            raise Wrong(what, why=_first_off(asked, scales, right, "a scale of"), next=then)
    for one, scale, aimed in zip(asked, scales, right, strict=True):
        if not close(scale, aimed):
            why = f"{scale:.6g} for {aimed:.6g}, from {one['low']:.4g} to {one['high']:.4g}"
            then = "how many steps are there from the lowest number to the highest?"
            kind = "symmetric" if one["symmetric"] else "affine"
            raise Wrong(f"another scale belongs to this {kind} range", why=why, next=then)
    if any(zero != round(zero) for zero in zeros if math.isfinite(zero)):
        why = _first_off(asked, zeros, whole, "a zero point of")
        raise Wrong("zero is no number of the grid: its zero point is not whole", why=why, next="round it")
    for shift, what, then in _ZERO_SLIPS:
        some = [at for at, one in enumerate(asked) if one["low"] != one["high"]]
        if zeros != whole and all(zeros[at] == shift(asked[at], whole[at]) for at in some):
            raise Wrong(what, why=_first_off(asked, zeros, whole, "a zero point of"), next=then)
    if zeros != whole:
        why = _first_off(asked, zeros, whole, "a zero point of")
        raise Wrong("zero lies elsewhere on the grid", why=why, next="which integer does the value 0 become?")


def _unwidened(asked: Any, scale: float) -> float:
    return scale if asked["symmetric"] or asked["low"] == asked["high"] else (asked["high"] - asked["low"]) / 255


def _to_128(asked: Any, scale: float) -> float:
    return scale * 127 / 128 if asked["symmetric"] and asked["low"] != asked["high"] else scale


def _of_256(asked: Any, scale: float) -> float:
    if asked["low"] == asked["high"]:
        return scale
    return scale * (254 / 256 if asked["symmetric"] else 255 / 256)


_SCALE_SLIPS: Any = (
    (_unwidened, "zero is no number of the grid: the range does not reach it", "widen the range to hold 0"),
    (
        lambda asked, scale: scale if asked["symmetric"] else _of_256(asked, scale),
        "the steps between n numbers are n - 1",
        "from -128 to 127 there are 255 steps",
    ),
    (
        _of_256,
        "the steps between n numbers are n - 1",
        "from -128 to 127 there are 255 steps",
    ),
    (_to_128, "a symmetric grid has no -128", "as many numbers below 0 as above: where does it end?"),
    (
        lambda asked, scale: scale * 127 / 127.5 if asked["symmetric"] and asked["low"] != asked["high"] else scale,
        "a symmetric grid has no -128",
        "there are 254 steps from -127 to 127",
    ),
    (
        lambda asked, scale: abs(asked["high"]) / 127 if asked["symmetric"] and asked["high"] else scale,
        "the lower end of a symmetric range counts as well",
        "the larger magnitude of the two",
    ),
)  # fmt: skip
_ZERO_SLIPS: Any = (
    (lambda asked, zero: zero if asked["symmetric"] else zero + 128, "the zero point was counted from 0", "from -128"),
    (
        lambda asked, zero: zero if asked["symmetric"] else -zero,
        "the zero point has the wrong sign",
        "low becomes -128",
    ),
)


def _alike(found: Any, right: Any) -> bool:
    return all(close(a, b, rtol=1e-9) for a, b in zip(found, right, strict=True))


def _first_off(asked: Any, found: Any, right: Any, name: str) -> str:
    for one, a, b in zip(asked, found, right, strict=True):
        if not close(a, b):
            kind = " symmetric" if one["symmetric"] else ""
            return f"{one['low']:.4g} to {one['high']:.4g}{kind} has {name} {b:.6g}, and {a:.6g} came"
    return ""


def _judge_integers(asked: Any, found: list[float], right: list[float]) -> None:
    if len(found) != len(right):
        why = f"{len(found)} integers for {len(right)} values"
        raise Wrong("there is not one integer for each value", why=why, next="keep the shape")
    if found == right:
        return
    lowest = -127 if asked["symmetric"] else -128
    off = [(a, b) for a, b in zip(found, right, strict=True) if a != b]
    why = f"{off[0][0]:g} came for {off[0][1]:g}; {len(off)} of {len(right)} differ"
    if any(one != round(one) for one in found if math.isfinite(one)):
        raise Wrong("these are no integers", why=why, next="round")
    if all(b in (lowest, 127) for _, b in off):
        if asked["symmetric"] and all(a == -128 for a, _ in off):
            raise Wrong("an integer of a symmetric grid is -128", why=why, next="its ends are -127 and 127")
        if any(not lowest <= a <= 127 for a, _ in off):
            raise Wrong("values beyond the grid are not brought to its ends", why=why, next="clamp")
        then = "clamp before the type becomes int8: what does 130 become as an int8?"
        raise Wrong("values beyond the grid come round at its other end", why=why, next=then)
    if asked["axis"] is not None:
        then = f"scale i belongs to index i of dimension {asked['axis']}: give the scales a shape that says so"
        what = "scales and zero points lie along another dimension"
        raise Wrong(what, why=f"axis={asked['axis']}, shape {asked['shape']}: {why}", next=then)
    if all(abs(a - b) <= 1 for a, b in off):
        raise Wrong("values are cut off or rounded late, and not to the nearest", why=why, next="round value / scale")
    values = [float(one) for one in _tensor(asked).flatten()]
    scale, zero = asked["scale"], asked["zero_point"]
    if found == [float(max(lowest, min(127, round((one + zero) / scale)))) for one in values]:
        then = "value / scale, and then the zero point: it counts steps, not units"
        raise Wrong("the zero point is added before the division", why=f"{why}; recomputed so, it is yours", next=then)
    raise Wrong("other integers belong to these values", why=why, next="value / scale, and then the zero point")


def _judge_choice(seen: Any, method: str, found: Any, right: Any) -> None:
    (scale, zero), (aimed, place) = found[method], right[method]
    if not (math.isfinite(scale) and scale > 0 and math.isfinite(zero)):
        raise Wrong("a scale is above 0 and finite", why=f"{method}: {scale:g}, {zero:g}", next="grid(low, high)")
    same = {name: close(scale, right[name][0]) and zero == right[name][1] for name in METHODS}
    if method == "least":
        least = expected_error(seen, aimed, place)
        error = expected_error(seen, scale, zero)
        if zero == round(zero) and error <= WITHIN * least:
            return
        why = f"its error is {error / least:.4g} times the least"
        if same["max"]:
            then = "try smaller ranges: what is kept has an error too, and the wider the step the more"
            raise Wrong("the least error is that of everything kept", why=why, next=then)
        if same["percentile"]:
            raise Wrong("the percentile's range was taken for the least error's", why=why, next="compare errors")
        edges = seen["edges"]
        finest = [_scale_of(a, b, seen) for at, a in enumerate(edges) for b in edges[at + 1 :]]
        if close(scale, min(one for one in finest if one > 0)):
            then = "what is cut off costs the square of its distance to the nearer end"
            raise Wrong("the finest grid of all was taken for the least error's", why=why, next=then)
        then = "both ends by themselves: price every pair of edges" if not seen["symmetric"] else "try every edge"
        raise Wrong("another range has a smaller error", why=why, next=then)
    if same[method]:
        return
    why = f"{method}: scale {scale:.6g}, zero point {zero:g}; {aimed:.6g} and {place:g} are right"
    whole = seen["edges"]
    if method == "max":
        if close(scale, _scale_of(whole[0], whole[-1], seen)):
            raise Wrong(
                "empty bins at the ends count for nothing", why=why, next="where are the first and last counts?"
            )
        raise Wrong(
            "the range of all counts is another one", why=why, next="from the first bin with a count to the last"
        )
    if same["max"]:
        raise Wrong("single outliers still set the range", why=why, next="leave out bins while few counts lie there")
    by_bins = max(1, round(0.0005 * len(seen["counts"])))
    if close(scale, _scale_of(whole[by_bins], whole[-1 - by_bins], seen)):
        raise Wrong("a share of the bins was left out, not of the counts", why=why, next="add up counts")
    then = "0.05 % of the counts at each end, symmetric 0.1 % beyond both: whole bins, never more than that"
    raise Wrong("the percentile leaves out another share of the counts", why=why, next=then)


def _scale_of(low: float, high: float, seen: Any) -> float:
    return max(-low, high) / 127 if seen["symmetric"] else (max(high, 0.0) - min(low, 0.0)) / 255
