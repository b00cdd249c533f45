"""VirtualTape: what a training step holds and takes, layer by layer, recorded and replayed."""

from __future__ import annotations

from edl_labs.virtual.memory._replay_tape import TapeMoment, TapeReplay, VirtualTape, replay_tape
from edl_labs.virtual.memory.checkpoints import Placement, as_chain, best_placement, segmented, stepped
from edl_labs.virtual.memory.tape import Tape, TapeLayer

__all__ = [
    "Placement",
    "Tape",
    "TapeLayer",
    "TapeMoment",
    "TapeReplay",
    "VirtualTape",
    "as_chain",
    "best_placement",
    "replay_tape",
    "segmented",
    "stepped",
]
