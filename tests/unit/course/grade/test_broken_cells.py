"""What is told of a solve cell that did not come to its end, in front of the first check and behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.broken_cells import tell_broken_cells
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import Incident, ProbedRun

AREA = KnownCell("code", "solve-area", "def area(): stub", "def area(): right", {}, "solve", "area")
ENDED = "the cell of area raised an exception before it had defined everything"


def error(kind: str, text: str, line: int) -> dict[str, Any]:
    """An error as IPython puts it out, colours too."""
    trace = [
        f"\x1b[31m{kind}\x1b[39m",
        f"\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[7]\x1b[39m\x1b[32m, line {line}\x1b[39m",
    ]
    return {"output_type": "error", "ename": kind, "evalue": text, "traceback": trace}


def told(source: str, run: ProbedRun, *, outputs: list[dict[str, Any]] | None = None) -> Outcome:
    """What comes of an exercise whose cell is the second of a notebook and did not end well."""
    cell = PlannedCell("code", source, AREA, runs=True, keeps_id=True, outputs=json.dumps(outputs or []).encode())
    run.outcomes["area"] = Outcome("area", "lab", "not attempted", 0.0, 2.0)
    tell_broken_cells(MarkingPlan((PlannedCell("code", "import edl_labs", runs=True), cell), ()), run)
    return run.outcomes["area"]


def test_a_cell_that_raised_in_front_of_the_checks_says_line_and_exception():
    outcome = told(
        "area = side",
        ProbedRun(outputs={1: [error("NameError", "name 'side' is not defined", 1)]}, raised={1: "NameError"}),
    )

    assert ("wrong", ENDED) == (outcome.state, outcome.what)
    assert "line 1: NameError: name 'side' is not defined" == outcome.why


def test_behind_a_check_the_students_own_run_says_it():
    own = [error("ValueError", "a side of 3 is too long", 4)]

    assert (
        "line 4: ValueError: a side of 3 is too long, as in your own run"
        == told("area = f()", ProbedRun(raised={1: "ValueError"}), outputs=own).why
    )


@pytest.mark.parametrize(("raised", "said"), [("NameError", "it raised NameError"), ("Case17Error", ""), ("", "")])
def test_behind_a_check_nothing_is_told_but_one_of_pythons_own_exceptions(raised: str, said: str):
    own = [error("ValueError", "another error than in grading", 4)]

    assert said == told("area = f()", ProbedRun(raised={1: raised}), outputs=own).why


def test_a_cell_that_never_ends_is_told_to_look_for_a_loop():
    outcome = told("while True: pass", ProbedRun(events=[Incident("timeout", "area")], raised={1: "KeyboardInterrupt"}))

    assert ("the cell of area was stopped", "it did not finish in time") == (outcome.what, outcome.why)
    assert "loop" in outcome.next


def test_what_python_cannot_read_says_its_line():
    outcome = told("def area(:\n    return 1", ProbedRun(raised={1: "SyntaxError"}))

    assert ("Python cannot parse the cell of area", "line 1: invalid syntax") == (outcome.what, outcome.why)


def test_a_stub_that_raises_is_still_not_attempted():
    assert "not attempted" == told("def area(): stub", ProbedRun(raised={1: "NameError"})).state
