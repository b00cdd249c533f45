"""What runs again: what builds on a wrong exercise until it earns something, and all cells where one may be missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.checks import Exercise, Outcome
from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import ProbedRun, Usage
from edl_labs.course.sandbox.limits import Limits

NAMES = ("base", "box")
TRIES = [MarkingPlan((), ()) for _ in range(2)]


def outcome(points: float = 0.0) -> Outcome:
    return Outcome("box", "lab", "passed" if points else "wrong", points, 2.0)


@dataclass
class Runner:
    """Plays runs from a script, and keeps the time that each was given."""

    script: list[ProbedRun]
    limits: Limits = field(default_factory=Limits)
    given_s: list[float] = field(default_factory=list)

    def probe_run(self, plan: Any, sink: Any, *, hung: bool) -> ProbedRun:
        self.given_s.append(self.limits.notebook_s)
        return self.script[len(self.given_s) - 1]


def played(*script: ProbedRun, notebook_s: float = 900.0, after_error: int = 0) -> tuple[list[float], ProbedRun]:
    runner: Any = Runner(list(script), Limits(notebook_s=notebook_s))
    run = ProbedRun(outcomes={"box": outcome()})
    sink: Any = None
    box: Any = SimpleNamespace(name="box")
    Examiner(runner, {}, sink, sink)._try_in_turn(TRIES, box, run, after_error=TRIES[:after_error])
    return runner.given_s, run


def one(points: float = 0.0, *, took_s: float = 100.0, **more: Any) -> ProbedRun:
    return ProbedRun(outcomes={"box": outcome(points)}, usage=Usage(own_s=took_s), **more)


def test_what_earns_nothing_is_tried_without_the_wrong_cells_in_the_time_that_is_left():
    given_s, run = played(one(), one(2.0))

    assert [900.0, 800.0] == given_s
    assert 2.0 == run.outcomes["box"].points
    assert 200.0 == run.usage.own_s


def test_no_run_begins_without_time():
    assert [120.0] == played(one(took_s=119.5), one(2.0), notebook_s=120.0)[0]


def test_the_first_points_end_it():
    assert 1 == len(played(one(1.0), one(2.0))[0])


def test_a_check_that_timed_out_is_not_repeated():
    assert 1 == len(played(one(late={"box"}), one(2.0))[0])


def test_all_cells_run_where_what_has_the_judges_own_ends_in_an_error_too():
    ended = one(errors={"box"})

    assert 3 == len(played(ended, ended, one(2.0), after_error=1)[0])
    assert 2 == len(played(ended, one(), after_error=1)[0])


def known(name: str, role: str) -> KnownCell:
    return KnownCell("code", name, f"def {name}(x): ...", "", {}, role, name if role else "")


SHOWN = PlannedCell("code", "def shown(x): ...", known("shown", ""), runs=True)
SOLVED = [PlannedCell("code", f"{name} = 1", known(name, "solve"), runs=True, keeps_id=True) for name in NAMES]
SETUP = KnownCell("code", "setup", "import math", "import math", {}, lab_role="setup")
CHECK = PlannedCell("code", "", probes="box")
ALL = MarkingPlan((PlannedCell("code", "import math", SETUP, runs=True), SHOWN, *SOLVED, CHECK), ())


class Spec(Exercise):
    def probe(self, student: Any, given: Any) -> None: ...

    def compare(self, case: Any, got: Any, want: Any) -> None: ...


class Lab:
    """The exercise `box` builds on `base`."""

    exercises = tuple(SimpleNamespace(name=name, spec=Spec()) for name in NAMES)

    def exercise(self, name: str) -> Any:
        return next(one for one in self.exercises if one.name == name)

    def built_on(self, name: str) -> set[str]:
        return {"base"} if name == "box" else set()

    @property
    def by_grade_id(self) -> dict[str, KnownCell]:
        return {name: known(name, "solve") for name in NAMES}


@pytest.mark.parametrize(
    ("base", "errors", "again", "shown"),
    [
        ("passed", {"box"}, set(), [0, 1]),  # a cell may be missing
        ("wrong", {"box"}, set(), [0, 0, 0]),  # first with the judge's own
        ("wrong", {"box"}, {"box"}, [0, 0, 0, 1, 1]),  # an error with that too
        ("wrong", {"base"}, set(), [0, 1, 0, 0]),
        ("not attempted", set(), set(), [0, 0]),  # a stub that it met is no error
    ],
)
def test_demonstrations_run_only_where_one_may_be_missing(
    base: str, errors: set[str], again: set[str], shown: list[int]
):
    ran: list[int] = []

    class Counted(Runner):
        assignment = Lab()

        def probe_run(self, plan: MarkingPlan, sink: Any, *, hung: bool = False) -> ProbedRun:
            ran.append(sum(cell.is_demonstration for cell in plan.cells))
            found = {"base": Outcome("base", "lab", base, 0.0, 2.0), "box": outcome()}
            return ProbedRun(outcomes=found, errors=set(again if sink.wrong else errors))

    runner: Any = Counted([])
    solution: Any = SimpleNamespace(start=lambda: None)
    Examiner(runner, {}, solution, solution).grade(ALL, all_cells=False)

    assert shown == ran
