"""The exercises of lab06_memory: what a training step keeps, and how to make it keep less."""

from __future__ import annotations

from edl_labs.exercises.lab06_memory.equal_segments import BestSegments
from edl_labs.exercises.lab06_memory.failed_requests import Fragments
from edl_labs.exercises.lab06_memory.kept_or_copied import OffloadOrRecompute
from edl_labs.exercises.lab06_memory.merged_statistics import MergeStatistics
from edl_labs.exercises.lab06_memory.methods import MethodTable
from edl_labs.exercises.lab06_memory.micro_batches import MendAccumulation
from edl_labs.exercises.lab06_memory.own_checkpoint import OwnCheckpoint
from edl_labs.exercises.lab06_memory.placed_stretches import PlaceCheckpoints
from edl_labs.exercises.lab06_memory.small_batches import SameOrNot
from edl_labs.exercises.lab06_memory.step_timelines import MemoryTimeline

EXERCISES = (
    MendAccumulation,
    MemoryTimeline,
    BestSegments,
    OwnCheckpoint,
    Fragments,
    MergeStatistics,
    PlaceCheckpoints,
    SameOrNot,
    OffloadOrRecompute,
    MethodTable,
)
