"""A learning system's own table with one column filled in: other cells stay, nobody is dropped, no cell computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from edl_labs.course.marks.lms.learning_system import ClassMember, MarksFile
from edl_labs.course.marks.student_marks import StudentMarks
from edl_labs.course.marks.tables import Table, inert, same_name
from edl_labs.errors import UsageError

Row = Sequence[str]


def filled_table(
    table: Table,
    column: int,
    marks: Sequence[StudentMarks],
    *,
    numbers: Mapping[str, str],
    student: Callable[[Table, Row], ClassMember | None],
    highest: Callable[[Row], float] = lambda row: 0.0,
) -> MarksFile:
    """`table` with marks in `column`, scaled where a row's `highest` is a maximum of its own (above 0)."""
    finder = _Finder(marks, numbers)
    rows: list[list[str]] = []
    filled: dict[str, float] = {}
    without: list[str] = []
    for row in table.rows:
        cells = [inert(cell) for cell in row]
        who = student(table, row)
        found = finder.find(who) if who else None
        if found is not None and who is not None:
            if found.student in filled:
                raise UsageError(
                    f"{table.name} has {found.student} twice",
                    why=f"the second time as {who.name}",
                    next="remove one of the rows",
                )
            cells[column] = _number(found.points * _scale(highest(row), found.max_points))
            filled[found.student] = found.points
        elif who is not None:
            without.append(who.name if who.first or who.last else who.keys[0])
        rows.append(cells)
    return MarksFile(table.written(rows), filled, tuple(without))


class _Finder:
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
        """The marks that the first known key means; a full name only when no key is known and it is nobody else's."""
        for key in who.keys:
            found = self._by_key.get(key.casefold(), [])
            if len(found) == 1:
                return found[0]
        named = self._by_name.get(same_name(who.name), []) if who.first or who.last else []
        return named[0] if len(named) == 1 else None


def _scale(highest: float, max_points: float) -> float:
    return highest / max_points if highest > 0 and max_points > 0 else 1.0


def _number(value: float) -> str:
    return f"{round(value, 4):g}" if abs(value) < 1e5 else str(round(value, 4))
