"""`course.toml`: due dates, extensions and what lateness costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from edl_labs.course.course_file import Dates, read_course_file, wrong

DAY_S = 86_400.0  # a day's seconds, by definition


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
    file = read_course_file(root)
    about, late, zone = file.course, file.late, _timezone(file.course.timezone)
    dates: dict[str, DueDates] = {}
    for one in file.assignments:
        if one.name in dates:
            raise wrong(f"{one.name} is listed twice", "", "keep one [[assignment]] for each name")
        dates[one.name] = _dates(one, zone)
    return CoursePolicy(
        name=about.name,
        timezone=zone,
        roster=root / about.roster if about.roster else None,
        late=LatePolicy(late.grace_minutes * 60, late.per_day, late.at_most, late.closes_after_days * DAY_S),
        assignments=dates,
    )


def _dates(entry: Dates, zone: tzinfo) -> DueDates:
    due = None if entry.due is None else _moment(entry.due, f"due of {entry.name}", zone)
    extensions = {who: _moment(when, f"the extension of {who}", zone) for who, when in entry.extensions.items()}
    for who, when in extensions.items():
        if due is None or when < due:
            why = f"{entry.name} {f'is due {due.isoformat()}' if due else 'has no due date'}"
            raise wrong(f"the extension of {who} ends before {entry.name} is due", why, "give a later time")
    return DueDates(entry.name, due, extensions)


def _moment(value: Any, what: str, zone: tzinfo) -> datetime:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(23, 59, 59))
    if not isinstance(value, datetime):
        need = "write 2026-10-01T23:59:00 without quotation marks"
        raise wrong(f"{what} is {value!r}", "it must be a time", need)
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _timezone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except Exception:
        raise wrong(f"there is no timezone {name!r}", "", 'write, for example, timezone = "Europe/Berlin"') from None
