"""A judge that evidence keeps busy or fills up costs its own time limit, that submission's points, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.checks import Exercise, plain_data
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.course.grade.judge_process import Judge
from edl_labs.course.sandbox.limits import Limits

LAB = "lab92_judged"
EXERCISES = """
from edl_labs.checks import Wrong, exercise


@exercise("sum_up")
class SumUp:
    def cases(self, rng):
        return [{}]

    def probe(self, student, case):
        return student.sum_up()

    def compare(self, case, got, want):
        while got[0] == "stall":
            pass
        if got[0] == "fill":
            held = [bytes(1 << 20) for _ in range(1 << 20)]
        if got != want:
            raise Wrong("it is wrong", why="it differs", next="again")
"""
RIGHT = ["right", 1]


@pytest.fixture
def exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exercise:
    (tmp_path / f"{LAB}.py").write_text(EXERCISES)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(tmp_path))
    return load_lab(LAB)[0]


def judged(judge: Judge, exercise: Exercise, *, value: object, judge_s: float = 120.0) -> tuple[str, float, str]:
    judge._limits = Limits(judge_s=judge_s)
    parts = [plain_data.encode(part) for part in ([{}], [{"value": value}], [RIGHT])]
    outcome = judge.judge(exercise, *parts, points=2.0)
    return outcome.state, outcome.points, outcome.why


@pytest.mark.parametrize(("kind", "judge_s", "why"), [("stall", 1.0, "took too long"), ("fill", 120.0, "")])
def test_evidence_that_holds_up_the_judge_earns_nothing_and_the_next_is_judged(
    exercise: Exercise, kind: str, judge_s: float, why: str
):
    with Judge() as judge:
        first = judged(judge, exercise, value=RIGHT)
        state, points, told = judged(judge, exercise, value=[kind, 1], judge_s=judge_s)
        last = judged(judge, exercise, value=RIGHT)

    assert ("passed", 2.0, "") == first == last
    assert ("wrong", 0.0) == (state, points)
    assert why in told
