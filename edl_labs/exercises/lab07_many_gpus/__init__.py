"""The exercises of lab07_many_gpus: who sends what, when, and what it costs."""

from __future__ import annotations

from edl_labs.exercises.lab07_many_gpus.collective_prices import PickCollective
from edl_labs.exercises.lab07_many_gpus.gradient_buckets import Buckets
from edl_labs.exercises.lab07_many_gpus.hanging_ranks import WhoHangs
from edl_labs.exercises.lab07_many_gpus.measured_links import FitALink
from edl_labs.exercises.lab07_many_gpus.ring_sums import Ring
from edl_labs.exercises.lab07_many_gpus.silent_micro_batches import NoSync
from edl_labs.exercises.lab07_many_gpus.statistics_of_all import SyncBatchNorm

EXERCISES = (
    Ring,
    PickCollective,
    Buckets,
    WhoHangs,
    FitALink,
    NoSync,
    SyncBatchNorm,
)
