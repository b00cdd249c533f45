"""Marks into the file that the learning system gave out, matched by id; nobody is dropped, no cell computes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edl_labs.course.grade.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.book import StudentMarks, class_marks
from edl_labs.course.marks.collect import handed_in_as
from edl_labs.course.marks.tables import Table, inert, read_table, same_name, write_table
from edl_labs.errors import UsageError

KINDS = ("canvas", "moodle", "csv")
_CANVAS_NUMBER = re.compile(r"\s*\(\d+\)\s*$")
_HEAD = ("student", "first_name", "last_name", "email", "assignment", "submitted", "late_s", "penalty", "points", "of")


@dataclass(frozen=True)
class ExportReport:
    """What was filled in. `unknown` are students with marks whom the file does not have: enter theirs by hand.

    `waiting` are students with prose that nobody has marked; their cells hold what there is so far.
    """

    assignment: str
    kind: str
    file: str
    filled: tuple[tuple[str, float], ...]
    unknown: tuple[tuple[str, float], ...] = ()
    without: tuple[str, ...] = ()
    """Students of the file who have no marks; their cells stay as they were."""
    waiting: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 every mark has its place; 1 some student with marks is not in the file."""
        return 1 if self.unknown else 0

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON, with a schema number."""
        return {"schema": 1, **asdict(self), "exit_code": self.exit_code}


def export(
    assignment: str,
    *,
    kind: str,
    out: Path,
    course: CourseFolder | None = None,
    template: Path | None = None,
    column: str = "",
) -> ExportReport:
    """Write the marks of `assignment` to `out`.

    For Canvas and Moodle, `template` is the file downloaded from there, which comes back with one column filled
    (`column`, or the one called like the assignment). `csv` is a table of its own, one row a student.
    """
    course = course or CourseFolder.find()
    if kind not in KINDS:
        raise UsageError(f"there is no destination {kind!r}", next=f"choose one of {', '.join(KINDS)}")
    marks = class_marks(course, assignment)
    waiting = tuple(m.student for m in marks if m.waiting)
    if kind == "csv":
        write_atomically(out, plain_table(marks, assignment))
        filled = tuple((m.student, m.points) for m in marks)
        return ExportReport(assignment, kind, str(out), filled, waiting=waiting)
    if template is None:
        raise UsageError(
            f"the file downloaded from {kind} is missing",
            why="marks are filled into it, so that ids and names stay those of the learning system",
            next="--file DOWNLOADED.csv",
        )
    table = read_table(template)
    target = _canvas_column(table, column or assignment) if kind == "canvas" else table.need(column or "Grade")
    numbers = {student: number for student, (number, _) in handed_in_as(course, assignment).items()}
    rows, filled_by, without = _filled(table, _Finder(marks, numbers), target, kind)
    write_table(out, table, rows)
    unknown = tuple((m.student, m.points) for m in marks if m.student not in filled_by)
    return ExportReport(assignment, kind, str(out), tuple(filled_by.items()), unknown, tuple(without), waiting)


def plain_table(marks: Iterable[StudentMarks], assignment: str) -> bytes:
    """A table with one row a student and one column an exercise, as UTF-8 that spreadsheets recognise."""
    marks = list(marks)
    exercises = sorted({mark.exercise for m in marks for mark in m.marks})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*_HEAD, *exercises])
    for m in marks:
        by_name = {mark.exercise: f"{mark.points:g}" for mark in m.marks if not mark.waiting}
        facts = (m.student, m.first, m.last, m.email, assignment, m.submitted)
        figures = (f"{m.late_s:.0f}", f"{m.penalty:g}", f"{m.points:g}", f"{m.max_points:g}")
        writer.writerow([*map(inert, facts), *figures, *(by_name.get(name, "") for name in exercises)])
    return text.getvalue().encode("utf-8-sig")


class _Finder:
    """Finds a student's marks by whatever a row of the learning system's file calls them."""

    def __init__(self, marks: Sequence[StudentMarks], numbers: dict[str, str]) -> None:
        self._by_key: dict[str, list[StudentMarks]] = {}
        self._by_name: dict[str, list[StudentMarks]] = {}
        for m in marks:
            for key in {m.student, m.email, numbers.get(m.student, "")} - {""}:
                self._by_key.setdefault(key.casefold(), []).append(m)
            if m.first or m.last:
                self._by_name.setdefault(same_name(m.name), []).append(m)

    def find(self, keys: Iterable[str], name: str) -> StudentMarks | None:
        """The marks that the first known key means; a full name only when no key is known and it is nobody else's."""
        for key in keys:
            found = self._by_key.get(key.casefold(), []) if key else []
            if len(found) == 1:
                return found[0]
        named = self._by_name.get(same_name(name), []) if name else []
        return named[0] if len(named) == 1 else None


def _filled(
    table: Table, finder: _Finder, target: int, kind: str
) -> tuple[list[list[str]], dict[str, float], list[str]]:
    rows, filled, without = [], {}, []
    most = table.column("Maximum Grade", "Maximum grade") if kind == "moodle" else None
    for row in table.rows:
        cells = [inert(cell) for cell in row]
        keys, name = _who(table, row, kind)
        marks = finder.find(keys, name) if keys else None
        if marks is not None and marks.student in filled:
            raise UsageError(
                f"{table.name} has {marks.student} twice",
                why=f"the second time as {name}",
                next="remove one of the rows",
            )
        if marks is not None:
            scale = _scale(table.cell(row, most), marks)
            cells[target] = _number(marks.points * scale)
            filled[marks.student] = marks.points
        elif keys:
            without.append(name or keys[0])
        rows.append(cells)
    return rows, filled, without


def _who(table: Table, row: Sequence[str], kind: str) -> tuple[list[str], str]:
    """What a row calls its student, and the name; no keys for rows that are nobody's, such as points possible."""
    if kind == "canvas":
        if not table.cell(row, table.need("ID")).isdigit():
            return [], ""
        names = ("ID", "SIS Login ID", "SIS User ID")
        keys = [table.cell(row, table.column(name)) for name in names]
        last, comma, first = table.cell(row, table.need("Student")).partition(",")
        return [key for key in keys if key], f"{first} {last}".strip() if comma else last
    number = table.cell(row, table.need("Identifier")).split()
    keys = [number[-1] if number else ""]
    keys += [table.cell(row, table.column(name)) for name in ("ID number", "Username", "Email address")]
    return [key for key in keys if key], table.cell(row, table.column("Full name"))


def _scale(most: str, marks: StudentMarks) -> float:
    """Moodle's own maximum may differ from the lab's; then marks are scaled to it."""
    try:
        highest = float(most.replace(",", "."))
    except ValueError:
        return 1.0
    return highest / marks.max_points if highest > 0 and marks.max_points > 0 else 1.0


def _canvas_column(table: Table, wanted: str) -> int:
    table.need("ID")
    plain = [_CANVAS_NUMBER.sub("", head).strip().casefold() for head in table.header]
    found = [i for i, head in enumerate(plain) if head == wanted.casefold() or table.header[i] == wanted]
    if len(found) == 1:
        return found[0]
    assignments = [head for head in table.header if _CANVAS_NUMBER.search(head)]
    raise UsageError(
        f"{table.name} has {'several columns' if found else 'no column'} {wanted}",
        why=f"its assignments are {', '.join(assignments[:8]) or 'none'}",
        next="name the column: --column 'Lab 1 (12345)'",
    )


def _number(value: float) -> str:
    return f"{round(value, 4):g}" if abs(value) < 1e5 else str(round(value, 4))
