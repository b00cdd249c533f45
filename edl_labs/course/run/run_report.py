"""The results of a run: frozen values with an exit code and JSON, and the run as JUnit XML."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from xml.etree import ElementTree

from edl_labs.errors import UsageError
from edl_labs.values import Value

FAILED, CRASHED = 1, 4  # the exit codes that README promises
INTERRUPTED = "interrupted at its limit"  # `error_name` of a cell after which the run went on
_OF_EXERCISES = ("full-marks", "unreadable", "missing")
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/][0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


def plain_text(value: object) -> str:
    """`value` as text without terminal codes, holding only characters that XML 1.0 allows.

    >>> plain_text("\\x1b[31mred\\x1b[0m and \\x00 nothing")
    'red and  nothing'
    """
    return _NOT_XML.sub("", _ANSI.sub("", str(value)))


def one_line(value: object, *, limit: int = 200) -> str:
    """`value` as one line of plain text of at most `limit` characters.

    >>> one_line("first\\n  second", limit=12)
    'first second'
    """
    text = " ".join(plain_text(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


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
                raise UsageError(
                    f"{field_.name} is {value:g}", why="time limits must be positive", next="use a positive number"
                )


@dataclass(frozen=True, repr=False)
class RanCell(Value):
    """One code cell after the run. `state` is 'ran', 'raised', 'exited', 'stopped' (in it the run ended) or 'never'."""

    OMITTED = ("scores", "number")

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
    number: int = 0

    @property
    def title(self) -> str:
        """How a message names this cell: the number that JupyterLab shows after Run All, and its first line or id."""
        return f"cell {self.number or self.index + 1} ({self.line or self.id})"


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
    def is_practice(self) -> bool:
        """Whether it gives no points, whatever comes of it."""
        return not self.by_hand and not self.max_points

    @property
    def full(self) -> bool:
        """Whether it has every point that a machine can give."""
        return self.by_hand or (self.state == "passed" and self.points >= self.max_points)


class WithExercises(Value):
    """A value with `exercises`, and the points that they come to."""

    exercises: tuple[ExerciseResult, ...]

    @property
    def points(self) -> float:
        """Points that checks gave."""
        return sum(e.points for e in self.exercises if not e.by_hand)

    @property
    def max_points(self) -> float:
        """Points that checks can give; what a person marks is not in it."""
        return sum(e.max_points for e in self.exercises if not e.by_hand)

    @property
    def by_hand_points(self) -> float:
        """Points that a person gives."""
        return sum(e.max_points for e in self.exercises if e.by_hand)


@dataclass(frozen=True, repr=False)
class NotebookResult(WithExercises):
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
            "by_hand_points": self.by_hand_points,
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


def junit_xml(report: RunReport) -> bytes:
    """The report as a JUnit file in UTF-8, without terminal codes and without characters that XML forbids."""
    root = ElementTree.Element("testsuites", name="edl-labs run", time=_seconds(report.seconds))
    for notebook in report.notebooks:
        root.append(_suite(notebook, report))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _suite(notebook: NotebookResult, report: RunReport) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=plain_text(notebook.lab), time=_seconds(notebook.seconds))
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"mode": report.mode, "device": notebook.device, **notebook.parameters}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=plain_text(name), value=plain_text(value))
    suite.append(_run_case(notebook))
    for exercise in notebook.exercises:
        suite.append(_exercise_case(notebook.lab, exercise))
    suite.set("tests", str(len(notebook.exercises) + 1))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _run_case(notebook: NotebookResult) -> ElementTree.Element:
    case = _case(notebook.lab, "notebook runs through", notebook.seconds)
    crashes = [failure for failure in notebook.failures if failure.kind not in _OF_EXERCISES]
    if crashes:
        _add(case, "error", crashes[0].what, crashes[0].kind, "\n".join(map(str, crashes)))
    return case


def _exercise_case(lab: str, exercise: ExerciseResult) -> ElementTree.Element:
    case = _case(lab, exercise.name, exercise.seconds)
    if exercise.by_hand:
        ElementTree.SubElement(case, "skipped", message="marked by hand")
    elif exercise.state == "not reached":
        _add(case, "error", exercise.what, exercise.state, exercise.what)
    elif not exercise.full:
        what = f"{exercise.points:g} of {exercise.max_points:g} points: {exercise.what or exercise.state}"
        text = str(RunFailure(exercise.state, what, exercise.why, exercise.next))
        _add(case, "failure", what, exercise.state, text)
    return case


def _case(lab: str, name: str, seconds: float) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=plain_text(lab), name=plain_text(name), time=_seconds(seconds))


def _add(case: ElementTree.Element, tag: str, message: str, kind: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=plain_text(message), type=kind).text = plain_text(text)


def _seconds(value: float) -> str:
    return f"{value:.3f}"
