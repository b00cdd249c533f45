"""The pairs of same_curve: loss curves of several seeds, before and after a mend, with what the mend did to them."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws

SEEDS, POINTS = 10, 16  # as the text says: ten agree on a sign by chance once in 512, and a quarter is four points
_NOISE, _EQUAL = 24, 6  # pairs of each; changed ones are as many as noise
_AGAIN = 10  # pairs of each kind that are asked again with seeds in another order, a and b exchanged, or seeds mixed up
_SHAPES = ("all along", "late", "early", "crosses")
# A change, in standard deviations of the noise at one point of one seed: in the quarter where it is seen best it is
# four times the noise of a seed's mean, so that ten seeds agree on its sign (99.9 % of 2000 drawn pairs).
_SIZES = (4.5, 6.5)
_SEED_SPREAD = 5.0  # of seeds, in the same unit: what is not paired drowns a change in it
_CARRIED = 0.4  # of the noise, from a point to the next


@draws("same_curve")
def pairs(rng: Any) -> list[Any]:
    """One case, of all pairs: what is judged is how often one errs."""
    labelled = [("noise", "noise")] * _NOISE + [("equal", "equal")] * _EQUAL
    labelled += [("changed", _SHAPES[at % len(_SHAPES)]) for at in range(_NOISE)]
    order = rng.permutation(len(labelled))
    drawn = [(*labelled[at], *_pair(rng, labelled[at][1], at)) for at in order]
    again = [[at for at, (label, *_) in enumerate(drawn) if label == kind][:_AGAIN] for kind in ("changed", "noise")]
    return [
        {
            "differences": [_differences(rng, count) for count in (4, 5, 7, 8)],
            "again": sorted(again[0] + again[1]),
            "pairs": [{"a": before, "b": after} for _, _, before, after in drawn],
            "labels": [label for label, *_ in drawn],
            "shapes": [shape for _, shape, *_ in drawn],
        }
    ]


def _pair(rng: Any, shape: str, number: int) -> tuple[Any, Any]:
    """Two arrays [seeds, points]: equal but for rounding, of noise alone, or with a change of a shape on top."""
    import numpy

    at = numpy.arange(POINTS) / (POINTS - 1)
    start, floor = rng.uniform(2.0, 8.0), rng.uniform(0.2, 2.0)
    curve = floor + (start - floor) * numpy.exp(-rng.uniform(2.5, 5.0) * at)
    sigma = curve * rng.uniform(0.002, 0.012)  # of the noise at each point
    seeds = sigma * _SEED_SPREAD * rng.normal(size=(SEEDS, 1))
    before = curve + seeds + sigma * _noise(rng)
    if shape == "equal":
        after = before * (1 + 2e-8 * rng.normal(size=before.shape))
        return _rounded(before), _rounded(after)
    after = curve + seeds + sigma * _noise(rng)
    if shape == "noise":
        return _rounded(before), _rounded(after)
    size = rng.uniform(*_SIZES) * (1 if number % 2 else -1)  # for the better as often as for the worse
    form = {
        "all along": numpy.full(POINTS, 0.6),
        "late": (at > 0.7).astype(float),
        "early": (at < 0.3).astype(float),
        "crosses": numpy.where(at < 0.5, 0.8, -0.8) * sigma.mean() / sigma,  # what is won first is lost later
    }[shape]
    return _rounded(before), _rounded(after + size * form * sigma)


def _differences(rng: Any, count: int) -> list[float]:
    """Differences whose sums are exact, so that equal sums are equal; the last seed is opposed to the others."""
    found = [int(one) / 64 for one in rng.integers(3, 60, size=count)]
    return [*found[:-1], -min(found)] if count % 2 else found


def _noise(rng: Any) -> Any:
    import numpy

    found = rng.normal(size=(SEEDS, POINTS))
    for point in range(1, POINTS):
        found[:, point] = _CARRIED * found[:, point - 1] + numpy.sqrt(1 - _CARRIED**2) * found[:, point]
    return found


def _rounded(curves: Any) -> Any:
    import numpy

    return numpy.round(curves, 9)
