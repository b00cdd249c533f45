"""VirtualGPU: a host and its GPU on virtual time; its programs are recorded as plain data and replayed."""

from __future__ import annotations

from edl_labs.virtual.gpu.buffers import Buffer, Region
from edl_labs.virtual.gpu.dataflow import Piece
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.program import compact
from edl_labs.virtual.gpu.races import Race
from edl_labs.virtual.gpu.replay import Replay, replay
from edl_labs.virtual.gpu.streams import Event, Stream
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU

__all__ = [
    "Buffer",
    "Event",
    "Piece",
    "Race",
    "Region",
    "Replay",
    "Stream",
    "VirtualGPU",
    "VirtualMachine",
    "compact",
    "replay",
]
