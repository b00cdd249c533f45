"""A check that ran out of time is not run again while all that it depends on is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import Outcome, RegisteredExercise
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.known_timeouts import KnownTimeouts, probing_text
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.probe_run import CheckPoint, PlanRunner
from edl_labs.course.sandbox.kernel import Answer, CellResult, KernelStats, Violation
from edl_labs.course.sandbox.limits import Limits

MODULE = '''
class Loop:
    """An exercise."""

    def probe(self, student, case):
        return student.loop(case)

    def compare(self, case, got, want):
        return got == want
'''


@dataclass
class EndlessKernel:
    """Every probe runs out of time."""

    asked: list[bytes]

    def __enter__(self) -> EndlessKernel:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stats(self) -> KernelStats:
        return KernelStats(1.0, 100, 1)

    def run(self, source: str, *, timeout_s: float) -> CellResult:
        return CellResult("ok", [], 1)

    def answer(self, code: str, payload: bytes = b"", **_: object) -> Answer:
        self.asked.append(payload)
        raise Violation("deadline", why="no answer within 60 s", alive=True)


@dataclass
class Notes:
    request: bytes
    told: list[tuple[str, str]] = field(default_factory=list)

    def take(self, exercise: RegisteredExercise, check: CheckPoint) -> Outcome | None:
        check.ask(self.request)
        return None

    def miss(self, exercise: RegisteredExercise, *, what: str, why: str) -> None:
        self.told.append((what, why))


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bytes]]:
    """Grades a submission whose check never ends; what its kernels were asked."""
    module = tmp_path / "lab90.py"
    monkeypatch.setattr("edl_labs.course.grade.known_timeouts.module_path", lambda lab: module)

    def grade(
        source: str = "def loop(x): ...",
        *,
        after: str = "1",
        request: bytes = b"cases",
        text: str = MODULE,
        fresh: bool = False,
        modules: dict[str, bytes] | None = None,
        **limits: Any,
    ) -> list[bytes]:
        module.write_text(text)
        exercise = RegisteredExercise("loop", "lab90", object(), ())
        assignment = Assignment("lab90", (), (exercise,), {}, {}, False)
        cells = (PlannedCell("code", source, runs=True), PlannedCell("code", "", probes="loop"))
        plan = MarkingPlan((*cells, PlannedCell("code", after, runs=True)), (), modules or {})
        bounds, asked, notes = Limits(**limits), [], Notes(request)
        known = KnownTimeouts(tmp_path / "timeouts", assignment, limits=bounds, fresh=fresh)
        run = PlanRunner(assignment, lambda *_: EndlessKernel(asked), bounds, timeouts=known).probe_run(plan, notes)

        assert {"loop"} == run.late
        assert [("your code did not finish in time", "no answer within 60 s")] == notes.told
        return asked

    return grade


UNCHANGED = {
    "nothing": {},
    "a cell behind the check": {"after": "2"},
    "how answers are compared": {"text": MODULE.replace("got == want", "got >= want")},
    "a comment of the exercise": {"text": MODULE.replace("class", "# a comment\nclass")},
}
CHANGED = {
    "a cell": {"source": "def loop(x): return x"},
    "the cases": {"request": b"other cases"},
    "the probe": {"text": MODULE.replace("loop(case)", "loop(case[0])")},
    "a helper of the probe": {"text": MODULE + "\nNUMBER = 3\n"},
    "a file of the student's": {"modules": {"helpers.py": b"x = 1"}},
    "a limit": {"probe_s": 800.0},
    "asked for afresh": {"fresh": True},
}


@pytest.mark.parametrize("what", UNCHANGED)
def test_a_time_out_is_known(graded, what):
    assert [b"cases"] == graded()
    assert [] == graded(**UNCHANGED[what])


@pytest.mark.parametrize("what", CHANGED)
def test_what_is_changed_runs_again(graded, what):
    graded()

    assert 1 == len(graded(**CHANGED[what]))


def test_the_end_of_the_notebooks_time_says_nothing_of_the_check(graded):
    graded(notebook_s=30.0)

    assert 1 == len(graded(notebook_s=30.0))


def test_a_lab_that_is_a_folder_is_read_whole(tmp_path):
    (tmp_path / "__init__.py").touch()
    (tmp_path / "one.py").write_text(MODULE)
    before = probing_text(tmp_path / "__init__.py")
    (tmp_path / "two.py").write_text("NUMBER = 3")

    assert before != probing_text(tmp_path / "__init__.py")
    assert "compare" not in before
