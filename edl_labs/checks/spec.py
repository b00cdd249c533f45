"""What the author of an exercise writes: the base class that declares every part, with its default."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks.evidence_form import answer_text, case_lines
from edl_labs.errors import Wrong

MOST_KEPT_BYTES = 400_000  # of timelines as JSON: those of two programs at their own bound, and half as much again
AS_THE_REFERENCE = object()
"""The form of answers where a spec gives none."""


class Exercise:
    """An exercise: `probe` and `compare`, and `cases` unless the lab's `judge/` draws them. All else is optional.

    `cases` and `compare` run on the judge's side, `probe` next to the student's code. Cases and evidence are plain
    data.
    """

    answer_form: ClassVar[Any] = AS_THE_REFERENCE
    """What evidence looks like, where the reference's own does not say it: goldens hold less of it (`public_want`)."""
    skip_type_check: ClassVar[bool] = False
    """`compare` looks at the form itself, and gets arrays as lists; otherwise a wrong form is refused before it."""

    def cases(self, rng: Any) -> list[Any]:
        """The cases that a numpy Generator draws."""
        raise NotImplementedError

    def probe(self, student: Any, case: Any) -> object:
        """The evidence of one case, from the student's names."""
        raise NotImplementedError

    def compare(self, case: Any, got: Any, want: Any) -> float | None:
        """Nothing where the evidence is right, a fraction, or `Wrong` is raised; `want` is the reference's evidence."""
        raise NotImplementedError

    def combine(self, fractions: list[float]) -> float:
        """The share of the points from the fractions of all cases; by default one case that earns nothing costs all."""
        return 0.0 if not fractions or min(fractions) <= 0 else sum(fractions) / len(fractions)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one mistake that explains the answers to all cases, the right ones too; a single case may fit several."""
        return None

    def explain_exception(self, case: Any, kind: str) -> Wrong | None:
        """What an exception of the type `kind` means in this case; None where its own message says it."""
        return None

    def format_case(self, case: Any) -> str:
        """A case as its student reads it."""
        return case_lines(case)

    def format_answer(self, case: Any, got: Any) -> str:
        """What the student's code gave, as text below the case; by default nothing where there is an `answer_form`."""
        return answer_text(got) if self.answer_form is AS_THE_REFERENCE else ""

    def student_inputs(self, case: Any) -> object:
        """What `case("name")` gives a student to try their code on, such as the tensors that a seed makes."""
        return case

    def is_public(self, case: Any) -> bool:
        """Whether goldens hold a case of the public seed. Where few can be asked at all, they would give most away."""
        return True

    def public_want(self, case: Any, want: Any) -> object:
        """What goldens hold of the reference's evidence, where all of it would be an answer to copy."""
        return want

    def leaderboard_metrics(self, cases: list[Any], got: list[Any]) -> Mapping[str, float]:
        """Numbers by name that stand beside the mark of answers which earn points, for a leaderboard."""
        return {}

    def leaderboard_timelines(self, cases: list[Any], got: list[Any], want: list[Any]) -> Mapping[str, Any]:
        """What ran when in one case, the student's and the reference's, as `TrainingSteps.to_plain()` gives it."""
        return {}

    def stand_in(self) -> Mapping[str, Any]:
        """What takes the place of this exercise's class where another uses it: names made of what libraries have."""
        return {}


def finite_metrics(spec: Exercise, cases: list[Any], records: list[Any]) -> dict[str, float]:
    """What the spec says in numbers of answers that earn points: finite ones by name, or nothing."""
    try:
        found = spec.leaderboard_metrics(cases, [record["value"] for record in records])
        numbers = {str(name): float(value) for name, value in found.items()}
    except Exception:  # the mark stands, whatever is said beside it
        return {}
    return numbers if all(map(math.isfinite, numbers.values())) else {}


def kept_timelines(spec: Exercise, cases: list[Any], records: list[Any], want: list[Any]) -> dict[str, Any]:
    """What the spec keeps of answers that earned points, for a leaderboard to show.

    Plain JSON data of at most MOST_KEPT_BYTES, or nothing: the mark stands, whatever is kept beside it.
    """
    try:
        kept = spec.leaderboard_timelines(cases, [record["value"] for record in records], want)
        text = json.dumps(kept, allow_nan=False)
        found = json.loads(text)
    except Exception:
        return {}
    return found if isinstance(found, dict) and len(text) <= MOST_KEPT_BYTES else {}


def defines(spec: type[Exercise], part: str) -> bool:
    """Whether an exercise's author wrote a part, or left it as it is here."""
    return getattr(spec, part) is not getattr(Exercise, part)
