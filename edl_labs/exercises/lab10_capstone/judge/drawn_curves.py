"""The pairs of same_curve: loss curves of several seeds, before and after a mend, with what the mend did to them."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab10_capstone.curves_of_seeds import MOST_WRONG

SEEDS, POINTS = 10, 16  # as the text says: ten agree on a sign by chance once in 512, and a quarter is four points
_NOISE, _EQUAL = 24, 6  # pairs of each; changed ones are as many as noise
_NEAR = ("near", "near, small", "one point", "one point")  # noise too: below a careless tolerance
_AGAIN = 10  # pairs of each kind that are looked at again: seeds in another order, a and b exchanged, seeds mixed up, …
_SHAPES = ("all along", "late", "early", "crosses")
# A change, in standard deviations of the noise at one point of one seed: in the quarter where it is seen best it is
# four times the noise of a seed's mean, so that ten seeds agree on its sign (99.9 % of 2000 drawn pairs).
_SIZES = (4.5, 6.5)
# Relative to the loss: a fixed yardstick errs in five pairs of ten, since a small change is far below a large noise.
_NOISES = (0.0005, 0.02)
_SEED_SPREAD = 12.0  # of seeds, in units of the noise: a test that does not pair them sees no change
_SMALL = 0.02  # times other losses, of some pairs: the largest difference then is below 1e-6
_CARRIED = 0.4  # of the noise, from a point to the next
_NEARLY = (4e-6, 1e-4)  # relative differences: of all points, or of one point of one seed; ROUNDING is 1e-6
_MOST_ERRORS = 1  # of the quarters' test, of either kind: two may be made, and one draw in a hundred has three
_ALPHA = 0.02  # as announced
_SOUND_CUTS = (3, 4, 5, 8)  # tests of so many parts err as seldom, and unlucky noise is no reason to lose points


@case_source("same_curve")
def pairs(rng: Any) -> list[Case]:
    """One case, of all pairs: what is judged is how often one errs."""
    while True:
        case = _case(rng)
        if _tells(case):
            return [Case.split(case, "labels", "shapes", "again")]


def _case(rng: Any) -> dict[str, Any]:
    labelled = [("noise", "noise")] * _NOISE + [("equal", "equal")] * _EQUAL
    labelled += [("changed", _SHAPES[at % len(_SHAPES)]) for at in range(_NOISE)]
    labelled += [("noise", shape) for shape in _NEAR]
    order = rng.permutation(len(labelled))
    sizes = {kind: list(rng.permutation(_NOISE)) for kind in ("noise", "changed")}
    drawn = []
    for at in order:
        label, shape = labelled[at]
        size = sizes[label].pop() if shape in ("noise", *_SHAPES) else int(rng.integers(_NOISE))
        relative = _NOISES[0] * (_NOISES[1] / _NOISES[0]) ** ((size + rng.random()) / _NOISE)
        drawn.append((label, shape, *_pair(rng, shape, at, relative)))
    again = [
        [at for at, (label, shape, *_) in enumerate(drawn) if label == kind and shape not in _NEAR][:_AGAIN]
        for kind in ("changed", "noise")
    ]
    return {
        "differences": [*(_differences(rng, count) for count in (4, 5, 7, 8)), _tied(rng)],
        "again": sorted(again[0] + again[1]),
        "pairs": [{"a": before, "b": after} for _, _, before, after in drawn],
        "labels": [label for label, *_ in drawn],
        "shapes": [shape for _, shape, *_ in drawn],
    }


def _pair(rng: Any, shape: str, number: int, relative: float) -> tuple[Any, Any]:
    """Two arrays [seeds, points]: equal but for rounding, of noise alone, or with a change of a shape on top."""
    import numpy

    at = numpy.arange(POINTS) / (POINTS - 1)
    start, floor = rng.uniform(2.0, 8.0), rng.uniform(0.2, 2.0)
    curve = floor + (start - floor) * numpy.exp(-rng.uniform(2.5, 5.0) * at)
    sigma = curve * relative  # of the noise at each point
    drawn = rng.normal(size=(SEEDS, 1))
    # Seeds cross: their order by the last loss is not that by the mean.
    place = ((1 - at) * drawn + at * numpy.roll(drawn, SEEDS // 2 - 1, axis=0)) / numpy.hypot(1 - at, at)
    seeds = curve * numpy.exp(relative * _SEED_SPREAD * place)
    before = seeds + sigma * _noise(rng)
    if shape in ("equal", *_NEAR):
        after = before * (1 + 2e-8 * rng.normal(size=before.shape))
        if shape in ("near", "near, small"):
            after = before * (1 + _NEARLY[0] * rng.choice([-1, 1], size=before.shape))
        if shape == "near, small":  # no difference is as large as ROUNDING, and all are larger than it allows
            before, after = _SMALL * before, _SMALL * after
        if shape == "one point":
            after[rng.integers(SEEDS), rng.integers(POINTS)] *= 1 + _NEARLY[1]
        return _rounded(before), _rounded(after)
    after = seeds + sigma * _noise(rng)
    if shape == "noise":
        return _rounded(before), _rounded(after)
    size = rng.uniform(*_SIZES) * (1 if number % 2 else -1)  # for the better as often as for the worse
    form = {
        "all along": numpy.full(POINTS, 0.6),
        "late": (at > 0.7).astype(float),
        "early": (at < 0.3).astype(float),
        "crosses": _crossing(curve),
    }[shape]
    return _rounded(before), _rounded(after + size * form * sigma)


def _crossing(curve: Any) -> Any:
    """Up, down and up again, relative to the loss, so that neither the losses' mean nor the relative one changes."""
    import numpy

    first, second, third, fourth = curve.reshape(4, -1).mean(axis=1)
    middle = (second + third) / 2
    rises = (first - middle) / (middle - fourth)
    form = numpy.array([1.0, -(1 + rises) / 2, -(1 + rises) / 2, rises])
    points = numpy.repeat(0.8 * form / abs(form).max(), POINTS // 4)
    # What is left of both means, since curves bend within a quarter, is taken from two quarters of one curve each.
    known = numpy.stack([numpy.ones(POINTS), curve])
    return points - known.T @ numpy.linalg.solve(known @ known.T, known @ points)


def _tells(case: dict[str, Any]) -> bool:
    """Whether sound tests pass, the quarters' with one error to spare, and the one that forgets its four looks fails.

    Two draws in three are too kind to the latter: its false alarms are MOST_WRONG or fewer.
    """
    careless, _ = _errors(case, parts=4, level=_ALPHA)
    if careless <= MOST_WRONG:
        return False
    errors = {parts: max(_errors(case, parts=parts, level=_ALPHA / parts)) for parts in _SOUND_CUTS}
    return errors[4] <= _MOST_ERRORS and max(errors.values()) <= MOST_WRONG


def _errors(case: dict[str, Any], *, parts: int, level: float) -> tuple[int, int]:
    """False alarms and misses of a sign-flip test of each of equal parts, which calls a p up to `level` a change."""
    import numpy

    patterns = numpy.array(list(itertools.product((1, -1), repeat=SEEDS)))
    alarms = misses = 0
    for pair, label in zip(case["pairs"], case["labels"], strict=True):
        cut = numpy.array_split(pair["b"] - pair["a"], parts, axis=1)
        means = numpy.stack([part.mean(axis=1) for part in cut], axis=1)
        farther = abs(patterns @ means) >= abs(means.sum(axis=0)) - 1e-12
        found = farther.mean(axis=0).min() <= level
        alarms += label == "noise" and found
        misses += label == "changed" and not found
    return alarms, misses


def _differences(rng: Any, count: int) -> list[float]:
    """Differences whose sums are exact, so that equal sums are equal; the last seed is opposed to the others."""
    found = [int(one) / 64 for one in rng.integers(3, 60, size=count)]
    return [*found[:-1], -min(found)] if count % 2 else found


def _tied(rng: Any) -> list[float]:
    """Differences of which two sums are equal, and differ in their last digit as computers add them up."""
    import numpy

    while True:
        first, second, third = (int(one) for one in rng.integers(1, 9, size=3))
        tenths = [first, second, -(first + second), third, *(int(one) for one in rng.integers(9, 20, size=2))]
        found = [one / 10 for one in tenths]
        patterns = list(itertools.product((1, -1), repeat=len(found)))
        exact = _share([sum(s * Fraction(one) for s, one in zip(signs, tenths, strict=True)) for signs in patterns])
        one_by_one = _share([sum(s * one for s, one in zip(signs, found, strict=True)) for signs in patterns])
        at_once = _share(list(numpy.array(patterns) @ numpy.array(found)), float(numpy.sum(found)))
        if one_by_one < exact and at_once < exact:
            return found


def _share(sums: list[Any], seen: Any = None) -> float:
    least = abs(sums[0] if seen is None else seen)
    return sum(abs(one) >= least for one in sums) / len(sums)


def _noise(rng: Any) -> Any:
    import numpy

    found = rng.normal(size=(SEEDS, POINTS))
    for point in range(1, POINTS):
        found[:, point] = _CARRIED * found[:, point - 1] + numpy.sqrt(1 - _CARRIED**2) * found[:, point]
    return found


def _rounded(curves: Any) -> Any:
    import numpy

    return numpy.round(curves, 9)
