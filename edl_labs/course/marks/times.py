"""When things were handed in: from the learning system's own list, never from a file that a student wrote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from edl_labs.course.marks.lms import SYSTEMS
from edl_labs.course.marks.policy import CoursePolicy
from edl_labs.course.marks.roster import Roster
from edl_labs.course.marks.tables import Table, read_table
from edl_labs.errors import UsageError

_NEVER = ("", "-", "–", "never", "none", "null")
_YEARS = range(2000, 2200)


def read_times(path: Path, policy: CoursePolicy, roster: Roster | None) -> dict[str, datetime]:
    """Submission times in UTC by student, or by the learning system's number where there is no roster.

    The table is a learning system's own, or any with an id and a time (ISO 8601; without an offset, course time).
    UsageError for a time that cannot be read: a wrong time would cost points.
    """
    table = read_table(path)
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


def _who(table: Table) -> tuple[int, Callable[[str], str]]:
    """The column that says whose a time is, numbers before logins, and what makes a key of its cells."""
    columns = [(name, system.key) for system in SYSTEMS for name in system.TIMES.whose]
    columns += [(name, system.key) for system in SYSTEMS for name in system.TIMES.logins]
    place = table.need(*(name for name, _ in columns))
    return place, next(key for name, key in columns if table.column(name) == place)


def _moment(text: str, where: str) -> datetime:
    try:
        return datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        pass
    from dateutil import parser

    # For example "Friday, 20 November 2026, 11:59 PM". Two readings show what was missing, or could be day or month.
    readings = ((datetime(2001, 1, 1), True), (datetime(2002, 2, 2, 2, 2), False))
    try:
        found, other = (parser.parse(text, default=default, dayfirst=day) for default, day in readings)
    except (ValueError, OverflowError):
        found, other = datetime.min, datetime.max
    if found != other or found.year not in _YEARS or str(found.year) not in text:
        raise UsageError(
            f"{where}: {text[:60]!r} is not a time",
            why="a wrong time would cost points, so it is not guessed",
            next="write it like 2026-10-01T23:59:00",
        )
    return found


def stamp(moment: datetime) -> bytes:
    """A time as nbgrader's timestamp.txt holds it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC").encode()
