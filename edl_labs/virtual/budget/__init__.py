"""A training job against the clock: its prices, its calls, what a program computes, and a lower bound of its time."""

from __future__ import annotations

from edl_labs.virtual.budget.curve import TrainingFault
from edl_labs.virtual.budget.lower_bound import LowerBound, Offer, best_lower_bound, lower_bound
from edl_labs.virtual.budget.replay import TrainingHang, TrainingRun, replay_training, run_training
from edl_labs.virtual.budget.trainer import Held, Trainer, record_training
from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.budget.training_steps import StepTime, TrainingSteps, gap_parts, training_steps

__all__ = [
    "Held",
    "LowerBound",
    "Offer",
    "StepTime",
    "Trainer",
    "TrainingFault",
    "TrainingHang",
    "TrainingJob",
    "TrainingRun",
    "TrainingSteps",
    "best_lower_bound",
    "gap_parts",
    "lower_bound",
    "record_training",
    "replay_training",
    "run_training",
    "training_steps",
]
