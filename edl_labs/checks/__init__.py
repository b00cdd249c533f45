"""The exercise engine: evidence is collected beside the student's code and judged away from it."""

from __future__ import annotations

from edl_labs.checks.exercise import Exercise, exercise
from edl_labs.checks.judge import Outcome, close, judge
from edl_labs.checks.notebook import check, hint
from edl_labs.checks.progress import Progress
from edl_labs.checks.score import Score
from edl_labs.errors import Wrong

__all__ = ["Exercise", "Outcome", "Progress", "Score", "Wrong", "check", "close", "exercise", "hint", "judge"]
