"""`whose_fault`: does a training loop wait for its data or for its step, and what would fixing either gain?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from edl_labs import stats
from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.units import percent, seconds
from edl_labs.values import Value

VERDICTS = ("data-bound", "compute-bound", "balanced", "inconclusive")
_BLOCKS = 12  # parts of a series: enough for an interval, and long enough to hold a burst each


@dataclass(frozen=True, repr=False)
class Fault(Value):
    """The verdict on a loop, and what it rests on; times are seconds a batch in the steady state.

    `loader_s` with a mock trainer, `step_s` with a mock loader, `loop_s` together. `ratio` is loader over step, with
    its interval. `data_share` of the loop's wall was spent waiting for data, `compute_share` in the step; they sum to
    1. `gain_if_loader_free` and `gain_if_step_free` are how many times as fast the loop would be.
    """

    DERIVED = ("interference", "overlap")

    verdict: str
    loader_s: float
    step_s: float
    loop_s: float
    ratio: float
    ratio_low: float
    ratio_high: float
    data_share: float
    compute_share: float
    share_low: float
    share_high: float
    gain_if_loader_free: float
    gain_if_step_free: float
    startup_s: float
    batches: int
    band: float

    @property
    def interference(self) -> float:
        """How many times longer the loop takes than its slower side alone: 1 where they overlap and share nothing."""
        return _over(self.loop_s, max(self.loader_s, self.step_s))

    @property
    def overlap(self) -> float:
        """The share of the shorter side that is hidden beneath the longer one, 0 to 1."""
        shorter = min(self.loader_s, self.step_s)
        hidden = self.loader_s + self.step_s - self.loop_s
        return min(1.0, max(0.0, hidden / shorter)) if shorter > 0 else 1.0

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"{self.verdict}: {percent(self.data_share)} of the loop waits for data "
                f"[{percent(self.share_low)}, {percent(self.share_high)}]",
                f"  a batch takes {seconds(self.loop_s)}; the loader alone takes {seconds(self.loader_s)}, "
                f"and the step alone {seconds(self.step_s)} (ratio {self.ratio:.2f} "
                f"[{self.ratio_low:.2f}, {self.ratio_high:.2f}])",
                f"  if loading took no time: {self.gain_if_loader_free:.2f}x as fast; if the step took no time: "
                f"{self.gain_if_step_free:.2f}x",
            ]
        )


@checked_arguments()
def fault_of_times(
    loader_s: Sequence[float],
    step_s: Sequence[float],
    wait_s: Sequence[float],
    work_s: Sequence[float],
    *,
    startup_s: float = 0.0,
    band: float = 0.1,
    level: float = 0.95,
) -> Fault:
    """The `Fault` from recorded times: periods of the loader and of the step alone, waits and steps of the loop.

    Data-bound when the whole interval of loader over step lies above 1 + band, compute-bound when it lies below
    1 / (1 + band), balanced when it lies in between; an interval across a border is inconclusive, unless its centre
    lies in the band and all of it within two: then the two sides cost about the same and it is balanced.

    Times of a batch are means, to which rare long ones belong. A stall that came once may be the loader's or the
    machine's: the interval holds both.

    >>> fault_of_times([3.0] * 9, [1.0] * 9, [2.0] * 9, [1.0] * 9).verdict
    'data-bound'
    """
    loop_s = [wait + work for wait, work in zip(wait_s, work_s, strict=True)]
    if min(len(loader_s), len(step_s), len(loop_s)) == 0:
        raise UsageError(
            "one of the four lists of times is empty",
            why="a verdict needs all four lists",
            next="pass at least one time in each list",
        )
    load, work, loop = (_period(times, level) for times in (loader_s, step_s, loop_s))
    low, high = _over(load.low, work.high), _over(load.high, work.low)
    ratio = _over(load.center, work.center)
    share = _share(wait_s, loop_s, level)
    return Fault(
        verdict=_verdict(ratio, low, high, band),
        loader_s=load.center,
        step_s=work.center,
        loop_s=loop.center,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        data_share=share.center,
        compute_share=1 - share.center,
        share_low=max(0.0, share.low),
        share_high=min(1.0, share.high),
        gain_if_loader_free=max(1.0, _over(loop.center, work.center)),
        gain_if_step_free=max(1.0, _over(loop.center, load.center)),
        startup_s=startup_s,
        batches=len(loop_s),
        band=band,
    )


def _verdict(ratio: float, low: float, high: float, band: float) -> str:
    if low > 1 + band:
        return "data-bound"
    if high < 1 / (1 + band):
        return "compute-bound"
    near = (1 + band) ** 2
    return "balanced" if 1 / (1 + band) <= ratio <= 1 + band and low * near >= 1 and high <= near else "inconclusive"


def _period(times: Sequence[float], level: float) -> stats.Estimate:
    return _rate(list(times), [1.0] * len(times), list(times), level)


def _share(wait_s: Sequence[float], loop_s: Sequence[float], level: float) -> stats.Estimate:
    if not sum(loop_s):
        return stats.Estimate(0.0, 0.0, 0.0, level, len(loop_s), 1.0)
    return _rate(list(wait_s), list(loop_s), list(loop_s), level)


def _rate(above: list[float], below: list[float], times: list[float], level: float) -> stats.Estimate:
    """The sum of `above` over that of `below`, with an interval from how much parts of the series differ.

    Single times, and blocks where neighbours resemble each other, are wide where a few stalls make up the time: those
    may be chance. Where workers deliver in bursts, whole bursts (or the steadiest blocks) differ far less than chance
    would have it: then they are the parts.
    """
    count = len(times)
    singles = [slice(n, n + 1) for n in range(count)]
    least, most = count // _BLOCKS, count // (_BLOCKS // 2)
    wide = max(_half(above, below, parts, level) for parts in (singles, _blocks(count, max(1, least))))
    bursts = _bursts(times)
    # A series may begin in the middle of a burst.
    regular = [bursts, bursts[1:], *(_blocks(count, size) for size in range(max(2, least), most + 1))]
    parts = min((p for p in regular if len(p) > 1), key=lambda p: _half(above, below, p, level), default=singles)
    half, rare = _half(above, below, parts, level), 0.0
    if half >= wide / 3:
        parts, half, rare = singles, wide, _unseen(above, below)
    first, last = parts[0].start, parts[-1].stop
    center = sum(above[first:last]) / sum(below[first:last])
    return stats.Estimate(center, max(0.0, center - half), center + half + rare, level, count, float(len(parts)))


def _half(above: list[float], below: list[float], parts: list[slice], level: float) -> float:
    """Half an interval for the ratio of the sums over `parts`: Student's t on their deviations from it."""
    if len(parts) < 2:
        return 0.0
    tops, bottoms = ([sum(values[part]) for part in parts] for values in (above, below))
    center = sum(tops) / sum(bottoms)
    off = sum((top - center * bottom) ** 2 for top, bottom in zip(tops, bottoms, strict=True))
    degrees = len(parts) - 1
    return stats.student_quantile((1 + level) / 2, degrees) * math.sqrt(off * len(parts) / degrees) / sum(bottoms)


