"""VirtualGPU and VirtualWorkers: a device and a data loader on virtual time, exact, recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.buffers import Buffer, Region
from edl_labs.virtual.clock import VirtualClock
from edl_labs.virtual.dataflow import Piece
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, VirtualGPUError, VirtualWorkersError
from edl_labs.virtual.gpu import VirtualGPU
from edl_labs.virtual.loader_machine import HDD, NVME, Disk, LoaderMachine
from edl_labs.virtual.machine import VirtualMachine
from edl_labs.virtual.program import compact
from edl_labs.virtual.races import Race
from edl_labs.virtual.replay import Reading, Replay, replay
from edl_labs.virtual.streams import Event, Stream
from edl_labs.virtual.timeline import Span, Timeline
from edl_labs.virtual.workers import VirtualFile, VirtualLoader, VirtualWorkers
from edl_labs.virtual.workers_replay import WorkersReplay, replay_workers

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
