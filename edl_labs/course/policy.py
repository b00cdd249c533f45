"""`course.toml`: due dates, extensions and what lateness costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from edl_labs.course.course_folder import read_course_file, refuse_unknown, wrong

DAY_S = 86_400.0  # a day's seconds, by definition
_TOP = ("course", "late", "limits", "grading", "assignment")
_COURSE = ("name", "version", "install", "timezone", "roster", "repository", "groups")
_LATE = ("grace_minutes", "per_day", "at_most", "closes_after_days")
_ASSIGNMENT = ("name", "due", "extensions")


@dataclass(frozen=True)
class LatePolicy:
    """What lateness costs, as a share of the points: `per_day` for each day begun, `at_most` in all.

    Nothing within the grace; everything once `closes_after_days` are over.
    """

    grace_s: float = 0.0
    per_day: float = 0.0
    at_most: float = 1.0
    closes_after_s: float = math.inf

    def penalty(self, points: float, *, late_s: float) -> float:
        """The points lost by being `late_s` late.

        >>> LatePolicy(grace_s=600, per_day=0.1).penalty(20.0, late_s=90_000)
        4.0
        """
        if not late_s > self.grace_s or points <= 0:
            return 0.0
        if late_s > self.closes_after_s:
            return points
        return points * min(self.at_most, self.per_day * math.ceil(late_s / DAY_S))


@dataclass(frozen=True)
class DueDates:
    """When one assignment is due, in UTC, and for whom later."""

    name: str
    due: datetime | None = None
    extensions: Mapping[str, datetime] = field(default_factory=dict)

    def due_for(self, student: str) -> datetime | None:
        """When it is due for `student`, in UTC."""
        return self.extensions.get(student, self.due)


@dataclass(frozen=True)
class CoursePolicy:
    """All that `course.toml` says."""

    name: str = ""
    timezone: tzinfo = UTC
    roster: Path | None = None
    late: LatePolicy = field(default_factory=LatePolicy)
    assignments: Mapping[str, DueDates] = field(default_factory=dict)

    def dates(self, assignment: str) -> DueDates:
        """The dates of an assignment; empty when the file does not mention it."""
        return self.assignments.get(assignment, DueDates(assignment))

    def moment(self, value: datetime) -> datetime:
        """`value` in UTC; without an offset it is the course's own time."""
        return (value if value.tzinfo else value.replace(tzinfo=self.timezone)).astimezone(UTC)


def enter_dates(gradebook: Any, policy: CoursePolicy, assignment: str) -> None:
    """Put the due date into nbgrader's gradebook. A date that was entered by hand stays when the file has none."""
    dates = policy.dates(assignment)
    if dates.due is not None:
        gradebook.find_assignment(assignment).duedate = dates.due.replace(tzinfo=None)


def enter_extension(submission: Any, policy: CoursePolicy, student: str) -> None:
    """Put a student's extension into a submission of the gradebook, as nbgrader keeps it: time after the due date."""
    dates = policy.dates(str(submission.name))
    if dates.due is None:
        return
    later = dates.due_for(student)
    assert later is not None
    submission.extension = later - dates.due if later > dates.due else timedelta(0)


def read_policy(root: Path) -> CoursePolicy:
    """The policy of the course in `root`; an empty one when there is no course.toml.

    UsageError, with the place, for anything that it cannot mean.
    """
    return _Reader(root).policy(read_course_file(root))


@dataclass
class _Reader:
    root: Path
    zone: tzinfo = UTC

    def policy(self, data: dict[str, Any]) -> CoursePolicy:
        self.known(data, _TOP, "the file")
        about, late = self.table(data, "course", _COURSE), self.table(data, "late", _LATE)
        self.zone = self.timezone(about.get("timezone", "UTC"))
        entries = data.get("assignment", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise wrong("assignment is not a list of tables", "", "write [[assignment]] above each")
        dates: dict[str, DueDates] = {}
        for entry in entries:
            found = self.dates(entry)
            if found.name in dates:
                raise wrong(f"{found.name} is listed twice", "", "keep one [[assignment]] for each name")
            dates[found.name] = found
        roster, _ = self.text(about, "roster"), self.text(about, "groups")
        return CoursePolicy(
            name=self.text(about, "name"),
            timezone=self.zone,
            roster=self.root / roster if roster else None,
            late=self.late(late),
            assignments=dates,
        )

    def late(self, table: dict[str, Any]) -> LatePolicy:
        grace = self.number(table, "grace_minutes", 0.0, most=math.inf)
        return LatePolicy(
            grace_s=grace * 60,
            per_day=self.number(table, "per_day", 0.0, most=1.0),
            at_most=self.number(table, "at_most", 1.0, most=1.0),
            closes_after_s=self.number(table, "closes_after_days", math.inf, most=math.inf) * DAY_S,
        )

    def dates(self, entry: dict[str, Any]) -> DueDates:
        self.known(entry, _ASSIGNMENT, "[[assignment]]")
        name = self.text(entry, "name")
        if not name:
            raise wrong("an [[assignment]] has no name", "", 'write name = "lab01_gpu_basics"')
        due = self.moment(entry["due"], f"due of {name}") if "due" in entry else None
        later = entry.get("extensions", {})
        if not isinstance(later, dict):
            raise wrong(
                f"extensions of {name} is not a table", "", f'write [assignment.extensions] and "id" = {_EXAMPLE}'
            )
        extensions = {str(who): self.moment(when, f"the extension of {who}") for who, when in later.items()}
        for who, when in extensions.items():
            if due is None or when < due:
                why = f"{name} is due {due.isoformat() if due else 'never'}"
                raise wrong(f"the extension of {who} ends before {name} is due", why, "give a later time")
        return DueDates(name, due, extensions)

    def moment(self, value: Any, what: str) -> datetime:
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time(23, 59, 59))
        if not isinstance(value, datetime):
            raise wrong(f"{what} is {value!r}", "that is not a time", f"write {_EXAMPLE} without quotation marks")
        return (value if value.tzinfo else value.replace(tzinfo=self.zone)).astimezone(UTC)

    def timezone(self, name: Any) -> tzinfo:
        try:
            return UTC if name == "UTC" else ZoneInfo(name)
        except Exception:
            raise wrong(f"there is no timezone {name!r}", "", 'write for example timezone = "Europe/Berlin"') from None

    def table(self, data: dict[str, Any], key: str, names: tuple[str, ...]) -> dict[str, Any]:
        found = data.get(key, {})
        if not isinstance(found, dict):
            raise wrong(f"{key} is not a table", "", f"write [{key}]")
        self.known(found, names, f"[{key}]")
        return found

    def known(self, table: dict[str, Any], names: tuple[str, ...], where: str) -> None:
        refuse_unknown(table, names, where=where)

    def text(self, table: dict[str, Any], key: str) -> str:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise wrong(f"{key} is {value!r}", "that is not text", f'write {key} = "..."')
        return value

    def number(self, table: dict[str, Any], key: str, default: float, *, most: float) -> float:
        value = table.get(key, default)
        if type(value) not in (int, float) or not 0 <= value <= most:
            raise wrong(
                f"{key} is {value!r}",
                f"it is a number from 0 to {most:g}",
                f"write for example {key} = {0.1 if most <= 1 else 7}",
            )
        return float(value)


_EXAMPLE = "2026-10-01T23:59:00"
