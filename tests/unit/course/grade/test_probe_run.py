"""One walk for every sink: cells in order, probes at checks, kernels that die and are followed by others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.checks import Outcome, RegisteredExercise
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.probe_run import AGAIN_S, CheckPoint, PlanRunner
from edl_labs.course.sandbox.kernel import Answer, CellResult, KernelDied, KernelStats, Violation
from edl_labs.course.sandbox.limits import Limits

OK = CellResult("ok", [], 1)


class Spec:
    def cases(self, rng: Any) -> list[Any]:
        return [{}]


@dataclass
class FakeKernel:
    """Runs nothing: a cell called "die" ends it, and so does the probe of an exercise called "deadly"."""

    ran: list[str]
    asked: list[str] = field(default_factory=list)

    def __enter__(self) -> FakeKernel:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stats(self) -> KernelStats:
        return KernelStats(1.0 + len(self.ran), 100, 1)

    def run(self, source: str, *, timeout_s: float) -> CellResult:
        self.ran.append(source)
        if source == "die":
            raise KernelDied("memory")
        return OK

    def answer(self, code: str, payload: bytes = b"", **_: object) -> Answer:
        if b"deadly" in payload:
            raise KernelDied("signal 11")
        if b"silent" in payload:
            raise Violation("no answer", why="the probe sent no answer", alive=True)
        return Answer(b"evidence", 0.01, OK)


@dataclass
class Notes:
    """A sink that writes down what it is told; the outcome is worth the points that it was made with."""

    points: float = 1.0
    told: list[tuple[str, ...]] = field(default_factory=list)

    def take(self, exercise: RegisteredExercise, check: CheckPoint) -> Outcome:
        self.told.append((exercise.name, check.ask(exercise.name.encode()).data.decode()))
        return Outcome(exercise.name, "lab", "passed", self.points, self.points)

    def miss(self, exercise: RegisteredExercise, *, what: str, why: str) -> None:
        self.told.append((exercise.name, what, why))


def runner(*names: str, ran: list[str] | None = None, **limits: Any) -> PlanRunner:
    exercises = tuple(RegisteredExercise(name, "lab", Spec(), ()) for name in names)
    assignment = Assignment("lab", (), exercises, {}, {}, False)
    return PlanRunner(assignment, lambda: FakeKernel([] if ran is None else ran), Limits(**limits))  # type: ignore


def cell(source: str = "", *, probes: str = "") -> PlannedCell:
    return PlannedCell("code", source, runs=not probes, probes=probes)


def test_the_sink_gets_evidence_at_each_check_in_order():
    sink, plan = Notes(), MarkingPlan((cell("a"), cell(probes="one"), cell("b"), cell(probes="two")), ())
    run = runner("one", "two").probe_run(plan, sink)

    assert [("one", "evidence"), ("two", "evidence")] == sink.told
    assert {"one", "two"} == set(run.outcomes)
    assert [0] == list(run.outputs)
    assert (3.0, 2.0, 100) == (run.usage.cpu_s, run.usage.own_cpu_s, run.usage.peak_bytes)


def test_a_sink_without_outcomes_leaves_none():
    sink = Notes()
    sink.take = lambda exercise, check: None  # type: ignore[method-assign]

    assert {} == runner("one").probe_run(MarkingPlan((cell(probes="one"),), ()), sink).outcomes


def test_a_cell_that_kills_its_kernel_is_left_out_and_later_exercises_count():
    ran: list[str] = []
    sink, plan = Notes(), MarkingPlan((cell("a"), cell("die"), cell(probes="one")), ())
    run = runner("one", ran=ran).probe_run(plan, sink)

    assert ["a", "die", "a"] == ran
    assert [("one", "evidence")] == sink.told
    assert [("killed", "cell 2", "memory")] == [(e.kind, e.where, e.why) for e in run.events]
    assert "KernelDied" == run.outputs[1][-1]["ename"]


def test_a_probe_that_kills_its_kernel_costs_its_own_exercise():
    sink, plan = Notes(), MarkingPlan((cell(probes="deadly"), cell(probes="silent"), cell(probes="one")), ())
    runner("deadly", "silent", "one").probe_run(plan, sink)

    assert [
        ("deadly", "your code ended its kernel", "its process ended"),
        ("silent", "the check got no result", ""),
        ("one", "evidence"),
    ] == sink.told


def test_a_death_after_a_probe_is_charged_to_a_step_only_when_it_dies_again():
    ends = iter([KernelDied("signal 9")])

    class DelayedDeath(FakeKernel):
        def run(self, source: str, *, timeout_s: float) -> CellResult:
            if source == "b" and (end := next(ends, None)):
                raise end
            return super().run(source, timeout_s=timeout_s)

    sink, plan = Notes(), MarkingPlan((cell("a"), cell(probes="one"), cell("b"), cell("die"), cell(probes="two")), ())
    ran: list[str] = []
    run = replace(runner("one", "two"), new_kernel=lambda: DelayedDeath(ran)).probe_run(plan, sink)  # type: ignore

    assert ["a", "a", "b", "die", "a", "b"] == ran
    assert [("one", "evidence"), ("two", "evidence")] == sink.told
    assert ["cell 3", "cell 4"] == [event.where for event in run.events]
    assert {0, 3} == set(run.outputs)
    assert ["KernelDied"] == [output["ename"] for output in run.outputs[3]]


def test_a_cell_that_dies_only_when_it_is_run_again_has_one_more_try():
    ran: list[str] = []

    class DiesAgain(FakeKernel):
        def run(self, source: str, *, timeout_s: float) -> CellResult:
            if source == "a" and ran == ["a", "die"]:
                ran.append("a")
                raise KernelDied("memory")
            return super().run(source, timeout_s=timeout_s)

    sink, plan = Notes(), MarkingPlan((cell("a"), cell("die"), cell(probes="one")), ())
    replace(runner("one"), new_kernel=lambda: DiesAgain(ran)).probe_run(plan, sink)  # type: ignore

    assert ["a", "die", "a", "a"] == ran
    assert [("one", "evidence")] == sink.told


def test_a_cell_that_ended_in_time_may_be_slower_when_it_is_run_again():
    patience_s: list[float] = []

    class Slower(FakeKernel):
        def run(self, source: str, *, timeout_s: float) -> CellResult:
            if source == "a":
                patience_s.append(timeout_s)
            return super().run(source, timeout_s=timeout_s)

    plan = MarkingPlan((cell("a"), cell("die"), cell(probes="one")), ())
    replace(runner("one", cell_s=5.0), new_kernel=lambda: Slower([])).probe_run(plan, Notes())  # type: ignore
    first, second = patience_s

    assert 5.0 == first
    assert second > 10 * first


def test_a_cell_that_is_too_slow_when_it_is_run_again_is_told():
    ran: list[str] = []

    class Slow(FakeKernel):
        def run(self, source: str, *, timeout_s: float) -> CellResult:
            found = super().run(source, timeout_s=timeout_s)
            return replace(found, status="timeout") if ran == ["a", "die", "a"] else found

    plan = MarkingPlan((cell("a"), cell("die"), cell(probes="one")), ())
    run = replace(runner("one"), new_kernel=lambda: Slow(ran)).probe_run(plan, Notes())  # type: ignore

    assert ("timeout", "cell 1", "when it was run a second time") == (
        run.events[-1].kind,
        run.events[-1].where,
        run.events[-1].why,
    )


@pytest.mark.parametrize(("deaths", "why"), [(0, "its kernel died once"), (1, "its kernel died 2 times")])
def test_after_too_many_deaths_the_rest_is_missed(deaths: int, why: str):
    sink, plan = Notes(), MarkingPlan((cell("die"), cell("die"), cell("die"), cell(probes="one")), ())
    run = runner("one", deaths=deaths).probe_run(plan, sink)

    assert [("one", "this check was not reached", why)] == sink.told
    assert ("killed", why) == (run.events[-1].kind, run.events[-1].why)


def test_of_two_outcomes_the_better_stays():
    plan = MarkingPlan((cell(probes="one"), cell(probes="one")), ())
    sink = Notes()
    points = iter((2.0, 1.0))
    sink.take = lambda exercise, check: Outcome("one", "lab", "", next(points), 2.0)  # type: ignore[method-assign]

    assert 2.0 == runner("one").probe_run(plan, sink).outcomes["one"].points


def test_waiting_for_cases_is_not_the_students_time(monkeypatch: pytest.MonkeyPatch):
    now = SimpleNamespace(monotonic=lambda: now.s, s=0.0)
    monkeypatch.setattr("edl_labs.course.grade.probe_run.time", now)
    sink = Notes()

    def take(exercise: RegisteredExercise, check: CheckPoint) -> None:
        now.s += 1000.0
        check.ask(b"")
        now.s += 3.0

    sink.take = take  # type: ignore[method-assign]
    run = runner("one").probe_run(MarkingPlan((cell(probes="one"), cell("a")), ()), sink)

    assert 3.0 == run.usage.own_s
    assert [] == run.events


def test_a_plan_ends_at_the_last_check_of_an_exercise():
    plan = MarkingPlan((cell("a"), cell(probes="one"), cell(probes="two"), cell(probes="one"), cell("b")), ())

    assert ["", "one", "", "one"] == [c.probes for c in plan.until("one").cells]
    assert () == plan.until("three").cells


def test_a_probe_that_sleeps_is_told_so_and_no_other():
    told: list[str] = []

    @contextmanager
    def asleep() -> Iterator[None]:
        told.append("sleeps")
        yield
        told.append("woke")

    plan = MarkingPlan((cell(probes="one"), cell(probes="two")), ())
    made = runner("one", "two")
    one, two = made.assignment.exercises
    assignment = replace(made.assignment, exercises=(one, replace(two, sleeps=True)))
    sink = Notes()
    replace(made, assignment=assignment, asleep=asleep).probe_run(plan, sink)

    assert ["sleeps", "woke"] == told
    assert ["one", "two"] == [name for name, *_ in sink.told]


def test_waiting_for_others_after_a_sleep_is_no_time_of_the_student(monkeypatch: pytest.MonkeyPatch):
    now_s = [100.0]
    monkeypatch.setattr("edl_labs.course.grade.probe_run.time.monotonic", lambda: now_s[0])

    @contextmanager
    def asleep() -> Iterator[None]:
        yield
        now_s[0] += 1000.0  # others compute

    made = runner("one", "two", notebook_s=50.0)
    slept = tuple(replace(exercise, sleeps=True) for exercise in made.assignment.exercises)
    patient = replace(made, assignment=replace(made.assignment, exercises=slept), asleep=asleep)
    run = patient.probe_run(MarkingPlan((cell(probes="one"), cell(probes="two")), ()), Notes())

    assert {"one", "two"} == set(run.outcomes)
    assert [] == run.events
    assert 0.0 == run.usage.own_s


def test_the_start_of_a_kernel_is_no_time_of_the_student(monkeypatch: pytest.MonkeyPatch):
    now_s = [100.0]
    monkeypatch.setattr("edl_labs.course.grade.probe_run.time.monotonic", lambda: now_s[0])
    made = runner("one", notebook_s=50.0)

    def late() -> Any:
        now_s[0] += 300.0
        return made.new_kernel()

    run = replace(made, new_kernel=late).probe_run(MarkingPlan((cell("a"), cell(probes="one")), ()), Notes())

    assert ({"one"}, []) == (set(run.outcomes), run.events)


@dataclass
class LoopingKernel(FakeKernel):
    """Every cell that loops is stopped at its limit, and so is the probe of "one"."""

    given_s: dict[str, float] = field(default_factory=dict)

    def run(self, source: str, *, timeout_s: float) -> CellResult:
        self.given_s[source] = round(timeout_s)
        return CellResult("timeout" if "loop" in source else "ok", [], 1)


def demonstration(source: str) -> PlannedCell:
    return PlannedCell("code", source, KnownCell("code", "c-1", source, source, {}), runs=True)


def test_after_a_cell_that_hung_demonstrations_have_little_time_and_others_all_of_it():
    kernel = LoopingKernel([])
    made = replace(runner("one", cell_s=120.0), new_kernel=lambda: kernel)
    plan = MarkingPlan((demonstration("first"), demonstration("loop"), demonstration("then"), cell("mine")), ())
    run = made.probe_run(plan, Notes())

    assert {"first": 120, "loop": 120, "then": AGAIN_S, "mine": 120} == kernel.given_s
    assert ["cell 2"] == [event.where for event in run.events]
    assert run.has_hung


def test_in_a_second_run_they_have_little_time_from_the_start():
    kernel = LoopingKernel([])
    made = replace(runner("one", cell_s=120.0), new_kernel=lambda: kernel)
    made.probe_run(MarkingPlan((demonstration("first"), cell("mine")), ()), Notes(), hung=True)

    assert {"first": AGAIN_S, "mine": 120} == kernel.given_s


def test_an_exercise_is_not_probed_without_its_checks():
    plan = MarkingPlan((cell(probes="one"), cell(probes="two")), ())

    assert ["", "two"] == [c.probes for c in plan.unchecked({"one"}).cells]


def test_a_probe_that_gives_no_answer_is_an_error_as_evidence():
    run = runner("silent", "one").probe_run(MarkingPlan((cell(probes="silent"), cell(probes="one")), ()), Notes())

    assert ({"silent"}, set()) == (run.errors, run.late)
