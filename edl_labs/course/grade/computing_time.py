"""How much computing time one of our processes has left."""

from __future__ import annotations

import time
from collections.abc import Callable

from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.kernel.spawned import OUTER_BOUND, ResourceUse, TimeBudget
from edl_labs.device import usable_cores


class ComputingTime:
    """Seconds left of the `own_s` that a process of ours may compute from now on; called, it tells them.

    Comparing never sleeps: while such a process computes nothing, it waits for a core, or for memory, that others have.
    `OUTER_BOUND` times as long on the clock ends it in any case.
    """

    def __init__(self, pid: int, own_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._pid, self._clock = pid, clock
        self._allowance = TimeBudget(own_s, OUTER_BOUND * own_s, self._taken(), usable_cores())

    def __call__(self) -> float:
        """Seconds that are left, at least; 0 or less when the time is over."""
        passed_s = self._clock() - self._allowance.began.wall_s
        if passed_s < self._allowance.own_s:
            return self._allowance.own_s - passed_s
        return self._allowance.left_s(self._taken())

    def _taken(self) -> ResourceUse:
        wall_s, cpu_s = self._clock(), process_cpu_s(self._pid)
        return ResourceUse(wall_s, cpu_s, waited_s=wall_s - cpu_s)
