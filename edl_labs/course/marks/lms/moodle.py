"""Moodle: a zip with a folder or a file for each student, and the grading worksheet as CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms import moodle_worksheet
from edl_labs.course.marks.lms.learning_system import (
    ClassMember,
    MarksFile,
    TimeColumns,
    Upload,
    chosen_id,
    filled_table,
    first_and_last,
)
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import Table
from edl_labs.errors import UsageError

COLLECTS_AS = EXPORTS_AS = "moodle"
FILLS_A_FILE = True
TIMES = TimeColumns(whose=("Identifier",), logins=("Email address",), when=("Last modified (submission)",))
# Full name (or "Participant"), the participant's number, the kind of submission, then a folder or the file.
# A team submission has the group's name and number there; the default group, of those in no group, has no number.
_FILE = re.compile(
    r"(?P<name>.+?)(?:_(?P<user>\d+))?_assign(?:submission|feedback)_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?"
)
_PARTICIPANT = re.compile(r"\D+(\d+)")
_DECIMAL_COMMA = re.compile(r"\d+,\d+")


def upload(entry: Entry) -> Upload | None:
    """Whose file it is, by the first part of its path that says so; feedback goes back under a name of that form."""
    parts = entry.path.split("/")
    for depth, part in enumerate(parts):
        found = _FILE.fullmatch(part)
        if found is None:
            continue
        inside = "/".join(parts[depth + 1 :]) or found["file"] or ""
        if not inside:
            return None
        name, user, file = found["name"], found["user"] or "", inside.split("/")[-1]
        return Upload(user, name, file, entry, prefix=f"{name}_{user}_assignsubmission_file_", may_be_team=True)
    return None


def key(cell: str) -> str:
    """The number of 'Participant 555', in any language."""
    found = _PARTICIPANT.fullmatch(cell)
    return found[1] if found else cell


def has_class(table: Table) -> bool:
    """Whether it is the grading worksheet, or the list of participants."""
    return table.column("Identifier") is not None or table.column("Email address") is not None


def student(table: Table, row: Sequence[str]) -> ClassMember | None:
    """Who a row of the worksheet or of the participants is."""
    identifier = table.cell(row, table.column("Identifier"))
    number = key(identifier)
    own, login = table.cell(row, table.column("ID number")), table.cell(row, table.column("Username"))
    mail = table.cell(row, table.column("Email address", "Email"))
    keys = [k for k in dict.fromkeys((number, own, login, mail, identifier)) if k]
    if not keys:
        return None
    first, last = table.cell(row, table.column("First name")), table.cell(row, table.column("Last name", "Surname"))
    if not (first or last):
        first, last = first_and_last(table.cell(row, table.column("Full name")))
    chosen, number = chosen_id((own, login, mail, number)), number if number.isdigit() else ""
    return ClassMember(chosen, first, last, mail, number, tuple(keys), moodle_worksheet.teams(table, row))


def marks_file(
    marks: Sequence[StudentMarks], *, numbers: Mapping[str, str], table: Table | None, assignment: str, column: str
) -> MarksFile:
    """The worksheet with its grades filled in, scaled to the maximum that Moodle has for the assignment.

    Numbers have the sign of the worksheet's own, and comments are left as they are: Moodle reads them back.
    """
    assert table is not None
    target, _ = table.need(column or "Grade"), table.need("Identifier")
    maximum = table.column("Maximum Grade")
    return filled_table(
        table,
        target,
        marks,
        numbers=numbers,
        student=student,
        highest=lambda row: _highest(table, table.cell(row, maximum)),
        decimal="," if any(_DECIMAL_COMMA.fullmatch(table.cell(row, maximum)) for row in table.rows) else ".",
        as_they_are=(table.column("Feedback comments"),),
    )


def _highest(table: Table, said: str) -> float:
    """A row's maximum, 0 where the worksheet does not say; UsageError where the assignment has no points."""
    if not said:
        return 0.0
    try:
        found = float(said.replace(",", "."))
    except ValueError:
        found = -1.0
    if found <= 0:  # for a scale Moodle writes the scale's number below 0, and 0 where nothing is graded
        raise UsageError(
            f"{table.name}: the assignment has no points in Moodle",
            why=f"its maximum grade is {said!r}, so it is marked on a scale or not graded at all",
            next="set its grade type to Point in Moodle, then download the worksheet again",
        )
    return found
