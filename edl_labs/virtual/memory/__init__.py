"""VirtualTape, a training step layer by layer, and VirtualAllocator, torch's caching allocator: recorded, replayed."""

from __future__ import annotations

from edl_labs.virtual.memory.allocator.allocator_pools import AllocatorSettings
from edl_labs.virtual.memory.allocator.allocator_traces import program_of_snapshot
from edl_labs.virtual.memory.allocator.replay import (
    AllocatorReplay,
    BlockView,
    SegmentView,
    replay_allocator,
)
from edl_labs.virtual.memory.allocator.virtual_allocator import OutOfMemory, VirtualAllocator
from edl_labs.virtual.memory.checkpoints import Placement, as_chain, best_placement, segmented, stepped
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer
from edl_labs.virtual.memory.tape.replay import TapeMoment, TapeReplay, replay_tape
from edl_labs.virtual.memory.tape.virtual_tape import VirtualTape

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
