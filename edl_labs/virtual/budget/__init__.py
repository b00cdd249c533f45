"""A training job against the clock: its price list, its calls, what a program computes, and how fast light would be."""

from __future__ import annotations

from edl_labs.virtual.budget.curve import TrainingFault
from edl_labs.virtual.budget.light import Light, Offer, best_light, light
from edl_labs.virtual.budget.replay import TrainingHang, TrainingRun, replay_training, run_training
from edl_labs.virtual.budget.trainer import Held, Trainer, record_training
from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.budget.training_steps import StepTime, TrainingSteps, gap_parts, training_steps

__all__ = [
    "Held",
    "Light",
    "Offer",
    "StepTime",
    "Trainer",
    "TrainingFault",
    "TrainingHang",
    "TrainingJob",
    "TrainingRun",
    "TrainingSteps",
    "best_light",
    "gap_parts",
    "light",
    "record_training",
    "replay_training",
    "run_training",
    "training_steps",
]
