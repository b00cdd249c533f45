"""How often what builds on a wrong exercise runs again: once, unless a mishap may have cost it its points."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.grade.hung_calls import HungCalls
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import MarkingPlan
from edl_labs.course.grade.run_record import Mishap, ProbedRun, Usage
from edl_labs.course.sandbox.limits import Limits

TRIES = [MarkingPlan((), ()) for _ in range(3)]


def outcome(points: float = 0.0) -> Outcome:
    return Outcome("box", "lab", "passed" if points else "wrong", points, 2.0)


@dataclass
class Runner:
    """Plays runs from a script, and keeps the time that each was given."""

    script: list[ProbedRun]
    limits: Limits = field(default_factory=Limits)
    given_s: list[float] = field(default_factory=list)

    def probe_run(self, plan: Any, sink: Any, *, hung: HungCalls) -> ProbedRun:
        self.given_s.append(self.limits.notebook_s)
        return self.script[len(self.given_s) - 1]


def played(*script: ProbedRun, quiet: bool = True, notebook_s: float = 900.0) -> tuple[list[float], ProbedRun]:
    runner: Any = Runner(list(script), Limits(notebook_s=notebook_s))
    run = ProbedRun(outcomes={"box": outcome()})
    sink: Any = None
    box: Any = SimpleNamespace(name="box")
    hung = HungCalls(TRIES[0], TRIES[0])
    Examiner(runner, {}, sink, sink)._try_in_turn(TRIES, box, sink, run, quiet=quiet, hung=hung)
    return runner.given_s, run


def one(points: float = 0.0, *, took_s: float = 100.0, **more: Any) -> ProbedRun:
    return ProbedRun(outcomes={"box": outcome(points)}, usage=Usage(own_s=took_s), **more)


def test_wrong_values_without_a_mishap_are_wrong_at_once():
    assert [900.0] == played(one(), one(2.0), one(2.0))[0]


@pytest.mark.parametrize("mishap", [{"unsure": {"box"}}, {"events": [Mishap("killed", "cell 3")]}], ids=str)
def test_after_a_mishap_it_is_tried_again_in_the_time_that_is_left(mishap: dict[str, Any]):
    given_s, run = played(one(**mishap), one(took_s=250.0, **mishap), one(2.0))

    assert [900.0, 800.0, 550.0] == given_s
    assert 2.0 == run.outcomes["box"].points
    assert 450.0 == run.usage.own_s


def test_what_is_wrong_and_may_break_something_unseen_is_left_out_in_the_end():
    assert 3 == len(played(one(), one(), one(2.0), quiet=False)[0])


def test_no_run_begins_without_time():
    assert [120.0] == played(one(took_s=119.5, unsure={"box"}), one(2.0), notebook_s=120.0)[0]


def test_the_first_points_end_it():
    assert 2 == len(played(one(unsure={"box"}), one(1.0, unsure={"box"}), one(2.0))[0])
