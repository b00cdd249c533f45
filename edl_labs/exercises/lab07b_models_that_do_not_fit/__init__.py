"""The exercises of lab07b_models_that_do_not_fit: weights, blocks and layers spread over GPUs."""

from __future__ import annotations

from edl_labs.exercises.lab07b_models_that_do_not_fit.cluster_layouts import LayoutOfAJob
from edl_labs.exercises.lab07b_models_that_do_not_fit.pipelines import Pipeline
from edl_labs.exercises.lab07b_models_that_do_not_fit.sharded_steps import ShardedStep
from edl_labs.exercises.lab07b_models_that_do_not_fit.split_blocks import SplitABlock
from edl_labs.exercises.lab07b_models_that_do_not_fit.zero_stages import Zero

EXERCISES = (
    ShardedStep,
    SplitABlock,
    Pipeline,
    Zero,
    LayoutOfAJob,
)
