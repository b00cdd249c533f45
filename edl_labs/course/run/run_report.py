"""What a headless run comes to, as frozen values that know their exit code and their JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.values import Value

FAILED, CRASHED = 1, 4  # the exit codes that README promises


@dataclass(frozen=True)
class RunLimits:
    """How long a notebook may take, in seconds, and how much one cell may print, in bytes."""

    cell_s: float = 600.0
    notebook_s: float = 1800.0
    start_s: float = 60.0
    output_bytes: int = 20_000_000

    def __post_init__(self) -> None:
        for field_ in fields(self):
            value = getattr(self, field_.name)
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"{field_.name} is {value:g}", why="a limit is a positive number", next="raise it")


@dataclass(frozen=True, repr=False)
class RanCell(Value):
    """One code cell after the run. `state` is 'ran', 'raised', 'exited', 'stopped' (in it the run ended) or 'never'."""

    OMITTED = ("scores",)

    index: int
    id: str
    line: str
    state: str = "never"
    seconds: float = 0.0
    error: str = ""
    error_name: str = ""
    grade_id: str = ""
    check: str = ""
    max_points: float | None = None
    scores: tuple[Mapping[str, Any], ...] = ()
    plain_result: str = ""

    @property
    def title(self) -> str:
        """How a message names this cell: its place, and its id or first line."""
        return f"cell {self.index + 1} ({self.line or self.id})"


@dataclass(frozen=True)
class RunFailure:
    """One reason for which a run failed: what happened, why, what next; `exit_code` says how grave it is."""

    kind: str
    what: str
    why: str = ""
    next: str = ""
    exit_code: int = CRASHED

    def __str__(self) -> str:
        lines = [self.what, f"  why:  {self.why}" if self.why else "", f"  next: {self.next}" if self.next else ""]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class ExerciseResult:
    """One exercise in one run.

    `state` is a check's own word (passed, partly, wrong, not attempted) or one of: not reached, unreadable, missing,
    marked by hand.
    """

    name: str
    state: str
    points: float
    max_points: float
    what: str = ""
    why: str = ""
    next: str = ""
    seconds: float = 0.0
    cell: str = ""

    @property
    def by_hand(self) -> bool:
        """Whether a person marks it."""
        return self.state == "marked by hand"

    @property
    def full(self) -> bool:
        """Whether it has every point that a machine can give."""
        return self.by_hand or (self.state == "passed" and self.points >= self.max_points)


@dataclass(frozen=True, repr=False)
class NotebookResult(Value):
    """One notebook's run. `files` maps what was written (notebook, page) to its path below the output folder."""

    DERIVED = ("ok", "points", "max_points")

    lab: str
    title: str
    device: str
    parameters: Mapping[str, Any]
    cells: tuple[RanCell, ...]
    seconds: float
    exercises: tuple[ExerciseResult, ...] = ()
    failures: tuple[RunFailure, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    @property
    def points(self) -> float:
        """Points that checks gave."""
        return sum(e.points for e in self.exercises if not e.by_hand)

    @property
    def max_points(self) -> float:
        """Points that checks can give; what a person marks is not in it."""
        return sum(e.max_points for e in self.exercises if not e.by_hand)

    @property
    def cells_run(self) -> int:
        """How many code cells the kernel ran to their end."""
        return sum(cell.state == "ran" for cell in self.cells)

    @property
    def slowest(self) -> RanCell | None:
        """The cell that took longest; None when none ran."""
        begun = [cell for cell in self.cells if cell.state != "never"]
        return max(begun, key=lambda cell: cell.seconds, default=None)

    def row(self) -> dict[str, Any]:
        """One line of the table: lab, device, cells, seconds, score of points, slowest cell."""
        slow = self.slowest
        return {
            "lab": self.lab,
            "device": self.device,
            "cells_run": self.cells_run,
            "cells": len(self.cells),
            "seconds": self.seconds,
            "points": self.points,
            "max_points": self.max_points,
            "by_hand_points": sum(e.max_points for e in self.exercises if e.by_hand),
            "slowest": slow.title if slow else "",
            "slowest_s": slow.seconds if slow else 0.0,
            "ok": self.ok,
        }


@dataclass(frozen=True, repr=False)
class RunReport(Value):
    """A headless run of one or more labs. `exit_code` is 0, 1 (something failed) or 4 (a notebook crashed)."""

    DERIVED = ("ok", "exit_code")
    OMITTED = ("folder",)
    ROWS = "notebooks"

    mode: str
    device: str
    seconds: float
    notebooks: tuple[NotebookResult, ...]
    folder: str = ""

    @property
    def ok(self) -> bool:
        """Whether every notebook ran through with full marks."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The gravest exit code of all failures."""
        return max((f.exit_code for n in self.notebooks for f in n.failures), default=0)

    def rows(self) -> list[dict[str, Any]]:
        """The lines of the table, one a lab."""
        return [notebook.row() for notebook in self.notebooks]

    def failures(self) -> list[tuple[str, RunFailure]]:
        """Every failure with the lab that it is of."""
        return [(n.lab, failure) for n in self.notebooks for failure in n.failures]
