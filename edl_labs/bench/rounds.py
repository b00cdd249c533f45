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
_SURE = 0.999
_TINY_S = 1e-15


class Rounds:
    """Runs rounds over samplers: each side at two mirrored places (A B C C B A), in an order drawn anew each time.

    `times[i]` are the readings of side i. Swapping two identical sides in the drawn order flips the sign of their
    log-ratio and changes nothing else: that is what the exactness of the interval rests on. It holds whatever is made
    of a side's two readings, as long as it is the same for all sides. Two things are made of them:

    * their lesser: what disturbs a call on a processor (timer ticks, neighbours) only ever adds, and seldom hits both;
    * their mean, in which all that a function does counts. If the first cannot be right by the second, the functions
      themselves vary, and then the second is the answer.
    """

    def __init__(self, samplers: list[Sampler], *, rng: random.Random, watch: Watch | None) -> None:
        self.samplers = samplers
        self.times: list[list[float]] = [[] for _ in samplers]
        self.count = self.dropped = 0
        self.spent_s = 0.0
        self._rng, self._watch = rng, watch
        self._switches = counter_for(samplers[0].runner.clock)
        self._interrupted: list[bool] = []
        self._least: list[list[float]] = [[] for _ in samplers]
        self._mean: list[list[float]] = [[] for _ in samplers]

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
        """The log of side `index`'s time over the first side's, one for each round that nothing interrupted."""
        least, mean = self._ratios(self._least, index), self._ratios(self._mean, index)
        return mean if _contradicts(mean, least) else least

    def calm_times(self, index: int) -> list[float]:
        """The readings of side `index` in rounds that nothing interrupted."""
        times = self.times[index]
        pairs = undisturbed(list(zip(times[::2], times[1::2], strict=True)), self._interrupted)
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
        planned = [stats.planned_half_width(self._ratios(self._least, i), level=level) for i in self._others()]
        if max(planned) > _SAFETY * goal:
            return False
        # This only adds rounds.
        widths = [stats.sign_flip_interval(self.log_ratios(i), level=level).half_width for i in self._others()]
        return max(widths) <= 1.25 * goal

    def _ratios(self, logs: list[list[float]], index: int) -> list[float]:
        ratios = [other - first for first, other in zip(logs[0], logs[index], strict=True)]
        return undisturbed(ratios, self._interrupted)

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
            logs = math.log(first), math.log(second)
            self._least[index].append(min(logs))
            self._mean[index].append(sum(logs) / 2)
        self.count += 1

    def _read(self, index: int) -> float:
        sampler = self.samplers[index]
        sampler.settle()
        return max(sampler.read_s(), _TINY_S)


def _contradicts(mean: list[float], least: list[float]) -> bool:
    """Whether the centre of `least` lies outside what `mean` leaves possible at 99.9 %."""
    sure = stats.sign_flip_interval(mean, level=_SURE)
    center = stats.sign_flip_interval(least).center
    return not sure.low <= center <= sure.high if math.isfinite(center) else False
