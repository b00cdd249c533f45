"""Moodle's grading worksheet in any language: columns are found by their content, as Moodle keeps their order.

mod/assign/gradingtable.php writes the identifier, the full name (hidden names aside), identity fields, the status, the
group of a team assignment, the grade, its maximum, whether it can be changed, when work was handed in and marked, and
the feedback.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from edl_labs.course.marks.tables import Table

_IDENTIFIER = re.compile(r"(?P<word>[^\W\d]\D{2,})\d+")  # "Participant 101", "Teilnehmer/in101"
_NUMBER = re.compile(r"-?\d+([.,]\d+)?")
_YEAR = re.compile(r"\b20\d\d\b|20\d\d年")
_NEVER = ("", "-")


def in_english(table: Table) -> Table:
    """The table with Moodle's English names for its columns where it is a worksheet of a site in another language."""
    if table.column("Identifier") is not None or not _is_worksheet(table):
        return table
    grade = _grade_column(table)
    if grade is None:
        return table
    names = list(table.header)
    names[0], names[grade], names[grade + 1] = "Identifier", "Grade", "Maximum Grade"
    mail = next((place for place in range(1, grade) if all("@" in cell for cell in _cells(table, place))), None)
    if mail is not None:
        names[mail] = "Email address"
    if mail is not None or len(set(_cells(table, 1))) == len(table.rows):
        names[1] = "Full name"
    times = [place for place in range(grade + 2, len(names)) if _holds_times(table, place)]
    if times:
        names[times[0]] = "Last modified (submission)"
    if times and times[-1] + 1 < len(names):
        names[-1] = "Feedback comments"
    return replace(table, names=tuple(names))


def teams(table: Table, row: Sequence[str]) -> tuple[str, ...]:
    """What may be the name of the row's group: the column of groups, else all between the identity and the grade."""
    place = table.column("Group", "Groups")
    if place is not None:
        return tuple(name for part in table.cell(row, place).split(",") if (name := part.strip()))
    grade = table.column("Grade")
    first = max(table.column("Full name") or 0, table.column("Email address") or 0) + 1
    cells = [table.cell(row, place) for place in range(first, grade)] if grade else []
    return tuple(cell for cell in cells if cell and "@" not in cell)


def _is_worksheet(table: Table) -> bool:
    found = [_IDENTIFIER.fullmatch(table.cell(row, 0)) for row in table.rows]
    return bool(found) and len({match["word"] if match else "" for match in found}) == 1 and found[0] is not None


def _grade_column(table: Table) -> int | None:
    """The column of numbers, or nothing, that is followed by one number for all and then by words."""
    for place in range(1, len(table.header) - 2):
        grades, highest, changes = (_cells(table, place + step) for step in range(3))
        numbers = all(cell in _NEVER or _NUMBER.fullmatch(cell) for cell in grades)
        one = len(set(highest)) == 1 and _NUMBER.fullmatch(highest[0])
        if numbers and one and all(cell and not _NUMBER.fullmatch(cell) for cell in changes):
            return place
    return None


def _holds_times(table: Table, place: int) -> bool:
    cells = _cells(table, place)
    return all(cell in _NEVER or _YEAR.search(cell) for cell in cells) and any(cell not in _NEVER for cell in cells)


def _cells(table: Table, place: int) -> list[str]:
    return [table.cell(row, place) for row in table.rows]
