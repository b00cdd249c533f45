"""Weighing a kernel's memory in a process of its own, since the weighed one can keep the reader waiting."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass, field

from edl_labs.course.sandbox.gauges import Gauge

UNKNOWN = 1 << 62  # more than any memory
_WEIGHED_S = 5.0  # the kernel sums in milliseconds, unless the weighed one holds its own memory locked
_PAUSE_S = 1.0  # a weighing makes the weighed one wait a little: once a second


@dataclass
class PssSampler:
    """One weighing under way."""

    pid: int
    reading: int
    began_s: float = field(default_factory=time.monotonic)
    result: int | None = None

    @staticmethod
    def start(gauge: Gauge) -> PssSampler:
        """Begin to weigh. Called by a process with one thread, which forks."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                os.write(writing, str(gauge.measure_pss()).encode())
            finally:
                os._exit(0)
        os.close(writing)
        return PssSampler(pid, reading)

    def weight_bytes(self) -> int | None:
        """The weight, or UNKNOWN when it could not be had in time; None while it is being found, and a little after."""
        if self.result is None:
            self.result = self._read()
        if self.result is None or (self.result < UNKNOWN and time.monotonic() < self.began_s + _PAUSE_S):
            return None
        return self.result

    def stop(self) -> None:
        """Leave off."""
        if self.result is None:
            self._end()

    def _read(self) -> int | None:
        readable, _, _ = select.select([self.reading], [], [], 0)
        if readable:
            text = os.read(self.reading, 64)
            self._end()
            return int(text) if text else 0
        if time.monotonic() < self.began_s + _WEIGHED_S:
            return None
        self._end()
        return UNKNOWN

    def _end(self) -> None:
        os.close(self.reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
