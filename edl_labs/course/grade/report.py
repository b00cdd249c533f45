"""What a class came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1
HEADS = ("student", "points", "of", "flags", "remarks")


@dataclass(frozen=True)
class StudentRow:
    """One student. `state` is graded, kept (nothing had changed), unreadable or failed.

    `points` are those of the gradebook, with marks given by hand; None when there are none.
    """

    student: str
    state: str
    points: float | None = None
    max_points: float | None = None
    flags: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    marks: tuple[tuple[str, float], ...] = ()
    own_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    peak_bytes: int = 0

    def cells(self) -> tuple[str, ...]:
        """The row as text, under `HEADS`."""
        points = "–" if self.points is None else f"{self.points:g}"
        most = "–" if self.max_points is None else f"{self.max_points:g}"
        return (self.student, points, most, ", ".join(self.flags), "; ".join(self.remarks))


@dataclass(frozen=True)
class ClassProgress:
    """How far a class run is. `left_s` is an estimate, None before the first submission is done."""

    done: int
    total: int
    student: str
    elapsed_s: float
    left_s: float | None


ProgressHook = Callable[[ClassProgress], None]


@dataclass(frozen=True)
class ClassReport:
    """A class, graded: one row a student, in order."""

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

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON, with a schema number."""
        return {"schema": SCHEMA, **asdict(self), "exit_code": self.exit_code}
