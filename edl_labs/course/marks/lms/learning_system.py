"""What a learning system is asked: whose a file is, when it was handed in, who is in the class, where marks go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import Table


@dataclass(frozen=True)
class Upload:
    """A file and whose it is: `user` is the learning system's number or, in a plain folder, the folder's name."""

    user: str
    name: str
    file: str
    entry: Entry
    prefix: str = ""
    """What goes before the name of a file that is sent back to this student, so that the system knows whose it is."""
    number: int = 0
    """The upload's number: later ones are higher. 0 where the system gives none."""
    late: bool = False


@dataclass(frozen=True)
class ClassMember:
    """One student. `id` names them in the gradebook and in folders; `keys` is all that a file may call them."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms_id: str = ""
    keys: tuple[str, ...] = ()

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
    """What `collect --from` calls it."""
    EXPORTS_AS: str
    """What `export --to` calls it."""
    FILLS_A_FILE: bool
    """Whether marks go into a file that was downloaded from it, which `marks_file` then gets as `table`."""
    TIMES: TimeColumns

    def upload(self, entry: Entry) -> Upload | None:
        """Whose file an entry of its download is; None when the name does not say."""

    def key(self, cell: str) -> str:
        """What a cell of `TIMES.whose` calls a student, without words around it."""

    def has_class(self, table: Table) -> bool:
        """Whether a table is its list of the class."""

    def student(self, table: Table, row: Sequence[str]) -> ClassMember | None:
        """The student of a row; None for rows that are nobody's, such as points possible."""

    def marks_file(
        self,
        marks: Sequence[StudentMarks],
        *,
        numbers: Mapping[str, str],
        table: Table | None,
        assignment: str,
        column: str,
    ) -> MarksFile:
        """The marks as the system takes them. `numbers` are its own numbers by student, as far as uploads told."""


def attempt(file: str) -> tuple[str, int]:
    """A file's name without the number that systems and browsers add to a resubmission, and that number.

    >>> attempt("lab01_gpu_basics-2.ipynb"), attempt("lab01_gpu_basics.ipynb")
    (('lab01_gpu_basics', 2), ('lab01_gpu_basics', 0))
    """
    stem = file[: -len(".ipynb")] if file.lower().endswith(".ipynb") else file
    found = re.fullmatch(r"(.+?)(?:-(\d{1,3})| \((\d{1,3})\))", stem)
    return (found[1], int(found[2] or found[3])) if found else (stem, 0)


def first_and_last(full: str) -> tuple[str, str]:
    """A full name in two; all of it is the last name where it is one word."""
    first, _, last = full.strip().rpartition(" ")
    return first, last
