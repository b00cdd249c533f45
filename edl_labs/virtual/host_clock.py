"""The host's clock on a virtual machine: it has a resolution, and reading it takes time."""

from __future__ import annotations

from typing import Any, Protocol


class _Owner(Protocol):
    """What a clock asks the VirtualGPU or VirtualWorkers that it belongs to."""

    machine: Any

    def now_s(self) -> float: ...

    def synchronize(self) -> None: ...


class VirtualClock:
    """A `edl_labs.clock.Clock` on virtual time: any timer runs on it unchanged."""

    __slots__ = ("gpu",)
    asynchronous = modelled = True
    device = "virtual"

    def __init__(self, gpu: _Owner) -> None:
        self.gpu = gpu

    @property
    def name(self) -> str:
        """The modelled machine to which this clock belongs."""
        return f"virtual {self.gpu.machine.name}"

    @property
    def resolution_s(self) -> float:
        """The resolution of the readings."""
        return float(self.gpu.machine.clock_resolution_s)

    @property
    def read_cost_s(self) -> float:
        """The host time that one reading takes."""
        return float(self.gpu.machine.clock_read_cost_s)

    def now_s(self) -> float:
        """The host's time when this reading returns, rounded down to the resolution."""
        return self.gpu.now_s()

    def synchronize(self) -> None:
        """Make the host wait until the device has finished all its work."""
        self.gpu.synchronize()
