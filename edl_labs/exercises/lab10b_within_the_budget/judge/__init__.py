"""The judge's part of lab10b_within_the_budget: secret cases, and searches. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab10b_within_the_budget.judge import drawn_training_jobs, training_genomes

__all__ = ["drawn_training_jobs", "training_genomes"]
