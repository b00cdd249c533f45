"""Canvas: one zip with flat names, and the gradebook as CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edl_labs.course.marks.archives import Entry
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

COLLECTS_AS = EXPORTS_AS = "canvas"
FILLS_A_FILE = True
TIMES = TimeColumns(whose=("ID",), logins=("SIS Login ID",), when=("submitted_at",))
# The name, perhaps LATE, the user's number, the number of the upload, and the name that the student gave the file.
_FILE = re.compile(r"(?P<name>.*?)_(?:(?P<late>late)_)?(?P<user>\d+)_(?P<upload>\d+)_(?P<file>.+)", re.IGNORECASE)
# With anonymous grading neither name nor number is there: Canvas's anonymous ids have five letters or digits.
_ANONYMOUS = re.compile(r"(?:late_)?anon_(?!\d+_)[0-9a-z]{5}_\d+_.+", re.IGNORECASE)
_TEST_STUDENT = "student, test"
_LOGIN_OF_TESTS = re.compile(r"([0-9a-f]{40})?")  # Canvas gives its test student a hash as login
_COLUMN_NUMBER = re.compile(r"\s*\(\d+\)\s*$")


def upload(entry: Entry) -> Upload | None:
    """Whose file it is, by its name; the same beginning takes feedback back. UsageError for an anonymous download."""
    if _ANONYMOUS.fullmatch(entry.name):
        raise UsageError(
            f"{entry.name} does not name a student",
            why="the assignment is graded anonymously, so Canvas hides the students' names",
            next="turn off Anonymous Grading in the assignment's settings and download again; nothing was collected",
        )
    found = _FILE.fullmatch(entry.name)
    if found is None:
        return None
    return Upload(
        user=found["user"],
        name=found["name"],
        file=found["file"],
        entry=entry,
        prefix=entry.name[: found.start("file")],
        number=int(found["upload"]),
        late=bool(found["late"]),
        test_student=found["name"].casefold() == "studenttest",
    )


def key(cell: str) -> str:
    """The cell itself."""
    return cell


def has_class(table: Table) -> bool:
    """Whether it is the gradebook's export."""
    return table.column("ID") is not None and table.column("Student") is not None


def student(table: Table, row: Sequence[str]) -> ClassMember | None:
    """Who a row of the gradebook is; None for points possible, read-only notes, and the test student."""
    number = table.cell(row, table.need("ID"))
    if not number.isdigit() or _is_test_student(table, row):
        return None
    last, comma, first = table.cell(row, table.need("Student")).partition(",")
    first, last = (first.strip(), last.strip()) if comma else first_and_last(last)
    names = [table.cell(row, table.column(name)) for name in ("SIS Login ID", "SIS User ID")]
    keys = [k for k in (number, *names) if k]
    return ClassMember(chosen_id((*names, number)), first, last, lms_id=number, keys=tuple(keys))


def _is_test_student(table: Table, row: Sequence[str]) -> bool:
    name, own, login = (table.cell(row, table.column(head)) for head in ("Student", "SIS User ID", "SIS Login ID"))
    return name.casefold() == _TEST_STUDENT and not own and bool(_LOGIN_OF_TESTS.fullmatch(login))


def marks_file(
    marks: Sequence[StudentMarks], *, numbers: Mapping[str, str], table: Table | None, assignment: str, column: str
) -> MarksFile:
    """The gradebook with the assignment's column filled in."""
    assert table is not None
    return filled_table(table, _column(table, column or assignment), marks, numbers=numbers, student=student)


def _column(table: Table, wanted: str) -> int:
    table.need("ID")
    plain = [_COLUMN_NUMBER.sub("", head).strip().casefold() for head in table.header]
    found = [i for i, head in enumerate(plain) if head == wanted.casefold() or table.header[i] == wanted]
    if len(found) == 1:
        return found[0]
    assignments = [head for head in table.header if _COLUMN_NUMBER.search(head)]
    raise UsageError(
        f"{table.name} has {'several columns' if found else 'no column'} {wanted}",
        why=f"its assignments are {', '.join(assignments[:8])}" if assignments else "it has no assignments",
        next="name the column: --column 'Lab 1 (12345)'",
    )
