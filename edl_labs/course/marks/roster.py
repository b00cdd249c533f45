"""The class list and the submission times, from the learning system's own lists or from plain tables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from edl_labs.course.course_folder import Course
from edl_labs.course.groups import read_groups
from edl_labs.course.marks.lms import SYSTEMS, class_list_of, read_list
from edl_labs.course.marks.lms.learning_system import ClassMember, names_folders
from edl_labs.course.marks.tables import Table, same_name
from edl_labs.course.marks.written_times import read_time
from edl_labs.course.policy import CoursePolicy, read_policy
from edl_labs.errors import UsageError


@dataclass(frozen=True)
class Roster:
    """The class. `find` is None for an unknown name, and for one that two students share."""

    students: tuple[ClassMember, ...]

    def find(self, key: str, *, name: str = "") -> ClassMember | None:
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
    """The class in a CSV file, as a learning system exports it, or a table with `id`.

    UsageError when it is neither, or when two students would have one id.
    """
    table = read_list(path)
    system = class_list_of(table)
    found = (system.student(table, row) for row in table.rows)
    return _distinct([_known(student, table.name) for student in found if student is not None], table.name)


def listed_students(path: Path) -> tuple[ClassMember, ...]:
    """The students whom a table names as a learning system's list of the class does; empty for other tables."""
    table = read_list(path)
    system = next((system for system in SYSTEMS if system.has_class(table)), None)
    found = (system.student(table, row) for row in table.rows) if system else ()
    return tuple(student for student in found if student is not None and names_folders(student.id))


def anonymous(user: str) -> ClassMember | None:
    """Someone whom only a number or a folder names, where there is no roster; None when that cannot name a student."""
    return ClassMember(user, lms_id=user, keys=(user.casefold(),)) if names_folders(user) else None


def _known(student: ClassMember, where: str) -> ClassMember:
    """The student with keys as they are compared; UsageError when the id cannot name folders."""
    safe = _safe_id(student.id, where)
    return replace(student, keys=tuple(key.casefold() for key in (*student.keys, safe)))


def _safe_id(text: str, where: str) -> str:
    """`text` as nbgrader can name folders by it; UsageError when it cannot."""
    if not names_folders(text):
        other = re.sub(r"[^\w.@-]|^[\W_]+", "", text)[:64].rstrip(".")
        raise UsageError(
            f"{text[:80]!r} in {where} cannot be a student's id",
            why="ids are used as folder names: they have at most 64 letters, digits and . @ - _",
            next=f"write a different id for this student, such as {other}"
            if names_folders(other)
            else "write a different id",
        )
    return text


def _distinct(students: list[ClassMember], where: str) -> Roster:
    if not students:
        raise UsageError(f"{where} does not list any student", next="export the class list again, with its header line")
    seen: dict[str, ClassMember] = {}
    for student in students:
        other = seen.setdefault(student.id.casefold(), student)
        if other is not student and (other.name, other.lms_id) != (student.name, student.lms_id):
            why = f"{other.name} and {student.name} would share one folder"
            raise UsageError(f"{where} has the id {student.id} twice", why=why, next="give each student a different id")
    return Roster(tuple(seen.values()))


def _joined(student: ClassMember) -> str:
    """The name as it stands in names of files: last and first without a space."""
    return same_name((student.last + student.first).replace(" ", ""))


_NEVER = ("", "-", "–", "never", "none", "null")


def read_times(path: Path, policy: CoursePolicy, roster: Roster | None) -> dict[str, datetime]:
    """Submission times in UTC by student, or by the learning system's number where there is no roster.

    The table is a learning system's own, or any with an id and a time (ISO 8601; without an offset, course time).
    UsageError for a time that cannot be read: a wrong time would cost points.
    """
    table = read_list(path)
    who, plain_key = _who(table)
    when = table.need(*(name for system in SYSTEMS for name in system.TIMES.when))
    found: dict[str, datetime] = {}
    for line, row in enumerate(table.rows, start=2):
        text = table.cell(row, when)
        if text.casefold() in _NEVER:
            continue
        key = plain_key(table.cell(row, who))
        student = roster.find(key) if roster else None
        moment = policy.moment(_moment(text, f"{table.name}, line {line}"))
        name = student.id if student else key
        found[name] = max(found.get(name, moment), moment)
    return found


def unknown_keys(moments: Mapping[str, datetime], roster: Roster | None) -> tuple[str, ...]:
    """The ids in a table of times that no one in the class has, in order; none where there is no roster."""
    return tuple(sorted(key for key in moments if roster is not None and roster.find(key) is None))


def course_remarks(course: Course, roster: Roster | None = None) -> tuple[str, ...]:
    """What course.toml and its groups name and the course lacks: assignments not released, ids that no one has.

    Said and not refused: a lab may come later, and a student may have left.
    """
    policy, found = read_policy(course.root), []
    known = roster or (read_roster(policy.roster) if policy.roster else None)
    released = course.assignments()
    for name, dates in policy.assignments.items():
        if name not in released:
            found.append(
                f"course.toml: there is no assignment {name}{_meant(name, released)}, so its dates have no effect"
            )
        for who in dates.extensions:
            student = known.find(who) if known else None
            if known and student is None:
                ids = [s.id for s in known.students]
                found.append(
                    f"course.toml: {name} has an extension for {who}, but no student has this id{_meant(who, ids)}"
                )
            elif student is not None and student.id != who:
                found.append(
                    f"course.toml: the extension of {who} in {name} has no effect; use the id {student.id} instead"
                )
    for name in released if known else ():
        grouped = read_groups(course.root, name).by_student
        found += [f"groups: no student has the id {who}" for who in sorted(grouped) if who not in _ids(known)]
    return tuple(dict.fromkeys(found))


def _ids(roster: Roster | None) -> set[str]:
    return {student.id for student in roster.students} if roster else set()


def _meant(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _who(table: Table) -> tuple[int, Callable[[str], str]]:
    """The column that says whose a time is, numbers before logins, and what makes a key of its cells."""
    columns = [(name, system.key) for system in SYSTEMS for name in system.TIMES.whose]
    columns += [(name, system.key) for system in SYSTEMS for name in system.TIMES.logins]
    place = table.need(*(name for name, _ in columns))
    return place, next(key for name, key in columns if table.column(name) == place)


def _moment(text: str, where: str) -> datetime:
    found = read_time(text)
    if found is None:
        raise UsageError(
            f"{where}: {text[:60]!r} is not a time",
            why="a wrong time would cost points, so times are never guessed",
            next="write it as in 2026-10-01T23:59:00",
        )
    return found


def stamp(moment: datetime) -> bytes:
    """A time as nbgrader's timestamp.txt holds it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC").encode()
