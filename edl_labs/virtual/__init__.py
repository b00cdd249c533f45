"""VirtualGPU: an asynchronous device on any computer, exact to the picosecond, recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.buffers import Buffer, Region
from edl_labs.virtual.clock import VirtualClock
from edl_labs.virtual.dataflow import Piece
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, VirtualGPUError
from edl_labs.virtual.gpu import VirtualGPU
from edl_labs.virtual.machine import VirtualMachine
from edl_labs.virtual.program import compact
from edl_labs.virtual.races import Race
from edl_labs.virtual.replay import Reading, Replay, replay
from edl_labs.virtual.streams import Event, Stream
from edl_labs.virtual.timeline import Span, Timeline

__all__ = [
    "Buffer",
    "Event",
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
    "VirtualGPU",
    "VirtualGPUError",
    "VirtualMachine",
    "compact",
    "replay",
]
