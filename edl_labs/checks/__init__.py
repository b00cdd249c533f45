"""The exercise engine: evidence is collected next to the student's code, and judged in another process."""

from __future__ import annotations

from edl_labs.checks._check import case, check, hint
from edl_labs.checks._exercise import RegisteredExercise, case_source, exercise
from edl_labs.checks._judge import Outcome, close, judge
from edl_labs.checks.chance import score_above_chance
from edl_labs.checks.progress import Progress
from edl_labs.checks.score import Score
from edl_labs.checks.spec import Case, Exercise
from edl_labs.errors import Wrong

__all__ = [
    "Case",
    "Exercise",
    "Outcome",
    "Progress",
    "RegisteredExercise",
    "Score",
    "Wrong",
    "case",
    "case_source",
    "check",
    "close",
    "exercise",
    "hint",
    "judge",
    "score_above_chance",
]
