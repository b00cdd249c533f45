"""The cases of calibrate: ranges, tensors with scales, and histograms whose outliers cost more to keep than to cut."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab09_inference.judge.histogram_slips import PRICED_WRONGLY, slips_on
from edl_labs.exercises.lab09_inference.range_symptoms import WITHIN, expected_error, is_grid

_BINS = 40  # all pairs of edges are 800, which a slow search prices in a second
_TRIES = 300  # half of the draws are asked, of each kind
_SYMMETRIC = ("tails", "lean")
_INNER = ("tails", "away")  # where a percentile cuts off too much
_NOTHING = ((0.0, 0.0, False), (0.0, 0.0, True))  # ranges of nothing but 0
_DECAYED = 32.25  # values that a drawn one stands for: enough that a step's twelfth, squared, counts beside outliers


@case_source("calibrate")
def calibrations(rng: Any) -> list[Case]:
    shapes = [("one-sided", "tails"), ("away", "skewed"), ("both", "lean")]
    return [_case(rng, pair) for pair in shapes]


def _case(rng: Any, pair: tuple[str, str]) -> Case:
    ranges, tensors = _ranges(rng), _tensors(rng)
    seen, slips = zip(*(_histogram(rng, name, symmetric=name in _SYMMETRIC) for name in pair), strict=True)
    return Case(given={"ranges": ranges, "tensors": tensors, "histograms": seen}, hidden={"slips": slips})


def _ranges(rng: Any) -> list[dict[str, Any]]:
    a, b, c, d = (round(float(value), 4) for value in rng.uniform(0.5, 9, 4))
    pairs = [(-a, b + a, False), (c, c + d, False), (-b - c, -b, False), (-a - 4, d, True), (-a, a + 2, True)]
    pairs += [(-low, high, False) for low, high in (_cut(rng, 0.1, 0.4), _cut(rng, 0.6, 0.9))]
    return [{"low": low, "high": high, "symmetric": one} for low, high, one in [*pairs, *_NOTHING]]


def _cut(rng: Any, least: float, most: float) -> tuple[float, float]:
    """Magnitudes of two ends: 0 lies at such a fraction above the integer below, on the side that int() cuts wrong."""
    while True:
        low, high = (round(float(value), 4) for value in rng.uniform(0.5, 9, 2))
        place = 255 * low / (low + high) - 128
        if least < place % 1 < most and (place > 0) == (least > 0.5):
            return low, high


def _tensors(rng: Any) -> list[dict[str, Any]]:
    side = int(rng.integers(3, 6))
    asked: list[tuple[list[int], int | None, bool]] = [
        ([4 * side], None, False),
        ([4 * side], None, True),
        ([side, side], 0, True),
        ([side, side], 1, False),
        ([2, side, 3], 1, True),
    ]
    return [_tensor(rng, *one) for one in asked]


def _tensor(rng: Any, shape: list[int], axis: int | None, symmetric: bool) -> dict[str, Any]:
    count = 1 if axis is None else shape[axis]
    scales = [round(float(value), 5) for value in rng.uniform(0.01, 0.3, count)]
    zeros = [0 if symmetric else int(value) for value in rng.integers(-120, 120, count)]
    size = 1
    for one in shape:
        size *= one
    # Quarters of a step away from ties; a fifth of the values lie beyond the ends.
    steps = rng.integers(-330, 330, size) + rng.choice([-0.3, 0.1, 0.3], size)
    values = [round(float(step) * scales[int(rng.integers(count))] / 2, 6) for step in steps]
    few = {"scale": scales[0], "zero_point": zeros[0]} if axis is None else {"scale": scales, "zero_point": zeros}
    return {"shape": shape, "axis": axis, "symmetric": symmetric, "values": values, **few}


def _histogram(rng: Any, name: str, *, symmetric: bool) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """One that outliers decide, and the grids of known slips, that can be told from the percentile."""
    for _ in range(_TRIES):
        seen = {**_counted(rng, name), "symmetric": symmetric}
        if _decided_by_outliers(seen, name):
            slips = slips_on(seen)
            if not _hides_a_slip(seen, slips, name):
                return seen, slips
    raise AssertionError(f"no {name} histogram was decided by its outliers; draw other tails")


def _decided_by_outliers(seen: Any, name: str) -> bool:
    """Whether keeping them costs, or leaving out a share does; of some kinds, each end by itself."""
    least = min(error for _, _, error in _priced(seen))
    kept = [at for at, count in enumerate(seen["counts"]) if count]
    whole = _error(seen, seen["edges"][kept[0]], seen["edges"][kept[-1] + 1]) / least
    if name == "both":
        return all(one > 1.1 * least for one in _one_end(seen, kept))
    if name in _INNER:
        return whole > 1.04 and _error(seen, *_percentile(seen)) > 1.1 * least
    return whole > 1.2 and (name in ("one-sided", "lean") or _scaled_together(seen, kept) > 1.06 * least)


def _hides_a_slip(seen: Any, slips: Any, name: str) -> bool:
    """Whether a slip chooses the percentile's range: one in the price of a bin, where that range is wrong, would be
    told of the percentile; one in the percentile itself would be right.
    """
    low, high = _percentile(seen)
    inner = _spread(low, high, seen["symmetric"])
    if name == "tails" and is_grid(slips["each end"], inner):
        return True
    least = min(error for _, _, error in _priced(seen))
    return _error(seen, low, high) > WITHIN * least and any(is_grid(slips[one], inner) for one in PRICED_WRONGLY)


def _counted(rng: Any, name: str) -> dict[str, Any]:
    width = float(2.0 ** -int(rng.integers(1, 5)))
    first = {
        "one-sided": 0,
        "tails": -_BINS // 2,
        "lean": -_BINS // 3,
        "skewed": -_BINS // 4,
        "away": _BINS // 8,
        "both": -_BINS // 2,
    }[name]
    sizes = {
        "one-sided": (0, 3, 4.5),
        "tails": (0, 2.5, 4),
        "lean": (0, 2.5, 4),
        "skewed": (0, 1.5, 4),
        "away": (_BINS // 8 + 4, 1.5, 3),
        "both": (0, 1.5, 2),
    }
    middle, left, right = sizes[name]
    at = rng.gamma(1.2, 1.0, 10_000) * rng.choice([-left, right], 10_000, p=[0.4, 0.6])
    if name == "one-sided":
        at = abs(at)
    places = (at + middle - first).astype(int)
    counts = [0.0] * _BINS
    for place in places[(places > 1) & (places < 7 * _BINS // 10)]:
        counts[place] += _DECAYED
    for place in rng.integers(_BINS * 8 // 10, _BINS - 3, int(rng.integers(1, 3))):
        counts[int(place)] += 0.25 * int(rng.integers(1, 6))
    if name == "both":
        for place in rng.integers(2, 6, 2):
            counts[int(place)] += 0.25 * int(rng.integers(1, 6))
    if name == "skewed":  # outliers in the first and the last bin, where a calibrator's histogram ends
        counts[0], counts[-1] = (0.25 * int(one) for one in rng.integers(1, 4, 2))
    edges = [width * (first + one) for one in range(_BINS + 1)]
    if name == "lean":  # the outliers are negative, where no positive edge has their magnitude
        return {"counts": counts[::-1], "edges": [-one for one in reversed(edges)]}
    return {"counts": counts, "edges": edges}


def _spread(low: float, high: float, symmetric: bool) -> tuple[float, int]:
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        return (max(-low, high) or 127.0) / 127, 0
    scale = (high - low) / 255 or 1.0
    return scale, round(-128 - low / scale)


def _error(seen: Any, low: float, high: float) -> float:
    return expected_error(seen, *_spread(low, high, seen["symmetric"]))


def _priced(seen: Any) -> list[tuple[float, float, float]]:
    edges = seen["edges"]
    if seen["symmetric"]:
        return [(-abs(one), abs(one), _error(seen, -abs(one), abs(one))) for one in edges if one]
    every = [(low, high) for at, low in enumerate(edges) for high in edges[at + 1 :]]
    return [(low, high, _error(seen, low, high)) for low, high in every[:: max(1, len(every) // 500)]]


def _percentile(seen: Any) -> tuple[float, float]:
    counts, edges = seen["counts"], seen["edges"]
    total = sum(counts)
    if seen["symmetric"]:
        for end in sorted({abs(one) for one in edges}):
            beyond = sum(n for n, low, high in zip(counts, edges, edges[1:], strict=False) if high > end or low < -end)
            if beyond <= 0.001 * total:
                return -end, end
    low = max(edge for at, edge in enumerate(edges) if sum(counts[:at]) <= 0.0005 * total)
    high = min(edge for at, edge in enumerate(edges) if sum(counts[at:]) <= 0.0005 * total)
    return low, high


def _scaled_together(seen: Any, kept: list[int]) -> float:
    """The least error where both ends shrink by one factor."""
    low, high = seen["edges"][kept[0]], seen["edges"][kept[-1] + 1]
    return min(_error(seen, part * low / 100, part * high / 100) for part in range(10, 101, 2))


def _one_end(seen: Any, kept: list[int]) -> list[float]:
    """The least errors where one end stays at the first, or the last, count."""
    edges = seen["edges"]
    low, high = edges[kept[0]], edges[kept[-1] + 1]
    return [
        min(_error(seen, low, end) for end in edges if end > low),
        min(_error(seen, end, high) for end in edges if end < high),
    ]
