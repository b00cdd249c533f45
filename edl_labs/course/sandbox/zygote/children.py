"""Kernels as the zygote knows them: forked, watched, ended, and what they took."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.course.sandbox.gauges import FamilyGauge, Gauge, SandboxGauge, own_bytes
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.pss_sampler import UNKNOWN, PssSampler
from edl_labs.course.sandbox.stage import become_user
from edl_labs.course.sandbox.zygote.box import Box, Place, enter

_STOPPED_S = 1.0  # no lab stops its own kernel; a moment for what stops and wakes it on purpose
_END_S = 10.0  # SIGKILL acts at once; giving gigabytes back takes seconds on a machine that is full


@dataclass(eq=False)
class Child:
    """One kernel process, with its box where it has one."""

    pid: int
    pidfd: int
    box: Box | None
    gauge: Gauge
    place: Place
    scale: PssSampler | None = None
    over: str = ""
    status: int | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0
    processes: int = field(default=1)
    stopped_s: float | None = None
    """The time at which it was first found stopped (SIGSTOP), on the monotonic clock; None while it runs."""

    def handles(self) -> list[int]:
        """Descriptors that become readable when the kernel, or its whole box, has ended."""
        return [self.pidfd] if self.box is None else [self.pidfd, self.box.pidfd]

    def waited_s(self) -> float:
        """Seconds that its processes have waited for a core; 0 when it has ended."""
        with contextlib.suppress(OSError):
            return self.gauge.waited_s() if self.status is None else 0.0
        return 0.0

    def report(self) -> dict[str, Any]:
        """What the judge gets: how it ended, if it did, and what it used."""
        taken = {"cpu_s": self.cpu_s, "peak_bytes": self.peak_bytes, "processes": self.processes}
        return {"status": self.status, "over": self.over, **taken}


class Children:
    """All kernels of one zygote."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_pid: dict[int, Child] = {}

    @property
    def watched(self) -> bool:
        """Whether any kernel is alive whose limits need looking after."""
        return any(child.status is None for child in self._by_pid.values())

    def spawn(self, box_arguments: list[str] | None, place: Place, *, gate: int) -> Child | None:
        """A new child; None in that child, inside its box. The box lives while the judge holds `gate`'s other end."""
        box = Box.start(box_arguments, gate=gate) if box_arguments is not None else None
        pid = enter(box) if box is not None else os.fork()
        if pid == 0:
            return None
        shared_bytes = own_bytes()
        gauge: Gauge = (
            FamilyGauge(pid, shared_bytes=shared_bytes, uid=place.uid, folder=place.folder)
            if box is None
            else SandboxGauge(box.first_pid, shared_bytes=shared_bytes)
        )
        child = Child(pid, os.pidfd_open(pid), box, gauge, place)
        self._by_pid[pid] = child
        return child

    def find(self, pid: int) -> Child:
        """The child `pid`, its figures brought up to date."""
        self.reap()
        child = self._by_pid[pid]
        self._measure(child)
        return child

    def stop(self, child: Child) -> None:
        """End the child and everything it started, and forget it."""
        self._measure(child)
        self._end(child)
        deadline = time.monotonic() + _END_S
        while child.status is None and time.monotonic() < deadline:
            select.select([child.pidfd], [], [], 0.1)
            self.reap()
        for fd in child.handles():
            os.close(fd)
        child.gauge.close()
        if child.scale is not None:
            child.scale.stop()
        child.place.remove()
        del self._by_pid[child.pid]

    def stop_all(self) -> None:
        """End every child."""
        for child in list(self._by_pid.values()):
            self.stop(child)

    def reap(self) -> None:
        """Collect every process that ended."""
        while True:
            try:
                pid, status, taken = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._by_pid.get(pid)
            if child is not None:
                child.status = status
                child.cpu_s = max(child.cpu_s, taken.ru_utime + taken.ru_stime)

    def look(self) -> None:
        """End the children that are above a limit."""
        for child in self._by_pid.values():
            self._measure(child)
            self._weigh(child)
            self._watch_stop(child)

    def _measure(self, child: Child) -> None:
        if child.status is not None:
            return
        try:
            usage = child.gauge.read()
        except OSError:
            return
        child.cpu_s = max(child.cpu_s, usage.cpu_s)
        child.peak_bytes = max(child.peak_bytes, usage.least_bytes)
        child.processes = usage.processes
        self._judge(child, usage.over(self._limits))
        if usage.most_bytes > self._limits.memory_bytes and not child.over and child.scale is None:
            child.scale = PssSampler.start(child.gauge)

    def _weigh(self, child: Child) -> None:
        """Take the result of a weighing. One that does not end is a process keeping its memory from being looked at."""
        if child.scale is None or (weight_bytes := child.scale.weight_bytes()) is None:
            return
        child.scale = None
        child.peak_bytes = max(child.peak_bytes, weight_bytes if weight_bytes < UNKNOWN else 0)
        self._judge(child, "memory" if weight_bytes > self._limits.memory_bytes else "")

    def _watch_stop(self, child: Child) -> None:
        """End a kernel that stopped itself (SIGSTOP): nobody will wake it, and its time limit is long."""
        if _state(child.pid) not in ("T", "t"):
            child.stopped_s = None
        elif child.stopped_s is None:
            child.stopped_s = time.monotonic()
        elif time.monotonic() - child.stopped_s > _STOPPED_S:
            self._judge(child, "stopped")

    def _judge(self, child: Child, over: str) -> None:
        if over and not child.over:
            child.over = over
            self._end(child)

    def _end(self, child: Child) -> None:
        if child.box is not None:
            child.box.end()
        else:
            self._end_family(child)

    def _end_family(self, child: Child) -> None:
        """Kill until nothing is left: a fork bomb makes new ones while the old are counted."""
        deadline = time.monotonic() + _END_S
        while (pids := self._family(child)) and time.monotonic() < deadline:
            if child.place.uid is not None:
                _kill_user(child.place.uid)
            else:
                for pid in pids:
                    _kill(pid)
            self.reap()

    def _family(self, child: Child) -> list[int]:
        """Processes of `child` still there. Orphans come to the zygote, and belong to its only child."""
        family = [pid for pid in child.gauge.pids() if not (pid == child.pid and child.status is not None)]
        if child.place.uid is not None or list(self._by_pid) != [child.pid]:
            return family
        return family + [pid for pid in child_pids() if pid not in family and pid != child.pid]


def child_pids() -> list[int]:
    """This process's children, zombies left out."""
    pids = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    return [int(pid) for pid in pids if not _is_zombie(pid)]


def _is_zombie(pid: str) -> bool:
    return _state(pid) in ("Z", "")


def _state(pid: int | str) -> str:
    """The letter of /proc for what the process does; empty when it is gone."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _kill_user(uid: int) -> None:
    """Kill every process of the user at once: numbers looked up first could be others' by then."""
    pid = os.fork()
    if pid == 0:
        try:
            become_user(uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
