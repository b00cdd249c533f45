"""Functions of a student's that did not come back: cells that only show something do not wait for them again as long.

An endless loop in a function that a lab's demonstrations call would cost a cell's whole time in each of them. Which
cell may call what is read from names, through all functions between; only cells that no mark needs are cut short by it.
"""

from __future__ import annotations

from collections.abc import Iterable

from edl_labs.course.grade.needed_cells import is_released, names_of
from edl_labs.course.grade.plan import MarkingPlan

AGAIN_S = 5.0  # a lab's slowest demonstration computes so long in smoke; what hung once hangs again


class HungCalls:
    """What hung in one submission so far, over all runs of it.

    `spare` is the plan without cells that no mark needs; where it spares none, those are released cells that answer
    nothing, do more than define, and bind nothing that another cell takes.
    """

    def __init__(self, plan: MarkingPlan, spare: MarkingPlan) -> None:
        self._plan = plan
        self._shows = {
            index
            for index, cell in enumerate(plan.cells)
            if cell.runs and (_only_shows(plan, index) if spare is plan else not spare.cells[index].runs)
        }
        self._hung: set[str] = set()
        self._links: dict[str, set[str]] | None = None
        self._mine: set[str] = set()

    def cell(self, index: int) -> None:
        """The cell was stopped at its limit: whatever of the student's it may have called hung."""
        self._hung |= self._reached(names_of(self._plan.cells[index].source).taken)

    def exercise(self, name: str) -> None:
        """The check of an exercise was stopped at its limit."""
        for cell in self._plan.cells:
            if cell.runs and cell.known is not None and cell.known.role == "solve" and cell.known.exercise == name:
                self._hung |= self._reached(names_of(cell.source).binds)

    def limit_s(self, index: int, usual_s: float) -> float:
        """How long a cell may run: `usual_s`, but for one that shows something and may call what hung."""
        if not self._hung or index not in self._shows:
            return usual_s
        calls = self._reached(names_of(self._plan.cells[index].source).taken)
        return min(usual_s, AGAIN_S) if calls & self._hung else usual_s

    def _reached(self, names: Iterable[str]) -> set[str]:
        """The student's own names that `names` are, or lead to."""
        if self._links is None:
            self._links = self._linked()
        found, left = set[str](), list(names)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self._links.get(name, ())
        return found & self._mine

    def _linked(self) -> dict[str, set[str]]:
        links: dict[str, set[str]] = {}
        for cell in self._plan.cells:
            if not cell.runs:
                continue
            names = names_of(cell.source)
            if not is_released(cell):
                self._mine |= names.binds
            for name in names.binds:
                links.setdefault(name, set()).update(names.taken)
        return links


def _only_shows(plan: MarkingPlan, index: int) -> bool:
    cell = plan.cells[index]
    if not is_released(cell) or cell.known is None or cell.known.role:
        return False
    names = names_of(cell.source)
    others = (names_of(one.source).taken for at, one in enumerate(plan.cells) if one.runs and at != index)
    return not names.defines and not any(names.binds & taken for taken in others)
