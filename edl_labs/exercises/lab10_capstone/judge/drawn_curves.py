"""The pairs of same_curve: loss curves of several seeds, before and after a fix, with what the fix did to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from edl_labs.checks import Case, case_source

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
_ALPHA, _TINY = 0.02, 1e-12  # as announced
_SOUND_CUTS = (3, 4, 5, 8)  # equal parts that a sound test may look at; 4 are the solution's
# Places among the sizes of noise, spread so that nothing follows the size, with the quarter that alone, at _ALPHA, says
# "changed" there: so do careless tests of ends, eighths and points. One pair more than may be called changed, and no
# end has three.
_UNLUCKY = {4: 0, 12: -1, 20: 0}
_CLEAR = 2.0  # times a test's level, which p of other noise exceeds: tests that are not listed hardly err there either


@case_source("same_curve")
def pairs(rng: Any) -> list[Case]:
    """One case, of all pairs: what is judged is how often one errs."""
    return [Case.split(_case(rng), "labels", "shapes", "again")]


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
        unlucky = _UNLUCKY.get(size) if shape == "noise" else None
        drawn.append((label, shape, *_clear_pair(rng, label, shape, int(at), relative, unlucky=unlucky)))
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


def _clear_pair(
    rng: Any, label: str, shape: str, number: int, relative: float, *, unlucky: int | None
) -> tuple[Any, Any]:
    """A pair of which all sound tests say the same: luck is no reason to lose points.

    Each of them may err in one pair of noise in fifty, and three errors among all pairs would be too many.
    """
    while True:
        drawn = _pair(rng, shape, number, relative)
        if label == "equal":
            return drawn
        for before, after in [drawn] if unlucky is None else _turned(*drawn, unlucky):
            if label == "noise" and not _is_as_unlucky(before, after, unlucky):
                continue
            clear = 1.0 if unlucky is not None or label == "changed" else _CLEAR
            said = (set(_says_changed(one, before, after, times=clear)) for one in _sound_tests())
            if all(one == {label == "changed"} for one in said):
                return before, after


def _turned(before: Any, after: Any, end: int) -> Iterator[tuple[Any, Any]]:
    """The same noise with other signs of the seeds' differences, as likely: those of which a quarter says "changed"."""
    apart = after - before
    means = apart.reshape(SEEDS, 4, -1).mean(axis=2)[:, end]
    farthest = abs(_patterns() @ means).argsort()[::-1]
    for place in farthest[: int(_ALPHA * len(farthest))]:
        yield before, _rounded(before + _patterns()[place][:, None] * apart)


def _is_as_unlucky(before: Any, after: Any, end: int | None) -> bool:
    """Whether that end alone, or none, says "changed", and careless tests of many looks do where it does."""
    found = [one for one in (0, -1) if any(_says_changed(_end_test(one), before, after))]
    if end is None or found != [end]:
        return end is None and not found
    return all(all(_says_changed(one, before, after)[:3]) for one in (_end_test(end), *_careless_tests()))


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


@dataclass(frozen=True, eq=False)
class _Test:
    """A sign-flip test of several weighted sums over the points: each at `level`, or, without, the largest of them."""

    weights: Any  # [looks, points]
    level: float | None = None
    squares: bool = False  # the sum of squares in place of the largest


@cache
def _sound_tests() -> tuple[_Test, ...]:
    """Tests that call one pair of noise in fifty changed, and see every change that the text tells of."""
    import numpy

    whole, at = numpy.ones((1, POINTS)), numpy.arange(POINTS)
    quarters, halves = _parts(4), _parts(2)
    middle = numpy.roll(halves[:1], POINTS // 4, axis=1)
    turns = numpy.stack([(-1.0) ** (at // length) for length in (1, 2, 4)])
    windows = numpy.stack([(at >= first) & (at < first + 4) for first in range(POINTS - 3)]).astype(float)
    looks = [_parts(parts) for parts in _SOUND_CUTS]
    looks += [numpy.concatenate([whole, quarters]), numpy.concatenate([whole, quarters[[0, -1]], turns[:1]])]
    largest = [looks[-1], quarters, numpy.concatenate([whole, quarters]), numpy.concatenate([whole, windows])]
    largest += [numpy.concatenate([whole, quarters, halves, middle, turns]), _parts(POINTS)]
    squares = _Test(quarters, squares=True)
    return (*(_Test(one, _ALPHA / len(one)) for one in looks), *map(_Test, largest), squares)


@cache
def _end_test(end: int) -> _Test:
    """A test of the first quarter (0) or the last (-1) alone."""
    return _Test(_parts(4)[[end]], _ALPHA)


@cache
def _careless_tests() -> tuple[_Test, ...]:
    """Tests that forget that several looks are several chances: of eighths, of each point."""
    return _Test(_parts(8), _ALPHA), _Test(_parts(POINTS), _ALPHA)


def _parts(count: int) -> Any:
    """Weights for the sums over equal parts."""
    import numpy

    return numpy.concatenate([part.sum(axis=0, keepdims=True) for part in numpy.array_split(numpy.eye(POINTS), count)])


def _says_changed(test: _Test, before: Any, after: Any, *, times: float = 1.0) -> list[bool]:
    """Whether a test at `times` its level says so, for each form of the differences: as they are first."""
    import numpy

    sums = _forms(before, after) @ test.weights.T  # [forms, seeds, looks]
    if test.level is None:
        sums = sums / numpy.sqrt((sums**2).sum(axis=1, keepdims=True))
    turned = abs(_patterns() @ sums)
    if test.level is None:
        turned = (turned**2).sum(axis=2, keepdims=True) if test.squares else turned.max(axis=2, keepdims=True)
    shares = (turned >= turned[:, :1] - _TINY).mean(axis=1).min(axis=1)
    return list(shares <= times * (test.level or _ALPHA))


def _forms(before: Any, after: Any) -> Any:
    """Differences of losses, their shares of the loss, of logarithms, and in units of each point's spread."""
    import numpy

    apart = after - before
    return numpy.stack([apart, apart / before, numpy.log(after / before), apart / apart.std(axis=0)])


@cache
def _patterns() -> Any:
    """Patterns of signs, the one that changes nothing first; those with the last sign turned are mirror images."""
    import numpy

    return numpy.array([(*signs, 1) for signs in itertools.product((1, -1), repeat=SEEDS - 1)])


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
