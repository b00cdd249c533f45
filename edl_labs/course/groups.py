"""Group work: one notebook, several marks. `groups.csv`, which course.toml names, lists who works together.

    group,id
    g1,s1234
    g1,s1235

A third column, `assignment`, gives a lab groups of its own; a row without one holds for every lab.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edl_labs.course.course_file import read_course_file
from edl_labs.errors import UsageError

_NEEDED = ("group", "id")


@dataclass(frozen=True)
class Groups:
    """Who works with whom in one assignment: the group by student."""

    by_student: Mapping[str, str] = field(default_factory=dict)

    def mates(self, student: str) -> tuple[str, ...]:
        """All of a student's group, in order; the student alone where there is none."""
        group = self.by_student.get(student)
        return tuple(sorted(s for s, g in self.by_student.items() if g == group)) if group else (student,)

    def named(self, student: str) -> str:
        """What draws and results are called after: the group, else the student."""
        group = self.by_student.get(student)
        return f"group {group}" if group else student

    def together(self, first: str, second: str) -> bool:
        """Whether two students are in one group."""
        return first in self.by_student and self.by_student[first] == self.by_student.get(second)


def read_groups(root: Path, assignment: str) -> Groups:
    """The groups of an assignment in the course in `root`; none where course.toml names no file.

    UsageError, with the line, for a student in two groups of one assignment, and for a file that is no such table.
    """
    return Groups(_listed(root, assignment))


def _listed(root: Path, assignment: str) -> dict[str, str]:
    """The groups of the file that course.toml names."""
    name = read_course_file(root).course.groups
    if not name:
        return {}
    path = root / name
    try:
        lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path.name} cannot be read", why=str(error), next="check groups in course.toml") from None
    found: dict[str, tuple[str, bool]] = {}
    for number, row in enumerate(lines, start=2):
        cells = {str(key).strip().casefold(): (value or "").strip() for key, value in row.items() if key}
        if not all(cells.get(key) for key in _NEEDED):
            why, then = (
                "each line needs a group and an id",
                "write group,id in line 1, and a group and an id in each other line",
            )
            raise UsageError(f"{path.name}, line {number}: the group or the id is missing", why=why, next=then)
        own = bool(cells.get("assignment"))
        if own and cells["assignment"] != assignment:
            continue
        student, group = cells["id"], cells["group"]
        before = found.get(student)
        if before and before[1] == own and before[0] != group:
            why = f"{student} is in {before[0]} and in {group}"
            raise UsageError(
                f"{path.name}, line {number}: the student is in two groups",
                why=why,
                next="keep one line for each student",
            )
        if not before or own >= before[1]:
            found[student] = (group, own)
    return {student: group for student, (group, _) in found.items()}
