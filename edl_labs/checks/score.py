"""The number a check cell ends with."""

from __future__ import annotations

from typing import Any

from edl_labs.checks._judge import Outcome
from edl_labs.checks.progress import Progress
from edl_labs.checks.progress_map import below_a_check

MIME = "application/vnd.edl-labs.score+json"


class Score(float):
    """Points earned, between 0 and the exercise's points. Its text is that plain number: nbgrader reads it.

    Anything that is not a float would score full marks there, and more than the maximum would lose the submission.

    >>> Score(2.0), Score(1.5) + 1
    (2.0, 2.5)
    """

    outcome: Outcome | None

    def __new__(cls, points: float, *, outcome: Outcome | None = None) -> Score:
        most = outcome.max_points if outcome is not None else float("inf")
        value = float(points)
        self = super().__new__(cls, min(max(value, 0.0), most) if value == value else 0.0)
        self.outcome = outcome
        return self

    def __repr__(self) -> str:
        return float.__repr__(self)

    __str__ = __repr__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self.outcome is not None:
            bundle[MIME] = self.outcome.to_json()
            if self.outcome.lab:
                lab = Progress(self.outcome.lab)
                bundle["text/html"] = below_a_check(lab.facts, lab.outcomes)
        return bundle
