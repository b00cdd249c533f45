"""Paired rounds in random order, and when to stop them."""

from __future__ import annotations

import math
import random

from edl_labs import stats
from edl_labs.bench.interrupts import counter_for, undisturbed
from edl_labs.bench.sampling import Sampler
from edl_labs.bench.state import Watch, moved

MOST_ROUNDS = 800
LEAST_ROUNDS = 10
_RESERVE = 0.15
_LOOK_GROWTH = 1.1
_SAFETY = 0.9
_TINY_S = 1e-15


class Rounds:
    """Runs rounds over samplers: each side at two mirrored places (A B C C B A), in an order drawn anew each time.

    `times[i]` are the readings of side i. Swapping two identical sides in the drawn order flips the sign of their
    log-ratio and changes nothing else: that is what the exactness of the interval rests on.
    """

    def __init__(self, samplers: list[Sampler], *, rng: random.Random, watch: Watch | None) -> None:
        self.samplers = samplers
        self.times: list[list[float]] = [[] for _ in samplers]
        self.count = self.dropped = 0
        self.spent_s = 0.0
        self._rng, self._watch = rng, watch
        self._switches = counter_for(samplers[0].runner.clock)
        self._interrupted: list[bool] = []
        self._logs: list[list[float]] = [[] for _ in samplers]
        self._spreads: list[float] = []

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
        """The log of side `index`'s time over the first side's, one for each round that nothing disturbed."""
        ratios = [other - first for first, other in zip(self._logs[0], self._logs[index], strict=True)]
        return undisturbed(ratios, self._disturbed())

    def calm_times(self, index: int) -> list[float]:
        """The readings of side `index` in rounds that nothing disturbed."""
        times = self.times[index]
        pairs = undisturbed(list(zip(times[::2], times[1::2], strict=True)), self._disturbed())
        return [time for pair in pairs for time in pair]

    @property
    def interrupted(self) -> int:
        """In how many rounds the system took the processor away."""
        return sum(self._interrupted)

    def rough_ratio(self, index: int) -> float:
        """The ratio from the warm-up alone, for when no round fitted."""
        first, other = self.samplers[0].plan.call_s, self.samplers[index].plan.call_s
        return other / first if first > 0 else math.nan

    def _precise(self, goal: float, level: float) -> bool:
        # The first condition reads spreads within sides, which the drawn order cannot change. The second only adds
        # rounds.
        spreads = undisturbed(self._spreads, self._disturbed())
        if len(spreads) < LEAST_ROUNDS or stats.planned_half_width(spreads, level=level) > _SAFETY * goal:
            return False
        widths = [stats.sign_flip_interval(self.log_ratios(i), level=level).half_width for i in self._others()]
        return max(widths) <= 1.25 * goal

    def _disturbed(self) -> list[bool]:
        calm = stats.calm_rounds(undisturbed(self._spreads, self._interrupted))
        if len(calm) < len(self._spreads):
            left = iter(calm)
            return [hit or not next(left) for hit in self._interrupted]
        return [not fine for fine in calm]

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
        pairs = {index: (readings[place], readings[-1 - place]) for place, index in enumerate(order)}
        for index, (first, second) in pairs.items():
            self.times[index] += [first, second]
            self._logs[index].append((math.log(first) + math.log(second)) / 2)
        logs = [(math.log(first), math.log(second)) for first, second in pairs.values()]
        self._spreads.append(stats.round_spread(logs))
        self.count += 1

    def _read(self, index: int) -> float:
        sampler = self.samplers[index]
        sampler.settle()
        return max(sampler.read_s(), _TINY_S)
