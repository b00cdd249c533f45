"""Processor time and waiting, distinguished: what of a call's time no core can do anything about.

A call's time has three parts: on a core, in the queue for one (other programs had it), and waiting for something else,
a disk, a network, another process. Only the last overlaps with other work whatever the number of cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.values import Value

_SCHEDSTAT = Path(
    "/proc/thread-self/schedstat"
)  # Linux: nanoseconds on a core, nanoseconds in the queue for one, turns


@dataclass(frozen=True)
class Meter:
    """A reading of three clocks of this process, in seconds: the wall's, its cores', its queue's.

    `gave_way` counts how often it gave its core up on its own: one that never did has waited for nothing.
    """

    wall_s: float
    core_s: float
    queued_s: float
    gave_way: int | None = None


@dataclass(frozen=True, repr=False)
class TimeSplit(Value):
    """Seconds between two readings; of them, those on a core and in the queue for one. The rest is waiting."""

    wall_s: float
    core_s: float
    queued_s: float

    @property
    def waited_s(self) -> float:
        """What is neither work nor other programs' fault; work in several threads can hide it."""
        return max(0.0, self.wall_s - self.core_s - self.queued_s)

    @property
    def waited_share(self) -> float:
        """Waiting divided by the time that the call would take on a core of its own."""
        alone_s = self.wall_s - min(self.queued_s, self.wall_s)
        return min(1.0, self.waited_s / alone_s) if alone_s > 0 else 0.0

    @property
    def off_core_share(self) -> float:
        """Waiting and queueing over all: what a core was not needed for, or not had."""
        return 1.0 - min(1.0, self.core_s / self.wall_s) if self.wall_s > 0 else 0.0


def meter() -> Meter:
    """The three clocks now; where the system does not tell the queue, its time may count as waiting."""
    return Meter(time.perf_counter(), time.process_time(), _queued_s(), _gave_way())


def split(before: Meter, after: Meter) -> TimeSplit:
    """How the time between two readings was spent."""
    wall_s = after.wall_s - before.wall_s
    core_s, queued_s = max(0.0, after.core_s - before.core_s), max(0.0, after.queued_s - before.queued_s)
    if before.gave_way is not None and before.gave_way == after.gave_way:
        # A hypervisor or a limit on this container took the rest: the system's queue does not show them.
        queued_s = max(queued_s, wall_s - core_s)
    return TimeSplit(wall_s, core_s, queued_s)


@checked_arguments()
def measure_waiting(work: Callable[[], Any], *, seconds: float = 0.2, read: Callable[[], Meter] = meter) -> TimeSplit:
    """The mean `TimeSplit` of a call of `work`, repeated for `seconds` after one that does not count.

    `read` reads the clocks; tests give a scripted one.
    """
    if not seconds > 0:
        raise UsageError(
            f"`seconds` is {seconds!r}", why="it must be positive", next="pass a duration such as seconds=0.2"
        )
    work()
    done, before = 0, read()
    after = before
    while after.wall_s - before.wall_s < seconds:
        work()
        done, after = done + 1, read()
    whole = split(before, after)
    return TimeSplit(whole.wall_s / done, whole.core_s / done, whole.queued_s / done)


def _queued_s() -> float:
    try:
        return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _gave_way() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
