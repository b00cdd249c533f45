"""Clocks, with their own resolution and cost. Time is an argument, and only this file synchronises a device.

A clock says what it is: whether its device works on after a call has returned, which device that is, and whether its
time is modelled. Clocks that do not say are read with defaults by `stated`, and nothing else looks at a clock's class.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from edl_labs.errors import UsageError


@runtime_checkable
class Clock(Protocol):
    """What a timer needs: the time now, a way to wait for the device, and how far the readings can be trusted."""

    @property
    def name(self) -> str:
        """What kind of clock this is, in words."""

    @property
    def resolution_s(self) -> float:
        """The smallest step between two readings that differ."""

    @property
    def read_cost_s(self) -> float:
        """How long one reading takes."""

    @property
    def asynchronous(self) -> bool:
        """Whether a call may return before its work is done, so that the clock has to wait for a device."""

    @property
    def device(self) -> str:
        """The device that it times, as torch names it; '' for the processor, 'virtual' for a modelled device."""

    @property
    def modelled(self) -> bool:
        """Whether its time comes from a model instead of this machine."""

    def now_s(self) -> float:
        """The time in seconds since an arbitrary moment; it never runs backwards."""

    def synchronize(self) -> None:
        """Return once the device has finished everything issued so far."""


# A clock that does not say may be that of a device: to wait for nothing costs little, and not to wait is wrong.
_UNSTATED = {"asynchronous": True, "device": "", "modelled": False}


class HostClock:
    """The processor's monotonic clock; there is nothing to wait for.

    >>> clock = HostClock()
    >>> first = clock.now_s()
    >>> clock.now_s() >= first
    True
    """

    name = "host"
    modelled = False

    @property
    def asynchronous(self) -> bool:
        """False, except for a clock that is made from this one and has a `synchronize` of its own."""
        return type(self).synchronize is not HostClock.synchronize

    @property
    def device(self) -> str:
        """An empty string: it times the processor itself."""
        return ""

    @property
    def resolution_s(self) -> float:
        """The smallest step seen between two readings of this clock."""
        return _host_resolution_s()

    @property
    def read_cost_s(self) -> float:
        """The time of one reading, as the mean over many in the quietest of several runs."""
        return _host_read_cost_s()

    def now_s(self) -> float:
        """Seconds of the processor's performance counter."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Do nothing: the processor's own work is done when a call returns."""


class AcceleratorClock(HostClock):
    """The host's clock for an accelerator: `synchronize()` waits until that device is idle.

    Raises UsageError where torch or the accelerator is missing.
    """

    def __init__(self, device: object = None) -> None:
        self._torch = _torch()
        self._device = _accelerator_device(self._torch, device)
        self.name = f"host with {self._device}"

    @property
    def device(self) -> str:
        """Which device it waits for, as torch names it."""
        return str(self._device)

    def synchronize(self) -> None:
        """Return once every stream of the device has drained."""
        self._torch.accelerator.synchronize(self._device)


class EventClock:
    """The device's own clock, read by timing events in the current stream; each reading waits for its mark.

    `make_event` makes a timing event as torch's are: `record()`, `synchronize()`, `elapsed_time(end)` in milliseconds.
    `EventClock.of(device)` uses torch's for that device, which `device` then names; `modelled` says that the events are
    those of a modelled device. Trust it for work in the current stream; other streams it misses.
    """

    asynchronous = True
    # Events are stamped every half microsecond or so (CUDA's documentation of cudaEventElapsedTime).
    resolution_s = 5e-7
    # Elapsed times are float32 milliseconds: beyond this distance from the anchor, fewer than 10 ns would be resolved.
    _FAR_S = 0.1

    def __init__(
        self,
        make_event: Callable[[], Any],
        *,
        name: str = "device events",
        device: str = "",
        modelled: bool = False,
    ) -> None:
        self._make_event, self.name, self.device, self.modelled = make_event, name, device, modelled
        self._anchor = self._marked()
        self._anchor_s = 0.0
        self._cost_s: float | None = None

    @classmethod
    def of(cls, device: object = None) -> EventClock:
        """The clock of an accelerator's events; UsageError where torch or the accelerator is missing."""
        torch = _torch()
        wanted = _accelerator_device(torch, device)
        return cls(
            lambda: torch.Event(device=wanted, enable_timing=True), name=f"events of {wanted}", device=str(wanted)
        )

    @property
    def read_cost_s(self) -> float:
        """The time of one reading: recording an event, and waiting for it."""
        if self._cost_s is None:
            self._cost_s = mean_cost_s(self.now_s, reads=20, runs=3)
        return self._cost_s

    def now_s(self) -> float:
        """Seconds on the device between the making of this clock and now, when the stream has drained."""
        mark = self._marked()
        ahead_s = self._anchor.elapsed_time(mark) / 1e3
        if ahead_s > self._FAR_S:
            self._anchor, self._anchor_s = mark, self._anchor_s + ahead_s
            return self._anchor_s
        return self._anchor_s + float(ahead_s)

    def synchronize(self) -> None:
        """Return once everything in the current stream is done."""
        self._marked()

    def _marked(self) -> Any:
        event = self._make_event()
        event.record()
        event.synchronize()
        return event


