"""The interface of a learning system: owners and times of files, the class list, and the place of the marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import Table, inert, same_name
from edl_labs.errors import UsageError


@dataclass(frozen=True)
class Upload:
    """A file and whose it is: `user` is the learning system's number or, in a plain folder, the folder's name."""

    user: str
    name: str
    file: str
    entry: Entry
    prefix: str = ""
    """The prefix of the name of a file that is returned to this student, from which the system knows the student."""
    number: int = 0
    """The number of the upload; later uploads have higher numbers. 0 if the system gives none."""
    late: bool = False
    may_be_team: bool = False
    """Whether `user` may be the number of a group, as in Moodle's team submissions: then the name decides."""
    team: str = ""
    """The group that submitted it, once its members are known."""
    time: datetime | None = None
    """The submission time, if the learning system's name for the file contains it."""
    test_student: bool = False
    """Whether its name is that of the learning system's test student."""


@dataclass(frozen=True)
class ClassMember:
    """One student. `id` names them in the gradebook and in folders; `keys` is all that a file may call them."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms_id: str = ""
    keys: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    """The groups that the learning system's own list names."""

    @property
    def name(self) -> str:
        """The full name, or the id where there is none."""
        return f"{self.first} {self.last}".strip() or self.id


@dataclass(frozen=True)
class MarksFile:
    """A file of marks: its bytes, the points by student that are in it, and its rows that got none."""

    data: bytes
    filled: Mapping[str, float]
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class TimeColumns:
    """Columns of a table that says when work was handed in, each in the order in which they are believed.

    `whose`: a student's number; `logins`: a login or an address, for tables without a number; `when`: the time.
    """

    whose: tuple[str, ...]
    logins: tuple[str, ...]
    when: tuple[str, ...]


class LearningSystem(Protocol):
    """What a module of this folder has."""

    COLLECTS_AS: str
    """Its name in `collect --from`."""
    EXPORTS_AS: str
    """Its name in `export --to`."""
    FILLS_A_FILE: bool
    """Whether marks are written into a file that was downloaded from it; `marks_file` gets this file as `table`."""
    TIMES: TimeColumns

    def upload(self, entry: Entry) -> Upload | None:
        """Whose file an entry of its download is; None when the name does not say."""

    def key(self, cell: str) -> str:
        """What a cell of `TIMES.whose` calls a student, without words around it."""

    def has_class(self, table: Table) -> bool:
        """Whether a table is its list of the class."""

    def student(self, table: Table, row: Sequence[str]) -> ClassMember | None:
        """The student of a row; None for rows of no student, such as points possible."""

    def marks_file(
        self,
        marks: Sequence[StudentMarks],
        *,
        numbers: Mapping[str, str],
        table: Table | None,
        assignment: str,
        column: str,
    ) -> MarksFile:
        """The marks as the system takes them. `numbers` are its own numbers by student, as far as uploads give them."""


def attempt(file: str) -> tuple[str, int]:
    """A file's name without the number that systems and browsers add to a resubmission, and that number.

    >>> attempt("lab01_gpu_basics-2.ipynb"), attempt("lab01_gpu_basics.ipynb")
    (('lab01_gpu_basics', 2), ('lab01_gpu_basics', 0))
    """
    stem = file[: -len(".ipynb")] if file.lower().endswith(".ipynb") else file
    found = re.fullmatch(r"(.+?)(?:-(\d{1,3})| \((\d{1,3})\))", stem)
    return (found[1], int(found[2] or found[3])) if found else (stem, 0)


_SAFE = re.compile(r"[^\W_](?:[\w.@-]{0,62}[\w@-])?", re.UNICODE)


def names_folders(text: str) -> bool:
    """Whether an id can name the folders of a student: letters, digits and . @ - _ inside, at most 64.

    >>> names_folders("ann@x.org"), names_folders("ann.o'neil@x.org"), names_folders("../ann")
    (True, False, False)
    """
    return bool(_SAFE.fullmatch(text))


def chosen_id(keys: Iterable[str]) -> str:
    """The first of what a student is called that can name folders; the first, where none can."""
    known = [key for key in keys if key]
    return next(filter(names_folders, known), known[0])


def first_and_last(full: str) -> tuple[str, str]:
    """A full name in two; all of it is the last name where it is one word.

    >>> first_and_last("Ann O'Neil"), first_and_last("O'Neil, Ann"), first_and_last("Ann")
    (('Ann', "O'Neil"), ('Ann', "O'Neil"), ('', 'Ann'))
    """
    before, comma, after = full.partition(",")
    if comma and after.strip():
        return after.strip(), before.strip()
    first, _, last = full.strip().rpartition(" ")
    return first, last


Row = Sequence[str]


def filled_table(
    table: Table,
    column: int,
    marks: Sequence[StudentMarks],
    *,
    numbers: Mapping[str, str],
    student: Callable[[Table, Row], ClassMember | None],
    highest: Callable[[Row], float] = lambda row: 0.0,
    decimal: str = ".",
    as_they_are: Collection[int | None] = (),
) -> MarksFile:
    """`table` with marks in `column`, scaled where a row's `highest` is a maximum of its own (above 0).

    `decimal` is the sign in numbers; the columns `as_they_are` stay so even where a spreadsheet would compute them.
    """
    finder = MarksFinder(marks, numbers)
    rows: list[list[str]] = []
    filled: dict[str, float] = {}
    without: list[str] = []
    for row in table.rows:
        cells = [cell if place in as_they_are else inert(cell) for place, cell in enumerate(row)]
        who = student(table, row)
        found = finder.find(who) if who else None
        if found is not None and who is not None:
            if found.student in filled:
                raise UsageError(
                    f"{table.name} lists {found.student} twice",
                    why=f"the second row is that of {who.name}",
                    next="remove one of the rows",
                )
            cells[column] = written_number(found.points * _scale(highest(row), found.max_points)).replace(".", decimal)
            filled[found.student] = found.points
        elif who is not None:
            without.append(who.name if who.first or who.last else who.keys[0])
        rows.append(cells)
    return MarksFile(table.written(rows), filled, tuple(without))


class MarksFinder:
    """Finds a student's marks by whatever a row of the learning system's file calls them."""

    def __init__(self, marks: Iterable[StudentMarks], numbers: Mapping[str, str]) -> None:
        self._by_key: dict[str, list[StudentMarks]] = {}
        self._by_name: dict[str, list[StudentMarks]] = {}
        for m in marks:
            for key in {m.student, m.email, numbers.get(m.student, "")} - {""}:
                self._by_key.setdefault(key.casefold(), []).append(m)
            if m.first or m.last:
                self._by_name.setdefault(same_name(m.name), []).append(m)

    def find(self, who: ClassMember) -> StudentMarks | None:
        """The marks that the first known key means; a full name only when no key is known and no one else has it."""
        for key in who.keys:
            found = self._by_key.get(key.casefold(), [])
            if len(found) == 1:
                return found[0]
        named = self._by_name.get(same_name(who.name), []) if who.first or who.last else []
        return named[0] if len(named) == 1 else None


def _scale(highest: float, max_points: float) -> float:
    return highest / max_points if highest > 0 and max_points > 0 else 1.0


def written_number(value: float) -> str:
    """A mark as tables take it: never rounded to six digits, never with an exponent.

    >>> written_number(1028.25), written_number(12345.67), written_number(17.0)
    ('1028.25', '12345.67', '17')
    """
    return f"{value:.4f}".rstrip("0").rstrip(".")
