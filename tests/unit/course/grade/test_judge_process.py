"""A judge that evidence keeps busy or fills up costs its own time limit, that submission's points, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from edl_labs.checks import Case, RegisteredExercise, plain_data
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import MOST_KEPT_BYTES, kept_timelines, plain_cases
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade import computing_time
from edl_labs.course.grade.class_judges import ClassJudges
from edl_labs.course.grade.computing_time import ComputingTime
from edl_labs.course.grade.judge_process import Judge, Judged
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.limits import Limits
from edl_labs.errors import EdlError

LAB = "lab92_judged"
EXERCISES = """
from edl_labs.checks import Case, Exercise, Wrong, exercise


@exercise("sum_up")
class SumUp(Exercise):
    answers = "all"

    def cases(self, rng):
        return [Case(given={})]

    def probe(self, student, given):
        return student.sum_up()

    def compare(self, case, got, want):
        while got[0] == "stall":
            pass
        if got[0] == "fill":
            held = [bytes(1 << 20) for _ in range(1 << 20)]
        if got[0] == "late fill":
            return 0.5
        if got != want:
            raise Wrong("it is wrong", why="it differs", next="again")

    def leaderboard_timelines(self, cases, got, want):
        return {"kept": got[0], "of": want[0]}

    def combine(self, fractions):
        if fractions == [0.5]:
            raise MemoryError
        return sum(fractions)


@exercise("written")
class Written(SumUp):
    source_is_evidence = True
    answer_form = {"source": [""], "ran": [""]}

    def compare(self, case, got, want):
        if got["source"] != ["def f(): right"]:
            raise Wrong("another text", why=str(got["source"]), next="again")
"""
RIGHT = ["right", 1]
EMPTY = {"given": {}, "hidden": {}}


@pytest.fixture
def exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RegisteredExercise:
    (tmp_path / f"{LAB}.py").write_text(EXERCISES)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(tmp_path))
    return load_lab(LAB)[0]


def judged(
    judge: Judge, exercise: RegisteredExercise, *, value: object, judge_s: float = 120.0
) -> tuple[str, float, str]:
    judge._limits = Limits(judge_s=judge_s)
    parts = [plain_data.encode(part) for part in ([EMPTY], [{"value": value}], [RIGHT])]
    outcome = judge.judge(exercise, *parts, points=2.0).outcome
    return outcome.state, outcome.points, outcome.why


@pytest.mark.parametrize(
    ("kind", "judge_s", "why"),
    [
        ("stall", 1.0, "took too long"),
        ("fill", 120.0, "comparing the results took too much memory"),
        ("late fill", 120.0, "comparing the results took too much memory"),
    ],
)
def test_evidence_that_holds_up_the_judge_earns_nothing_and_the_next_is_judged(
    exercise: RegisteredExercise, kind: str, judge_s: float, why: str
):
    with Judge() as judge:
        judge.launch()
        launched = judge._worker
        first = judged(judge, exercise, value=RIGHT)
        assert launched is judge._worker

        state, points, told = judged(judge, exercise, value=[kind, 1], judge_s=judge_s)
        last = judged(judge, exercise, value=RIGHT)

    assert ("passed", 2.0, "") == first == last
    assert ("wrong", 0.0) == (state, points)
    assert why in told


def test_source_that_is_evidence_is_the_submitted_text_whatever_the_process_sends(exercise: RegisteredExercise):
    written = next(one for one in load_lab(LAB) if one.name == "written")
    forged = [{"value": {"source": ["def f(): right"], "ran": []}}]
    sent = [plain_data.encode(part) for part in (plain_cases([Case(given={})]), forged, [{}])]
    with Judge() as judge:
        own = judge.judge(written, *sent, points=2.0, source=["def f(): right"])
        other = judge.judge(written, *sent, points=2.0, source=["def f(): wrong"])
        none = judge.judge(written, *sent, points=2.0)

    assert ["passed", "wrong", "wrong"] == [one.outcome.state for one in (own, other, none)]


def test_what_ran_when_is_kept_of_answers_that_earn_points(exercise: RegisteredExercise):
    with Judge() as judge:
        sent = [
            [plain_data.encode(part) for part in ([EMPTY], [{"value": one}], [RIGHT])] for one in (RIGHT, ["no", 1])
        ]
        right, wrong = (judge.judge(exercise, *parts, points=2.0).outcome for parts in sent)

    assert {"kept": RIGHT, "of": RIGHT} == right.timelines
    assert ("wrong", {}) == (wrong.state, wrong.timelines)


@pytest.mark.parametrize(
    "timelines",
    [
        lambda *_: {"bars": "x" * MOST_KEPT_BYTES},
        lambda *_: {"bars": float("nan")},
        lambda *_: {"bars": object()},
        lambda *_: [1],
        lambda *_: 1 / 0,
    ],
)
def test_what_is_too_much_or_no_plain_data_is_not_kept(timelines):
    spec = SimpleNamespace(leaderboard_timelines=timelines)

    assert {} == kept_timelines(spec, [{}], [{"value": 1}], [1])  # type: ignore[arg-type]


class Process:
    """A process whose clock and CPU time the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s, self.cpu_s = 100.0, 7.0
        monkeypatch.setattr(computing_time, "process_cpu_s", lambda pid: self.cpu_s)
        monkeypatch.setattr(computing_time, "usable_cores", lambda: 2)
        self.left_s = ComputingTime(1, 30.0, clock=lambda: self.wall_s)

    def passed(self, *, wall_s: float, cpu_s: float) -> float:
        self.wall_s, self.cpu_s = 100.0 + wall_s, 7.0 + cpu_s
        return self.left_s()


