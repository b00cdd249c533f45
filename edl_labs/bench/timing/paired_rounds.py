"""Paired rounds in random order, when to stop them, and what the other order (one side after the other) says."""

from __future__ import annotations

import math
import random
from statistics import fmean, median, stdev

from edl_labs import stats
from edl_labs.bench.timing.processor_state import Watch, counter_for, moved, undisturbed
from edl_labs.bench.timing.warmup import Sampler

MOST_ROUNDS = 800  # the exact interval batches beyond 400 values, and more rounds add little
LEAST_ROUNDS = 10  # the signs of ten rounds reach 99.8 %
_RESERVE = 0.15  # of the budget, kept for the other order
_LOOK_GROWTH = 1.1  # looks grow apart by a tenth, so that looking costs little beside rounds
_SAFETY = 0.9  # a plan from few rounds may be too hopeful by a tenth
# Standard errors: of 99.9 % for ten rounds and more, and of what asks for more rounds.
_SURE, _DOUBT = 4.5, 2.0
# Differences that rounding makes.
_SAME = 1e-9
# Sides whose lengths differ by less see the same noise in a block.
_EQUAL_LENGTHS_UP_TO = 1.1
_BATCHES = 20  # sums over a twentieth of the rounds are near to normal, and twenty of them make an interval
_FAR = 0.1  # a ratio of sums 10 % off the rest is worth a sentence
_TINY_S = 1e-15  # below any clock's step: logarithms need more than zero
_VISITS = 5  # all five on one side by chance: once in 16
_LEAST_BLOCKS = 3  # a median that one burst cannot move
_MATTERS = 0.03  # six times the usual band of half a per cent
_SHARE = 0.3  # a check, which must cost less than what it checks


