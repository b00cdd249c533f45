"""How often what builds on a wrong exercise runs again: until it earns something, and at most twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from edl_labs.checks import Outcome
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.grade.run_record import ProbedRun, Usage
from edl_labs.course.sandbox.limits import Limits

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


def played(*script: ProbedRun, notebook_s: float = 900.0) -> tuple[list[float], ProbedRun]:
    runner: Any = Runner(list(script), Limits(notebook_s=notebook_s))
    run = ProbedRun(outcomes={"box": outcome()})
    sink: Any = None
    box: Any = SimpleNamespace(name="box")
    Examiner(runner, {}, sink, sink)._try_in_turn(TRIES, box, run)
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
