"""No learning system: a folder or file for each student, and plain tables of the class, of times and of marks."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms.learning_system import (
    ClassMember,
    MarksFile,
    TimeColumns,
    Upload,
    first_and_last,
    written_number,
)
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import Table, inert

COLLECTS_AS, EXPORTS_AS = "dir", "csv"
FILLS_A_FILE = False
TIMES = TimeColumns(
    whose=("student_id", "user_id", "canvas_id", "moodle_id"),
    logins=("login",),
    when=("submitted_at", "timestamp", "submitted", "time", "Submission time"),
)
_OTHER_NUMBERS = ("canvas_id", "moodle_id", "lms_user_id", "lms_id", "login")
_HEAD = ("student", "first_name", "last_name", "email", "assignment", "submitted", "late_s", "penalty", "points", "of")


def upload(entry: Entry) -> Upload | None:
    """A file's student is the folder that it is in, or its own name where there is none."""
    folder, _, rest = entry.path.partition("/")
    if rest:
        return Upload(user=folder, name=folder, file=entry.name, entry=entry)
    stem = entry.name.rpartition(".")[0] or entry.name
    return Upload(user=stem, name=stem, file=entry.name, entry=entry)


def key(cell: str) -> str:
    """The cell itself."""
    return cell


def has_class(table: Table) -> bool:
    """Whether it has ids."""
    return table.column("id", "student_id") is not None


def student(table: Table, row: Sequence[str]) -> ClassMember | None:
    """Who a row is; UsageError when the table has no ids."""
    chosen = table.cell(row, table.need("id", "student_id"))
    if not chosen:
        return None
    mail = table.cell(row, table.column("email"))
    numbers = [found for name in _OTHER_NUMBERS if (found := table.cell(row, table.column(name)))]
    first, last = table.cell(row, table.column("first_name")), table.cell(row, table.column("last_name"))
    if not (first or last):
        first, last = first_and_last(table.cell(row, table.column("name")))
    keys = [k for k in (chosen, mail, *numbers) if k]
    return ClassMember(chosen, first, last, mail, numbers[0] if numbers else "", tuple(keys))


def marks_file(
    marks: Sequence[StudentMarks], *, numbers: Mapping[str, str], table: Table | None, assignment: str, column: str
) -> MarksFile:
    """A table of its own with everyone in it."""
    return MarksFile(plain_table(marks, assignment), {m.student: m.points for m in marks})


def plain_table(marks: Sequence[StudentMarks], assignment: str) -> bytes:
    """A table with one row a student and one column an exercise, as UTF-8 that spreadsheets recognise."""
    # Practice gives no points, and is no column.
    exercises = sorted({mark.exercise for m in marks for mark in m.marks if mark.max_points})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*_HEAD, *exercises])
    for m in marks:
        by_name = {mark.exercise: written_number(mark.points) for mark in m.marks if mark.counts}
        facts = (m.student, m.first, m.last, m.email, assignment, m.submitted)
        figures = (f"{m.late_s:.0f}", *map(written_number, (m.penalty, m.points, m.max_points)))
        writer.writerow([*map(inert, facts), *figures, *(by_name.get(name, "") for name in exercises)])
    return text.getvalue().encode("utf-8-sig")