@pytest.mark.parametrize(
    ("wall_s", "cpu_s", "left_s"),
    [
        (10.0, 10.0, 20.0),
        (30.0, 30.0, 0.0),
        (90.0, 9.0, 21.0),  # a tenth of a core
        (90.0, 30.0, 0.0),
        (20.0, 40.0, 10.0),  # two threads
        (295.0, 3.0, 5.0),  # close to the bound
        (300.0, 0.0, 0.0),
    ],
)
def test_what_counts_of_the_judges_time_is_what_it_computes(
    monkeypatch: pytest.MonkeyPatch, wall_s: float, cpu_s: float, left_s: float
):
    assert left_s == pytest.approx(Process(monkeypatch).passed(wall_s=wall_s, cpu_s=cpu_s))


def held_up(judge: Judge) -> int:
    """Take the judge's process off the cores, as a crowd of others does."""
    assert judge._worker is not None
    os.kill(judge._worker.pid, signal.SIGSTOP)
    return judge._worker.pid


@pytest.mark.slow
def test_a_judge_that_gets_no_core_for_longer_than_its_time_judges_all_the_same(
    exercise: RegisteredExercise, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(computing_time, "OUTER_BOUND", 1000.0)
    with Judge() as judge:
        judged(judge, exercise, value=RIGHT)
        pid = held_up(judge)
        threading.Timer(1.5, os.kill, (pid, signal.SIGCONT)).start()

        assert ("passed", 2.0, "") == judged(judge, exercise, value=RIGHT, judge_s=1.0)
        assert process_cpu_s(pid) > 0


@pytest.mark.slow
def test_a_judge_that_never_gets_a_core_ends(exercise: RegisteredExercise, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(computing_time, "OUTER_BOUND", 2.0)
    with Judge() as judge:
        judged(judge, exercise, value=RIGHT)
        held_up(judge)
        state, points, told = judged(judge, exercise, value=RIGHT, judge_s=1.0)

    assert ("wrong", 0.0) == (state, points)
    assert "took too long" in told


def test_a_judge_that_does_not_start_costs_nobody_a_mark(exercise: RegisteredExercise, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Judge() as judge, pytest.raises(EdlError, match="the judge did not start") as refused:
        judged(judge, exercise, value=RIGHT)

    assert refused.value.why.startswith("while starting, it ended with exit code 1")


def test_evidence_judged_before_is_not_judged_again_by_any_judge_that_shares_it(exercise: RegisteredExercise):
    known: dict[bytes, Judged] = {}
    with Judge(known=known) as first, Judge(known=known) as second:
        kept = [judged(first, exercise, value=value) for value in (["half", 1], ["other", 1])]

        assert kept == [judged(second, exercise, value=value) for value in (["half", 1], ["other", 1])]
        assert second._worker is None
        assert 2 == len(known)


def test_what_held_up_the_judge_is_judged_again(exercise: RegisteredExercise):
    known: dict[bytes, Judged] = {}
    with Judge(known=known) as judge:
        late = judged(judge, exercise, value=["stall", 1], judge_s=1.0)

    assert ("wrong", {}) == (late[0], known)


def test_cases_are_drawn_as_here(exercise: RegisteredExercise):
    with Judge(lab=LAB) as judge:
        assert [{**EMPTY, "place": 0}] == plain_data.decode(judge.draw(exercise, 7))
        assert ("passed", 2.0, "") == judged(judge, exercise, value=RIGHT)
        assert plain_cases(exercise.draw_cases(7)) == plain_data.decode(judge.draw(exercise, 7))


def test_why_no_cases_were_drawn_is_told_as_here(exercise: RegisteredExercise, tmp_path: Path):
    text = (tmp_path / f"{LAB}.py").read_text()
    (tmp_path / f"{LAB}.py").write_text(text.replace("return [Case(given={})]", "return 1 / 0"))
    with Judge() as judge, pytest.raises(EdlError, match=r"sum_up: cases\(\) raised ZeroDivisionError") as refused:
        judge.draw(exercise, 7)

    assert "correct the line named above" in refused.value.next


def test_a_class_has_as_many_judges_as_judge_at_a_time(exercise: RegisteredExercise, monkeypatch: pytest.MonkeyPatch):
    made: list[Judge] = []
    launch = Judge.launch
    monkeypatch.setattr(Judge, "launch", lambda judge: (made.append(judge), launch(judge)))
    assignment = Assignment(LAB, (), (exercise,), {}, {}, own_exercises=False)
    judges = ClassJudges(assignment, Limits(), threading.Event())
    sent = [[plain_data.encode(part) for part in ([EMPTY], [{"value": one}], [RIGHT])] for one in (RIGHT, ["no", 1])]
    try:
        found = [judges.judge(exercise, *parts, points=2.0) for parts in (*sent, sent[0])]
    finally:
        judges.close()

    assert (["passed", "wrong", "passed"], 1) == ([one.outcome.state for one in found], len({*map(id, made)}))
    assert all(one.all_values for one in found)
    assert (found[0].outcome, 0.0) == (found[2].outcome, found[2].cpu_s)