def _unseen(above: list[float], below: list[float]) -> float:
    """What longer stalls than any that came may add to the ratio: where one came, five more may have been due.

    How much longer follows from how the longest few stand to each other (Hill's estimate of the tail).
    """
    ordered = sorted(above, reverse=True)
    longest = ordered[: max(2, math.isqrt(len(ordered)) + 1)]
    if len(ordered) < 2 or longest[-1] <= 0:
        longer = 1.0
    else:
        tail = sum(math.log(one / longest[-1]) for one in longest[:-1]) / (len(longest) - 1)
        longer = 1 / (1 - min(tail, 0.8))
    excess = max(0.0, longest[0] - sum(above) / len(above))
    return 2.5 * longer * excess / sum(below)


def _bursts(times: list[float]) -> list[slice]:
    """The series cut behind each time above the mean: a burst of batches, and the wait for the next one.

    What comes after the last such wait is a burst that has not ended, and is left out where waits are nearly all.
    """
    middle = sum(times) / len(times) * (1 - 1e-9)
    ends = [n + 1 for n, one in enumerate(times) if one >= middle]
    parts = [slice(start, end) for start, end in pairwise([0, *ends])]
    if sum(times[ends[-1] :]) > 0.1 * sum(times) / len(ends):
        parts[-1] = slice(parts[-1].start, len(times))
    return parts


def _blocks(count: int, size: int) -> list[slice]:
    starts = list(range(0, max(1, count - size + 1), size))
    return [slice(start, end) for start, end in pairwise([*starts, count])]


def _over(above: float, below: float) -> float:
    if below > 0:
        return above / below
    return math.inf if above > 0 else 1.0
