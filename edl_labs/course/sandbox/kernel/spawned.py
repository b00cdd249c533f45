"""A kernel's process as the judge holds it, and how much time a request to it may take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edl_labs.course.sandbox.kernel.exchange import CallLine
from edl_labs.course.sandbox.kernel.zmtp import Wire
from edl_labs.device import usable_cores
from edl_labs.errors import EdlError

OUTER_BOUND = 10.0  # times a request's own time: a machine ten times oversubscribed is no place to grade


@dataclass(frozen=True)
class ResourceUse:
    """What a kernel's processes had taken at a moment: the clock on the wall, CPU time, time waited for a core."""

    wall_s: float
    cpu_s: float = 0.0
    waited_s: float = 0.0


@dataclass(frozen=True)
class TimeBudget:
    """A request's time, `own_s`, from `began` on: computing and sleeping count, waiting for a core does not.

    Its processes together get no more CPU time than `cores` give in `own_s`, and `wall_s` bounds all of it: many
    threads that wait for one another gain nothing.
    """

    own_s: float
    wall_s: float
    began: ResourceUse
    cores: int = 1

    def left_s(self, now: ResourceUse) -> float:
        """Seconds that are left, at least; 0 or less when the time is over.

        >>> TimeBudget(2.0, 20.0, ResourceUse(100.0)).left_s(ResourceUse(102.0, cpu_s=0.5, waited_s=1.5))
        1.5
        """
        wall_s = now.wall_s - self.began.wall_s
        delayed_s = max(0.0, now.waited_s - self.began.waited_s)
        cpu_s = max(0.0, now.cpu_s - self.began.cpu_s)
        counted_s = max(0.0, wall_s - delayed_s)
        return min(self.own_s - counted_s, self.own_s - cpu_s / self.cores, self.wall_s - wall_s)


@dataclass
class Spawned:
    """A kernel process with its connections, held by the judge."""

    pid: int
    handles: tuple[int, ...]
    shell: Wire
    iopub: Wire
    calls: CallLine
    gate: int
    call: Callable[[dict[str, Any]], tuple[dict[str, Any], list[int]]]
    """Asks the zygote."""
    closed: bool = field(default=False)

    @property
    def kernel_handle(self) -> int:
        """The kernel's pidfd."""
        return self.handles[0]

    def report(self) -> dict[str, Any]:
        """What the zygote knows of the kernel."""
        return self.call({"do": "usage", "pid": self.pid})[0]

    def taken(self, *, beside_s: float = 0.0) -> ResourceUse:
        """What its processes have taken by now; what others did for them, in `beside_s`, they waited for too."""
        report = self.report()
        return ResourceUse(time.monotonic(), report.get("cpu_s", 0.0), report.get("waited_s", 0.0) + beside_s)

    def allowance(self, own_s: float, wall_s: float | None) -> TimeBudget:
        """The time of a request that begins now. Its use is read only where waiting is forgiven."""
        if wall_s is None or wall_s <= own_s:
            return TimeBudget(own_s, own_s, ResourceUse(time.monotonic()))
        return TimeBudget(own_s, wall_s, self.taken(), usable_cores())

    def stop(self) -> dict[str, Any]:
        """End it, close everything; its last report."""
        self.closed = True
        try:
            return self.call({"do": "stop", "pid": self.pid})[0]
        except EdlError:
            return {}
        finally:
            # The sandbox also ends when its gate closes, should the zygote be gone.
            for fd in (self.gate, *self.handles):
                os.close(fd)
            self.shell.close()
            self.iopub.close()
            self.calls.close()
