"""Noise as a recording's fingerprint: durations differ from step to step in a way that no second run has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from edl_labs.trace.handed_in import OwnTrace
from edl_labs.trace.trace_table import KINDS, NUMBER, Trace

COPIED = (
    0.9  # rank correlation of noise: two runs of one program were seen at 0.1 to 0.4, copies with 1 % jitter at 1.0
)
_LEAST_EVENTS = 20  # of a step: with fewer, chance alone reaches high correlations
_MOST_STEPS, _MOST_OPERATORS = 8, 500  # a class of 1,000 has 500,000 pairs to compare
_MOST_MOMENTS = 1000  # of sampled lines, between which the clock's microseconds differ
_LEAST_MOMENTS = 20  # with fewer, chance may repeat one or another
_SAME_MOMENTS = 0.9  # of them: a sampler's clock is that of no second run
Noise = dict[str, dict[str, list[float]]]
"""Logarithms of durations by step, of events by name (`named`) and by order alone (`ordered`), where all steps have
them; `moments` between sampled lines."""


def noise_of(one: OwnTrace) -> Noise:
    """What no second run has in common with a recording."""
    moments = [moment for moment, _ in one.trace.meta.get("sampled_lines", ())][:_MOST_MOMENTS]
    between = [round(later - earlier, 6) for earlier, later in pairwise(moments)]
    return {
        "named": _durations(one.trace, is_named=True),
        "ordered": _durations(one.trace, is_named=False),
        "moments": {"all": between},
    }


def likeness(one: Noise, other: Noise) -> float:
    """The rank correlation of the noise of steps of `one` with the most alike steps of `other`, at their median.

    1 where lines were sampled at the same moments. What a whole step has in common is taken off, so that a scaled copy
    has the same noise; and names are not needed, so that a renamed one has. Noise is what differs from the median of
    all steps of both, and of each: some steps of a copy were left out, or one event in all of them was changed.
    """
    if _are_moments_alike(one["moments"]["all"], other["moments"]["all"]):
        return 1.0
    return max(
        (_correlation(*sides) for key in ("named", "ordered") for sides in _aligned(one[key], other[key])), default=0.0
    )


def _durations(trace: Trace, *, is_named: bool) -> dict[str, list[float]]:
    starts = [start for start, _ in trace.steps]
    step_of = np.searchsorted(starts, trace.start_s, side="right") - 1
    seen: list[dict[str, int]] = [defaultdict(int) for _ in starts]
    steps: list[dict[str, float]] = [{} for _ in starts]
    for i in np.flatnonzero(trace.kind != NUMBER["step"]).tolist():
        step, taken_s = int(step_of[i]), float(trace.end_s[i] - trace.start_s[i])
        if step < 0 or taken_s <= 0 or len(steps[step]) >= _MOST_OPERATORS:
            continue
        what = f"{KINDS[trace.kind[i]]} {trace.names[trace.name[i]][:80] if is_named else ''}"
        seen[step][what] += 1
        steps[step][f"{what} {seen[step][what]}"] = taken_s
    kept = steps[1 : 1 + _MOST_STEPS]
    # What is not in every step has no median to be compared with.
    common = set(kept[0]).intersection(*kept[1:]) if kept else set()
    return {key: [round(float(np.log(step[key])), 6) for step in kept] for key in sorted(common)}


def _aligned(one: dict[str, list[float]], other: dict[str, list[float]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The noise of both, a row for each step, by the median of each and by that of both; nothing for few events."""
    keys = [key for key in one if key in other]
    if len(keys) < _LEAST_EVENTS:
        return
    sides = [np.array([noise[key] for key in keys]).T for noise in (one, other)]
    first, second = (side - np.median(side, axis=1, keepdims=True) for side in sides)
    yield first - np.median(first, axis=0), second - np.median(second, axis=0)
    middle = np.median(np.vstack([first, second]), axis=0)
    yield first - middle, second - middle


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's, of each step with the most alike one, at the median."""
    found = _unit_ranks(one) @ _unit_ranks(other).T
    return float(np.median(found.max(axis=1)))


def _unit_ranks(rows: np.ndarray) -> np.ndarray:
    """Ranks along each row, of mean 0 and length 1; zeros where it does not vary."""
    ranks = np.array([_ranks(row) for row in rows])
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    return np.divide(ranks, lengths, out=np.zeros_like(ranks), where=lengths > 0)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean of theirs for equal values."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    ranks: np.ndarray = (upper - (counts - 1) / 2)[where]
    return ranks


def _are_moments_alike(one: list[float], other: list[float]) -> bool:
    """Whether nearly all times between samples of the shorter list are in the other one, in microseconds."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _LEAST_MOMENTS:
        return False
    return sum(a == b for a, b in zip(shorter, longer, strict=False)) > _SAME_MOMENTS * len(shorter)
