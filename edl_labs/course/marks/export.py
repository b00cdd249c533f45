"""Writes marks into the learning system's file, matched by id; no student is dropped, and no cell is a formula."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.marks.hand_ins import hand_ins
from edl_labs.course.marks.lms import exports_as, read_list
from edl_labs.course.marks.student_marks import class_marks
from edl_labs.errors import UsageError
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class ExportReport(Value):
    """What was filled in. `unknown` are students with marks whom the file does not have: enter theirs by hand.

    `waiting` are students with unmarked prose; their cells hold the marks so far.
    """

    DERIVED = ("exit_code",)

    assignment: str
    kind: str
    file: str
    filled: tuple[tuple[str, float], ...]
    unknown: tuple[tuple[str, float], ...] = ()
    without: tuple[str, ...] = ()
    """Students in the file who have no marks; their cells stay unchanged. Without a file: submitters without marks."""
    waiting: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 every mark has its place; 1 some student with marks is not in the file."""
        return 1 if self.unknown else 0


def export(
    assignment: str,
    *,
    kind: str,
    out: Path,
    course: Course | None = None,
    template: Path | None = None,
    column: str = "",
) -> ExportReport:
    """Write the marks of `assignment` to `out`, as the learning system `kind` takes them.

    `template` is the file downloaded from there, which comes back with one column filled (`column`, or the one that
    the system has for the assignment). `csv` is a table of its own, one row a student, and needs no such file.
    """
    course = course or Course.find_class()
    system = exports_as(kind)
    marks = class_marks(course, assignment)
    if system.FILLS_A_FILE and template is None:
        raise UsageError(
            f"the file downloaded from {kind} is missing",
            why="the marks are written into that file, so that the learning system recognises its ids and names",
            next="pass it with --file DOWNLOADED.csv",
        )
    table = read_list(template) if system.FILLS_A_FILE and template else None
    numbers = {student: known.user for student, known in hand_ins(course, assignment).items()}
    found = system.marks_file(marks, numbers=numbers, table=table, assignment=assignment, column=column)
    write_atomically(out, found.data)
    unknown = tuple((m.student, m.points) for m in marks if m.student not in found.filled)
    waiting = tuple(m.student for m in marks if m.waiting)
    # A table of its own has no rows that could stay empty; who handed in what nobody could read must not vanish there.
    without = found.without if table else tuple(s for s in course.students(assignment) if s not in found.filled)
    return ExportReport(assignment, kind, str(out), tuple(found.filled.items()), unknown, without, waiting)
