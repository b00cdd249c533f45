"""Who is in the class: from the file that the learning system exports, or from a plain table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edl_labs.course.marks.tables import Table, read_table, same_name
from edl_labs.errors import UsageError

_SAFE = re.compile(r"[^\W_](?:[\w.@-]{0,62}[\w@-])?", re.UNICODE)
_PARTICIPANT = re.compile(r"(?:participant\s*)?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Student:
    """One student. `id` names them in the gradebook and in folders; `keys` is all that a file may call them."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms_id: str = ""
    keys: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The full name, or the id where there is none."""
        return f"{self.first} {self.last}".strip() or self.id


@dataclass(frozen=True)
class Roster:
    """The class. `find` is None for nobody, and for a name that two students share."""

    students: tuple[Student, ...]

    def find(self, key: str, *, name: str = "") -> Student | None:
        """The student whom a learning system's number, an id, a login or an e-mail means; else by full name."""
        wanted = key.casefold()
        found = [s for s in self.students if wanted and wanted in s.keys]
        if not found and name:
            called = same_name(name)
            found = [s for s in self.students if called and called in (same_name(s.name), _joined(s))]
        return found[0] if len(found) == 1 else None

    def __len__(self) -> int:
        return len(self.students)


def read_roster(path: Path) -> Roster:
    """The class in a CSV file: Canvas's gradebook, Moodle's grading worksheet or participants, or a table with `id`.

    UsageError when it is none of them, or when two students would have one id.
    """
    table = read_table(path)
    if table.column("ID") is not None and table.column("Student") is not None:
        students = list(_canvas(table))
    elif table.column("Identifier") is not None or table.column("Email address") is not None:
        students = list(_moodle(table))
    else:
        table.need("id", "student_id")
        students = list(_plain(table))
    return _distinct(students, table.name)


def anonymous(user: str) -> Student | None:
    """Someone whom only a number or a folder names, where there is no roster; None when that cannot name a student."""
    return Student(user, lms_id=user, keys=frozenset({user.casefold()})) if _SAFE.fullmatch(user) else None


def _canvas(table: Table) -> Iterable[Student]:
    number, login, sis = table.need("ID"), table.column("SIS Login ID"), table.column("SIS User ID")
    named = table.need("Student")
    for row in table.rows:
        lms_id = table.cell(row, number)
        if not lms_id.isdigit():
            continue  # the lines of points possible, of read-only notes, and the test student
        last, comma, first = table.cell(row, named).partition(",")
        given = (first.strip(), last.strip()) if comma else _split(last)
        keys = (lms_id, table.cell(row, login), table.cell(row, sis))
        yield _student(next((k for k in (*keys[1:], lms_id) if k), lms_id), given, "", lms_id, keys, table.name)


def _moodle(table: Table) -> Iterable[Student]:
    number, email = table.column("Identifier"), table.column("Email address", "Email")
    own, login = table.column("ID number"), table.column("Username")
    for row in table.rows:
        found = _PARTICIPANT.fullmatch(table.cell(row, number))
        lms_id = found[1] if found else ""
        mail = table.cell(row, email)
        keys = (table.cell(row, own), table.cell(row, login), mail, lms_id)
        chosen = next((key for key in keys if key), "")
        if not chosen:
            continue
        full = table.cell(row, table.column("Full name"))
        given = (table.cell(row, table.column("First name")), table.cell(row, table.column("Last name", "Surname")))
        yield _student(chosen, given if any(given) else _split(full), mail, lms_id, keys, table.name)


def _plain(table: Table) -> Iterable[Student]:
    place = table.need("id", "student_id")
    more = [p for p in map(table.column, ("canvas_id", "moodle_id", "lms_user_id", "lms_id", "login")) if p is not None]
    for row in table.rows:
        chosen = table.cell(row, place)
        if not chosen:
            continue
        mail = table.cell(row, table.column("email"))
        numbers = [table.cell(row, p) for p in more]
        given = (table.cell(row, table.column("first_name")), table.cell(row, table.column("last_name")))
        if not any(given):
            given = _split(table.cell(row, table.column("name")))
        lms_id = next((n for n in numbers if n), "")
        yield _student(chosen, given, mail, lms_id, (chosen, mail, *numbers), table.name)


def _student(chosen: str, given: tuple[str, str], email: str, lms_id: str, keys: Iterable[str], where: str) -> Student:
    safe = _safe_id(chosen, where)
    known = frozenset(key.casefold() for key in (*keys, safe) if key)
    return Student(safe, given[0], given[1], email, lms_id, known)


def _safe_id(text: str, where: str) -> str:
    """`text` as nbgrader can name folders by it; UsageError when it cannot."""
    if not _SAFE.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} in {where} cannot name a student",
            why="an id names folders: letters, digits and . @ - _ inside, at most 64",
            next="give the roster a column id",
        )
    return text


def _distinct(students: list[Student], where: str) -> Roster:
    if not students:
        raise UsageError(f"{where} names no student", next="export the class again, with its header line")
    seen: dict[str, Student] = {}
    for student in students:
        other = seen.setdefault(student.id.casefold(), student)
        if other is not student and (other.name, other.lms_id) != (student.name, student.lms_id):
            why = f"{other.name} and {student.name} would share one folder"
            raise UsageError(f"{where} has the id {student.id} twice", why=why, next="make ids distinct")
    return Roster(tuple(seen.values()))


def _split(full: str) -> tuple[str, str]:
    first, _, last = full.strip().rpartition(" ")
    return first, last


def _joined(student: Student) -> str:
    """The name as Canvas writes it into file names: last and first without a space."""
    return same_name((student.last + student.first).replace(" ", ""))
