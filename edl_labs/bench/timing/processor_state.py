"""The state of the processor under test: its clock, throttling, and interruptions by other programs. Read only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from edl_labs.clock import Clock, device_behind, is_processor_time

_MOVED = 0.01  # a step of an NVIDIA GPU's clock is 15 MHz, about 1 %
_T = TypeVar("_T")
_LEAST = 10  # rounds that an interval needs
_SHARE = 0.2  # of what is left, less would be the odd ones out


@dataclass(frozen=True)
class State:
    """One reading: the clock in Hz, the nominal clock, and whether heat or power limits it."""

    hz: float
    nominal_hz: float = 0.0
    throttled: bool = False


class Watch(Protocol):
    """Something that can tell the state of the processor under test."""

    def read(self) -> State | None:
        """The current state, or None if it is unknown."""


def moved(before: State | None, after: State | None) -> bool:
    """Whether what was timed between two readings must be dropped: throttled, or the clock changed by over 1 %."""
    if before is None or after is None:
        return False
    if before.throttled or after.throttled:
        return True
    return abs(after.hz - before.hz) > _MOVED * max(before.hz, after.hz)


class NvmlWatch:
    """The SM clock and the throttle reasons of an NVIDIA GPU, through NVML."""

    def __init__(self, uuid: str) -> None:
        import pynvml

        self._nvml: Any = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        self._nominal_hz = pynvml.nvmlDeviceGetMaxClockInfo(self._handle, pynvml.NVML_CLOCK_SM) * 1e6
        # Idle and application clocks lower the clock too, but by design: heat, power and hardware brakes do not.
        self._brakes = (
            pynvml.nvmlClocksThrottleReasonSwPowerCap
            | pynvml.nvmlClocksThrottleReasonHwSlowdown
            | pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
            | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
            | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
        )

    def read(self) -> State | None:
        """The current SM clock; None if the driver does not report it."""
        try:
            hz = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM) * 1e6
            reasons = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle)
        except self._nvml.NVMLError:
            return None
        return State(hz, self._nominal_hz, bool(reasons & self._brakes))


def watch_for(clock: Clock) -> Watch | None:
    """What can watch the device of this clock; None where nothing can."""
    device = device_behind(clock)
    if not device:
        return None
    try:
        import torch

        return NvmlWatch(f"GPU-{torch.cuda.get_device_properties(device).uuid}")
    except Exception:  # no NVIDIA GPU, no driver library, no permission
        return None


def counter_for(clock: Clock) -> Callable[[], int]:
    """A count of involuntary context switches of this process; always 0 where clock or system have no such thing."""
    if not is_processor_time(clock):
        return lambda: 0
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return lambda: 0
    return lambda: getrusage(RUSAGE_SELF).ru_nivcsw


def undisturbed(values: Sequence[_T], interrupted: Sequence[bool]) -> list[_T]:
    """The values of what was not interrupted; all of them where that would leave under ten, or under a fifth.

    Which ones are left out hangs on the system's scheduler alone, not on the values and not on the order drawn.
    """
    calm = [value for value, hit in zip(values, interrupted, strict=True) if not hit]
    return calm if len(calm) >= max(_LEAST, _SHARE * len(values)) else list(values)
