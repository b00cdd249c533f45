"""A function that never comes back costs a cell's whole time once, not once for each cell that shows what it does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from edl_labs.checks import Exercise
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.hung_calls import AGAIN_S, HungCalls
from edl_labs.course.grade.needed_cells import thrifty
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.probe_run import PlanRunner
from edl_labs.course.sandbox.kernel import CellResult, KernelStats
from edl_labs.course.sandbox.limits import Limits

CELL_S = 120.0
LOOPING = "def ring(n):\n    while n:\n        n = n"
HONEST = "def tree(n):\n    return 2 * n"
PLOTS = "print([ring(n) for n in range(3)])"
THROUGH = "def drawn(n):\n    return ring(n) + 1"


def released(name: str, source: str) -> PlannedCell:
    return PlannedCell("code", source, KnownCell("code", name, source, source, {}), runs=True)


def solved(name: str, source: str) -> tuple[PlannedCell, PlannedCell]:
    """An exercise's cell as a student filled it in, and its check."""
    solve = KnownCell("code", name, f"def {name}(n): stub", source, {}, "solve", name)
    check = KnownCell("code", f"check-{name}", f'check("{name}")', "", {}, "check", f"check_{name}", 2.0)
    return (
        PlannedCell("code", source, solve, runs=True, keeps_id=True),
        PlannedCell("code", check.source, check, probes=name, keeps_id=True),
    )


PLAN = MarkingPlan(
    (
        released("setup", "import math"),
        *solved("ring", LOOPING),
        *solved("tree", HONEST),
        released("c-1", PLOTS),
        released("c-2", THROUGH),
        released("c-3", "print(drawn(2))"),
        released("c-4", "print(tree(2))"),
        released("c-5", "print(math.pi)"),
    ),
    (),
)
SPARE = thrifty(PLAN)


def limits(hung: HungCalls) -> list[float]:
    """The limit of each of the five cells that show something."""
    return [hung.limit_s(index, CELL_S) for index in range(5, 10)]


def test_without_a_hang_every_cell_has_its_whole_time():
    assert [CELL_S] * 5 == limits(HungCalls(PLAN, SPARE))


@pytest.mark.parametrize("spare", [SPARE, PLAN], ids=["spared", "nothing spared"])
def test_after_a_hang_cells_that_may_call_the_function_wait_little_and_others_do_not(spare: MarkingPlan):
    hung = HungCalls(PLAN, spare)
    hung.cell(5)

    assert [AGAIN_S, CELL_S, AGAIN_S, CELL_S, CELL_S] == limits(hung)


def test_a_check_that_hung_says_the_same_of_its_exercise():
    hung = HungCalls(PLAN, SPARE)
    hung.exercise("ring")

    assert [AGAIN_S, CELL_S, AGAIN_S, CELL_S, CELL_S] == limits(hung)


def test_what_the_student_wrote_and_what_marks_need_is_never_cut_short():
    needed = replace(PLAN.cells[5], source="table = [ring(n) for n in range(3)]")
    mine = PlannedCell("code", "print(ring(7))", runs=True)
    uses = solved("uses", "def uses(n):\n    return table[n]")
    plan = MarkingPlan((*PLAN.cells[:5], released("c-1", needed.source), mine, *uses), ())
    hung = HungCalls(plan, thrifty(plan))
    hung.exercise("ring")

    assert [CELL_S, CELL_S] == [hung.limit_s(index, CELL_S) for index in (5, 6)]


@dataclass
class LoopingKernel:
    """Every cell that calls `ring` is stopped at its limit."""

    given: list[tuple[str, float]] = field(default_factory=list)

    def __enter__(self) -> LoopingKernel:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stats(self) -> KernelStats:
        return KernelStats(1.0, 100, 1)

    def run(self, source: str, *, timeout_s: float) -> CellResult:
        self.given.append((source, round(timeout_s)))
        looping = "ring(n) for" in source or "drawn(2)" in source
        return CellResult("timeout" if looping else "ok", [], 1)


class Nothing:
    def take(self, *_: Any, **__: Any) -> None:
        return None

    miss = take


def test_a_notebook_with_an_endless_loop_waits_for_it_once_and_says_where_it_is():
    kernel, where = LoopingKernel(), list[str]()
    exercises = (Exercise("ring", "lab", None), Exercise("tree", "lab", None))
    assignment = Assignment("lab", (), exercises, {}, {}, own_exercises=False)
    runner = PlanRunner(assignment, lambda: kernel, Limits(cell_s=CELL_S), where.append)  # type: ignore[arg-type,return-value]
    run = runner.probe_run(PLAN, Nothing(), hung=HungCalls(PLAN, SPARE))  # type: ignore[arg-type]
    given = dict(kernel.given)

    assert (CELL_S, AGAIN_S, CELL_S) == (given[PLOTS], given["print(drawn(2))"], given["print(tree(2))"])
    assert ["cell 6", "cell 8"] == [event.where for event in run.events]
    assert ["cell 1", "ring", "the check of ring", "tree", "the check of tree", "cell 6"] == where[:6]
