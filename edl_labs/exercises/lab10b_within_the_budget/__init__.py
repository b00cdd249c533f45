"""The exercises of lab10b_within_the_budget: one training job, made fast on one GPU, on several, and for its money."""

from __future__ import annotations

from edl_labs.exercises.lab10b_within_the_budget.budget_scores import BudgetScore
from edl_labs.exercises.lab10b_within_the_budget.training_programs import Scaled, Single

EXERCISES = (Single, Scaled, BudgetScore)
