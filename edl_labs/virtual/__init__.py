"""VirtualGPU and VirtualWorkers: a device and a data loader on virtual time, exact, recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, VirtualGPUError, VirtualWorkersError
from edl_labs.virtual.gpu import (
    Buffer,
    Event,
    Piece,
    Race,
    Region,
    Replay,
    Stream,
    VirtualGPU,
    VirtualMachine,
    compact,
    replay,
)
from edl_labs.virtual.host_clock import VirtualClock
from edl_labs.virtual.loader import (
    HDD,
    NVME,
    Disk,
    LoaderMachine,
    VirtualFile,
    VirtualLoader,
    VirtualWorkers,
    WorkersReplay,
    replay_workers,
)
from edl_labs.virtual.program import Reading
from edl_labs.virtual.timeline import Span, Timeline

__all__ = [
    "HDD",
    "NVME",
    "Buffer",
    "Disk",
    "Event",
    "LoaderMachine",
    "Piece",
    "Race",
    "Reading",
    "Region",
    "Replay",
    "ReplayDisagreement",
    "ReplayError",
    "Span",
    "Stream",
    "Timeline",
    "VirtualClock",
    "VirtualFile",
    "VirtualGPU",
    "VirtualGPUError",
    "VirtualLoader",
    "VirtualMachine",
    "VirtualWorkers",
    "VirtualWorkersError",
    "WorkersReplay",
    "compact",
    "replay",
    "replay_workers",
]
