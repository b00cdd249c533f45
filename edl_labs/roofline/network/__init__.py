"""The network: what a step on several nodes may expect of its links (deck [004]), and how GPUs share one."""

from __future__ import annotations

from edl_labs.roofline.network.alpha_beta import (
    CollectiveCost,
    GroupLinks,
    LevelCost,
    collective_cost,
    point_to_point_s,
)
from edl_labs.roofline.network.data_parallel import (
    FLOPS_PER_PARAMETER,
    OVERLAPS,
    Cluster,
    ScalingPoint,
    Step,
    Training,
    intensity_flop_per_byte,
    ring_bytes,
    smallest_minibatch,
    step,
    strong_scaling,
    weak_scaling,
)
from edl_labs.roofline.network.layout_costs import Layout
from edl_labs.roofline.network.layouts import LayoutPlan, plan
from edl_labs.roofline.network.sharded_training import (
    Bucket,
    BucketTimes,
    Calls,
    StateBytes,
    block_activation_bytes,
    bubble_fraction,
    equal_buckets,
    micro_batches_in_flight,
    sent_in_buckets,
    tensor_calls,
    zero_bytes_per_parameter,
    zero_calls,
)
from edl_labs.roofline.network.training_jobs import GPUCluster, Transformer, group_levels

__all__ = [
    "FLOPS_PER_PARAMETER",
    "OVERLAPS",
    "Bucket",
    "BucketTimes",
    "Calls",
    "Cluster",
    "CollectiveCost",
    "GPUCluster",
    "GroupLinks",
    "Layout",
    "LayoutPlan",
    "LevelCost",
    "ScalingPoint",
    "StateBytes",
    "Step",
    "Training",
    "Transformer",
    "block_activation_bytes",
    "bubble_fraction",
    "collective_cost",
    "equal_buckets",
    "group_levels",
    "intensity_flop_per_byte",
    "micro_batches_in_flight",
    "plan",
    "point_to_point_s",
    "ring_bytes",
    "sent_in_buckets",
    "smallest_minibatch",
    "step",
    "strong_scaling",
    "tensor_calls",
    "weak_scaling",
    "zero_bytes_per_parameter",
    "zero_calls",
]
