"""A class, graded: a row for each student, and how far a run has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from edl_labs.course.grade.usage import Usage, UsingValue
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class StudentRow(UsingValue):
    """One student. `state` is graded, kept (nothing had changed), unreadable or failed.

    `points` are those of the gradebook, with marks given by hand; None without a result.
    """

    student: str
    state: str
    points: float | None = None
    max_points: float | None = None
    flags: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    marks: tuple[tuple[str, float], ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ClassProgress:
    """How far a class run is. `left_s` is an estimate, None before the first submission is done."""

    done: int
    total: int
    student: str
    elapsed_s: float
    left_s: float | None


ProgressHook = Callable[[ClassProgress], None]


@dataclass(frozen=True, repr=False)
class ClassReport(Value):
    """A class, graded: one row a student, in order."""

    DERIVED: ClassVar[tuple[str, ...]] = ("exit_code",)
    ROWS: ClassVar[str] = "rows"

    assignment: str
    level: str
    seed: int
    jobs: int
    wall_s: float
    rows: tuple[StudentRow, ...]

    @property
    def exit_code(self) -> int:
        """0 all good; 1 someone could not be graded; 3 only a person can decide; 5 tampered with; 6 nothing to do."""
        flags = {flag for row in self.rows for flag in row.flags}
        if not self.rows:
            return 6
        if any(row.state in ("unreadable", "failed") for row in self.rows):
            return 1
        return 5 if "tampered" in flags else 3 if "inconclusive" in flags else 0

    def row(self, student: str) -> StudentRow:
        """One student's row."""
        return next(row for row in self.rows if row.student == student)
