"""VirtualTape, a training step layer by layer, and VirtualAllocator, torch's caching allocator: recorded, replayed."""

from __future__ import annotations

from edl_labs.virtual.memory.allocator.allocator_pools import AllocatorSettings
from edl_labs.virtual.memory.allocator.allocator_traces import program_of_snapshot
from edl_labs.virtual.memory.allocator.replay import (
    AllocatorReplay,
    BlockView,
    OutOfMemory,
    SegmentView,
    VirtualAllocator,
    replay_allocator,
)
from edl_labs.virtual.memory.checkpoints import Placement, as_chain, best_placement, segmented, stepped
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer
from edl_labs.virtual.memory.tape.replay import TapeMoment, TapeReplay, VirtualTape, replay_tape

__all__ = [
    "AllocatorReplay",
    "AllocatorSettings",
    "BlockView",
    "OutOfMemory",
    "Placement",
    "SegmentView",
    "Tape",
    "TapeLayer",
    "TapeMoment",
    "TapeReplay",
    "VirtualAllocator",
    "VirtualTape",
    "as_chain",
    "best_placement",
    "program_of_snapshot",
    "replay_allocator",
    "replay_tape",
    "segmented",
    "stepped",
]
