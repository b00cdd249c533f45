"""The other order: one function after the other, to see whether interleaving itself changed the answer."""

from __future__ import annotations

import math
from statistics import median

from edl_labs.bench.timing.sampling import Sampler

_VISITS = 5  # all five on one side by chance: once in 16
_LEAST_BLOCKS = 3  # a median that one burst cannot move
_MATTERS = 0.03  # six times the usual band of half a per cent
_SHARE = 0.3  # a check, which must cost less than what it checks


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