class Rounds:
    """Runs rounds over samplers: each side at two mirrored places (A B C C B A), in an order drawn anew each time.

    `times[i]` are the readings of side i. Swapping two identical sides in the drawn order flips the sign of their
    log-ratio and changes nothing else: that is what the exactness of the interval rests on. It holds whatever is made
    of a side's two readings, as long as it is the same for all sides. Two things are made of them:

    * their lesser: what disturbs a call on a processor (timer ticks, neighbours) only ever adds, and seldom hits both.
      That is fair to sides whose blocks hold equal calls of about equal length: the same noise meets them.
    * their sum, over some rounds at a time, in which all that a function does counts. It serves sides of different
      lengths, and functions that vary on their own: those whose sums the lesser readings cannot explain.
    """

    def __init__(self, samplers: list[Sampler], *, rng: random.Random, watch: Watch | None) -> None:
        self.samplers = samplers
        self.times: list[list[float]] = [[] for _ in samplers]
        self.count = self.dropped = 0
        self.spent_s = 0.0
        self._rng, self._watch = rng, watch
        self._switches = counter_for(samplers[0].runner.clock)
        self._interrupted: list[bool] = []

    def run(self, *, until_s: float, goal: float, level: float) -> str:
        """Runs until the clock reads `until_s`, less a share kept for the other order, or until `goal` is in sight."""
        now = self.samplers[0].runner.clock.now_s
        begin = now()
        end = begin + (until_s - begin) * (1 - _RESERVE)
        took = 2 * sum(sampler.plan.calls * sampler.plan.call_s for sampler in self.samplers)
        look = float(LEAST_ROUNDS)
        while self.count + self.dropped < MOST_ROUNDS and now() + took <= end:
            start = now()
            self._round()
            self.spent_s = now() - begin
            took = max(took / 2, now() - start)
            if self.count >= look:
                if self._precise(goal, level):
                    return "precise enough"
                look = self.count * _LOOK_GROWTH + 1
        return "enough rounds" if self.count + self.dropped >= MOST_ROUNDS else "the budget was used"

    def log_ratios(self, index: int) -> list[float]:
        """The log of side `index`'s time over the first side's, from rounds that nothing interrupted."""
        return self._least(index) if self._fair(index) and not self.varies(index) else self._summed(index)

    def varies(self, index: int) -> bool:
        """Whether sums over rounds contradict the lesser readings: then a side varies on its own."""
        return self._apart(index) > _SURE

    def calm_times(self, index: int) -> list[float]:
        """The readings of side `index` in rounds that nothing interrupted."""
        return [time for pair in self._pairs(index) for time in pair]

    def unexplained(self, index: int) -> bool:
        """Whether all calls together give a ratio over 10 % off, which is not yet sure to be the functions' own."""
        center = stats.sign_flip_interval(self._least(index)).center if self._fair(index) else math.nan
        return abs(math.log(self.total_ratio(index)) - center) > _FAR and not self.varies(index)

    def total_ratio(self, index: int) -> float:
        """All of side `index`'s time over all of the first side's; nan without rounds."""
        first, other = (sum(self.calm_times(i)) for i in (0, index))
        return other / first if first > 0 else math.nan

    @property
    def interrupted(self) -> int:
        """In how many rounds the system took the processor away."""
        return sum(self._interrupted)

    def rough_ratio(self, index: int) -> float:
        """The ratio from the warm-up alone, for when no round fitted."""
        first, other = self.samplers[0].plan.call_s, self.samplers[index].plan.call_s
        return other / first if first > 0 else math.nan

    def _precise(self, goal: float, level: float) -> bool:
        ratios = [self._least(i) if self._fair(i) else self._summed(i) for i in self._others()]
        if max(stats.planned_half_width(r, level=level) for r in ratios) > _SAFETY * goal:
            return False
        # These only add rounds: sums that may still come to contradict, and an interval that is wider than planned.
        if any(_DOUBT < self._apart(i) <= _SURE or self.unexplained(i) for i in self._others()):
            return False
        widths = [stats.sign_flip_interval(self.log_ratios(i), level=level).half_width for i in self._others()]
        return max(widths) <= 1.25 * goal

    def _fair(self, index: int) -> bool:
        """Whether blocks of both sides hold equal calls and are about equally long."""
        calls = {self.samplers[i].plan.calls for i in (0, index)}
        lengths = [median(self.times[i] or [_TINY_S]) for i in (0, index)]
        return len(calls) == 1 and max(lengths) <= _EQUAL_LENGTHS_UP_TO * min(lengths)

    def _pairs(self, index: int) -> list[tuple[float, float]]:
        times = self.times[index]
        return undisturbed(list(zip(times[::2], times[1::2], strict=True)), self._interrupted)

    def _least(self, index: int) -> list[float]:
        pairs = zip(self._pairs(0), self._pairs(index), strict=True)
        return [math.log(min(other) / min(first)) for first, other in pairs]

    def _summed(self, index: int, *, batches: int = _BATCHES) -> list[float]:
        # Of a batch of rounds the noise is near to normal, whatever that of a single block is.
        pairs = list(zip(self._pairs(0), self._pairs(index), strict=True))
        size = max(1, len(pairs) // batches)
        starts = range(0, len(pairs) - size + 1, size)
        sums = [[sum(map(sum, side)) for side in zip(*pairs[k : k + size], strict=True)] for k in starts]
        return [math.log(other / first) for first, other in sums]

    def _apart(self, index: int) -> float:
        """How many of its standard errors the mean of summed log-ratios lies off the centre of the lesser ones."""
        if self.count < LEAST_ROUNDS or not self._fair(index):
            return 0.0
        sums = self._summed(index, batches=self.count)
        mean, center = fmean(sums), stats.sign_flip_interval(self._least(index)).center
        error = stdev(sums) / math.sqrt(len(sums))
        return abs(mean - center) / (error + _SAME)

    def _others(self) -> range:
        return range(1, len(self.samplers))

    def _round(self) -> None:
        order = list(range(len(self.samplers)))
        self._rng.shuffle(order)
        slots = [*order, *reversed(order)]
        before = self._watch.read() if self._watch else None
        switches = self._switches()
        readings = [self._read(index) for index in slots]
        if moved(before, self._watch.read() if self._watch else None):
            self.dropped += 1
            return
        self._interrupted.append(self._switches() != switches)
        for place, index in enumerate(order):
            self.times[index] += [readings[place], readings[-1 - place]]
        self.count += 1

    def _read(self, index: int) -> float:
        sampler = self.samplers[index]
        sampler.settle()
        return max(sampler.read_s(), _TINY_S)


class OneAfterAnother:
    """What visits of several blocks to each side say: `ratio(i)`, and whether that `disagrees` with the rounds."""

    def __init__(self, visits: list[list[float]]) -> None:
        self._visits = visits

    def ratio(self, index: int) -> float:
        """The time of side `index` over the first side's by this order; 0 where there was no time to find out."""
        logs = self._logs(index)
        return math.exp(median(logs)) if logs else 0.0

    def disagrees(self, index: int, *, ratio: float, half_width: float) -> bool:
        """Whether every visit differs from the interleaved ratio, in one direction, by over 3 % and the interval."""
        logs = self._logs(index)
        if len(logs) < _VISITS or not ratio > 0 or not math.isfinite(half_width):
            return False
        apart = [value - math.log(ratio) for value in logs]
        least = max(_MATTERS, 2 * half_width / ratio)
        return min(apart) > least or max(apart) < -least

    def _logs(self, index: int) -> list[float]:
        return [math.log(visit[index] / visit[0]) for visit in self._visits if visit[0] > 0 and visit[index] > 0]


def blocked_order(samplers: list[Sampler], *, until_s: float, spent_s: float) -> OneAfterAnother:
    """Up to five visits to each side in turn, in what is left of the budget: 0.3 of the rounds' time, or 3 blocks."""
    now = samplers[0].runner.clock.now_s
    begin = now()
    block_s = max(max(sampler.plan.calls * sampler.plan.call_s for sampler in samplers), 1e-9)
    each_s = 1.2 * _VISITS * len(samplers) * block_s
    until_s = min(until_s, begin + max(_SHARE * spent_s, (_LEAST_BLOCKS + 0.5) * each_s))
    blocks = int((until_s - begin) / each_s)
    if blocks < _LEAST_BLOCKS:
        return OneAfterAnother([])
    visits = []
    for turn in range(_VISITS):
        if now() > until_s:
            break
        order = range(len(samplers)) if turn % 2 == 0 else reversed(range(len(samplers)))
        found = {index: _visit(samplers[index], min(blocks, 12)) for index in order}
        visits.append([found[index] for index in range(len(samplers))])
    return OneAfterAnother(visits)


def _visit(sampler: Sampler, blocks: int) -> float:
    times = [sampler.read_s() for _ in range(blocks)]
    return median(times[blocks // 3 :])