def clock_for(device: object) -> Clock:
    """The clock to time work on `device` with: the host's for the CPU, one that can wait for an accelerator."""
    return HostClock() if str(device).split(":")[0] == "cpu" else AcceleratorClock(device)


def device_behind(clock: Clock) -> str:
    """The device that `clock` times, as torch names it; '' for the processor's clock and those of modelled devices.

    >>> device_behind(HostClock())
    ''
    """
    return "" if is_modelled(clock) else str(stated(clock, "device"))


def is_asynchronous(clock: Clock) -> bool:
    """Whether a call may return before its work is done, so that `clock` has to wait for a device."""
    return bool(stated(clock, "asynchronous"))


def is_modelled(clock: Clock) -> bool:
    """Whether the time of `clock` comes from a model."""
    return bool(stated(clock, "modelled"))


def is_processor_time(clock: Clock) -> bool:
    """Whether `clock` tells this processor's own time, which other programs and the system's scheduler disturb."""
    return not is_asynchronous(clock) and not is_modelled(clock)


def stated(clock: object, what: str) -> Any:
    """What a clock says of itself: 'asynchronous', 'device' or 'modelled'; a default where it does not say.

    >>> stated(HostClock(), "asynchronous"), stated(object(), "asynchronous")
    (False, True)
    """
    return getattr(clock, what, _UNSTATED[what])


def smallest_step_s(now_s: Callable[[], float], *, steps: int = 200) -> float:
    """The smallest difference between two successive readings that differ, over `steps` such pairs."""
    return min(_next_step_s(now_s) for _ in range(steps))


def mean_cost_s(now_s: Callable[[], float], *, reads: int = 1000, runs: int = 7) -> float:
    """The time of one call of `now_s`: the mean over `reads`, in the quietest of `runs`."""
    return min(_run_s(now_s, reads) for _ in range(runs)) / reads


@cache
def _host_resolution_s() -> float:
    return smallest_step_s(time.perf_counter)


@cache
def _host_read_cost_s() -> float:
    return mean_cost_s(time.perf_counter)


def _next_step_s(now_s: Callable[[], float]) -> float:
    first = now_s()
    second = now_s()
    while second == first:
        second = now_s()
    return second - first


def _run_s(now_s: Callable[[], float], reads: int) -> float:
    start = now_s()
    for _ in range(reads):
        now_s()
    return now_s() - start


def _torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise UsageError(
            "timing an accelerator needs torch",
            why=f"torch cannot be imported here: {error}",
            next="install torch, or use HostClock() or a VirtualGPU's clock",
        ) from error
    return torch


def _accelerator_device(torch: Any, device: object) -> Any:
    current = torch.accelerator.current_accelerator(check_available=True)
    if current is None:
        raise UsageError(
            "there is no accelerator to time",
            why="torch does not find one on this machine",
            next="use HostClock(), or VirtualGPU(...).clock for a modelled accelerator",
        )
    wanted = torch.device(current.type if device is None else str(device))
    if wanted.type != current.type:
        raise UsageError(
            f"{wanted} cannot be timed here",
            why=f"this machine's accelerator is {current.type}",
            next="use the clock of that device",
        )
    return wanted if wanted.index is not None else torch.device(wanted.type, torch.accelerator.current_device_index())
