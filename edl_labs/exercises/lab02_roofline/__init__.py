"""The exercises of lab02_roofline: work, ceilings, bounds, and the network as one more roof."""

from __future__ import annotations

from edl_labs.exercises.lab02_roofline.batches_at_the_ridge import MinibatchCrossover
from edl_labs.exercises.lab02_roofline.data_parallel_rings import NetworkRoofline
from edl_labs.exercises.lab02_roofline.fused_chains import FusedOrNot
from edl_labs.exercises.lab02_roofline.layer_diagnosis import Diagnose
from edl_labs.exercises.lab02_roofline.operation_counts import Intensity
from edl_labs.exercises.lab02_roofline.ridges_and_speedups import Amdahl, RidgeAndBound
from edl_labs.exercises.lab02_roofline.scaling_plans import ScalingPlan
from edl_labs.exercises.lab02_roofline.transformer_blocks import CountAModel

EXERCISES = (
    Intensity,
    RidgeAndBound,
    MinibatchCrossover,
    FusedOrNot,
    CountAModel,
    Amdahl,
    Diagnose,
    NetworkRoofline,
    ScalingPlan,
)
