"""The exercises of lab03_mixed_precision: formats, sums, autocast, loss scaling, memory and alignment."""

from __future__ import annotations

from edl_labs.exercises.lab03_mixed_precision.aligned_shapes import AlignedShapes
from edl_labs.exercises.lab03_mixed_precision.autocast_dtypes import AutocastDtype
from edl_labs.exercises.lab03_mixed_precision.bug_hunt import BugHunt
from edl_labs.exercises.lab03_mixed_precision.dynamic_scale import DynamicScale
from edl_labs.exercises.lab03_mixed_precision.encode_decode import EncodeDecode
from edl_labs.exercises.lab03_mixed_precision.range_and_scale import StaticScale, WhereItBreaks
from edl_labs.exercises.lab03_mixed_precision.recipe_bytes import BytesPerParameter
from edl_labs.exercises.lab03_mixed_precision.recorded_sums import AccumulateSum
from edl_labs.exercises.lab03_mixed_precision.train_it import TrainIt

EXERCISES = (
    EncodeDecode,
    WhereItBreaks,
    AccumulateSum,
    AutocastDtype,
    StaticScale,
    DynamicScale,
    BugHunt,
    TrainIt,
    BytesPerParameter,
    AlignedShapes,
)
