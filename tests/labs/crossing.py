"""What of a secret case is sent to a student's kernel, by the grader's own sending code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

from edl_labs.checks import Case, Outcome, RegisteredExercise, plain_data
from edl_labs.checks.spec import plain_cases
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.probe_run import PlanRunner
from edl_labs.course.grade.secret_cases import SecretCases


def changed(value: Any) -> Any:
    """Plain data with every leaf another one."""
    if isinstance(value, dict):
        return {key: changed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(changed, value), "one more"]
    if hasattr(value, "shape"):
        return value + 1 if value.size else 1
    return {bool: lambda v: not v, int: lambda v: v + 1, str: lambda v: v + "."}.get(type(value), repr)(value)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of plain data that are no entries of lists: settings, not rows of numbers."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif not isinstance(value, list):
        yield value


@dataclass
class Kept:
    """A judge that keeps the evidence, and a check that keeps what it is asked."""

    evidence: dict[str, bytes] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    data = b""
    source = ""
    files = MappingProxyType({})

    def judge(self, exercise: RegisteredExercise, cases: bytes, evidence: bytes, wants: bytes, **_: Any) -> Any:
        self.evidence[exercise.name] = evidence
        outcome = Outcome(exercise.name, exercise.lab, "passed", 1.0, 1.0)
        return SimpleNamespace(outcome=outcome, all_values=True, has_errors=False, cpu_s=0.0)

    def judged(self, **_: Any) -> None:
        """The grader says what judging took."""

    def ask(self, request: bytes, *, serve: object = None) -> Kept:
        self.sent.append(request)
        return self


def examiner(assignment: Assignment, cases: dict[str, list[Case]], kept: Kept, **runner: Any) -> Examiner:
    """The grader's own examiner of these secret cases, in front of a judge that keeps evidence."""
    secrets = {
        name: SecretCases(plain_data.encode(plain_cases(drawn)), plain_data.encode([None] * len(drawn)))
        for name, drawn in cases.items()
    }
    return Examiner(PlanRunner(assignment, **runner), secrets, kept, None)  # type: ignore[arg-type]


def sent(assignment: Assignment, exercise: RegisteredExercise, cases: list[Case]) -> bytes:
    """The bytes that the grader sends to a kernel for a probe of these cases."""
    kept = Kept()
    examiner(assignment, {exercise.name: cases}, kept, new_kernel=lambda: None).take(exercise, kept)  # type: ignore
    (request,) = kept.sent
    return request
