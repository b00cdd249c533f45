"""What the kernel's answers mean: each way to fail has words of its own, and none passes for success."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edl_labs.course.run.process import Finished
from edl_labs.course.run.run_report import RanCell, RunLimits
from edl_labs.course.run.verdict import Expected, crashes, exercise_results, run_failures

OUTCOME = {"schema": 1, "name": "sums", "state": "passed", "points": 2.0, "max_points": 2.0, "what": "", "next": ""}
SUMS = Expected("sums", points=2.0)


def checked(**outcome: Any) -> RanCell:
    return RanCell(4, "check-sums", 'check("sums")', "ran", 0.1, check="sums", scores=({**OUTCOME, **outcome},))


def finished(*states: str, ending: dict[str, str] | None = None, **more: Any) -> Finished:
    cells = tuple(RanCell(i, f"c-{i}", f"step({i})", state, 0.1, **more) for i, state in enumerate(states))
    return Finished(cells, ending, 1.0)


def test_a_full_score_is_read() -> None:
    (result,) = exercise_results([checked()], [SUMS])

    assert ("passed", 2.0, 2.0, True) == (result.state, result.points, result.max_points, result.full)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        ({"schema": 2}, "its schema is not 1"),
        ({"name": "other"}, "it belongs to a different exercise: other"),
        ({"state": "brilliant"}, "its state is brilliant"),
        ({"state": None}, "its state is None"),
        ({"points": 3.0}, "its points are 3.0 of 2.0"),
        ({"points": -1}, "its points are -1 of 2.0"),
        ({"points": float("nan")}, "its points are nan of 2.0"),
        ({"points": True}, "its points are True of 2.0"),
        ({"points": "2"}, "its points are 2 of 2.0"),
        ({"points": None}, "its points are None of 2.0"),
        ({"points": 5, "max_points": 5}, "it is out of 5 points instead of 2; run edl-labs build to update both"),
    ],
)
def test_a_score_that_cannot_be_believed_is_no_score(outcome: dict[str, Any], why: str) -> None:
    (result,) = exercise_results([checked(**outcome)], [SUMS])

    assert ("unreadable", 0.0, why) == (result.state, result.points, result.why)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (replace(checked(), scores=()), "it contains 0 scores instead of one"),
        (replace(checked(), scores=(), plain_result="2.0"), "it contains 0 scores instead of one; it shows 2.0"),
        (replace(checked(), scores=(OUTCOME, OUTCOME)), "it contains 2 scores instead of one"),
        (replace(checked(), scores=("passed",)), "its schema is not 1"),
        (replace(checked(), state="raised", error="NameError: x"), "the cell raised NameError: x"),
    ],
)
def test_a_check_cell_without_exactly_one_score_is_unreadable(cell: RanCell, why: str) -> None:
    (result,) = exercise_results([cell], [SUMS])
    (failure,) = run_failures(Finished((replace(cell, state="ran"),), None, 1.0), [result], limits=RunLimits())

    assert ("unreadable", why) == (result.state, result.why)
    assert ("the check of sums returned no readable score", 1) == (failure.what, failure.exit_code)


@pytest.mark.parametrize("state", ["partly", "wrong", "not attempted"])
def test_a_solution_below_full_marks_fails_the_run(state: str) -> None:
    (result,) = exercise_results([checked(state=state, points=1.0, what="too low")], [SUMS])
    (failure,) = run_failures(Finished((checked(),), None, 1.0), [result], limits=RunLimits())

    assert "the solution of sums scores 1 of 2 points" == failure.what
    assert f"{state}: too low" == failure.why
    assert 1 == failure.exit_code


def test_full_points_in_a_state_that_is_not_passed_are_not_full_marks() -> None:
    (result,) = exercise_results([checked(state="partly")], [SUMS])

    assert not result.full


def test_a_check_that_is_not_there_is_missing_and_fails_the_run() -> None:
    (result,) = exercise_results([], [SUMS])
    (failure,) = run_failures(Finished((), None, 1.0), [result], limits=RunLimits())

    assert ("missing", "there is no check of sums") == (result.state, failure.what)


def test_the_graded_check_counts_and_one_of_your_own_does_not() -> None:
    own = replace(checked(state="wrong", points=0.0), index=9)

    (result,) = exercise_results([replace(checked(), grade_id="check_sums"), own], [SUMS])
    assert "passed" == result.state


def test_two_graded_checks_of_one_exercise_are_refused() -> None:
    graded = replace(checked(), grade_id="check_sums")

    (result,) = exercise_results([graded, replace(graded, index=9)], [SUMS])
    assert "sums is checked 2 times" == result.what


def test_explained_work_is_marked_by_hand_and_fails_nothing() -> None:
    (result,) = exercise_results([], [Expected("why", "explain", 2.0)])

    assert ("marked by hand", True) == (result.state, result.full)
    assert () == run_failures(Finished((), None, 1.0), [result], limits=RunLimits())


@pytest.mark.parametrize("state", ["never", "stopped"])
def test_an_exercise_that_was_not_reached_says_so(state: str) -> None:
    (result,) = exercise_results([replace(checked(), state=state)], [SUMS])

    assert ("not reached", 0.0) == (result.state, result.points)


def test_cells_that_never_ran_fail_a_run_that_nothing_else_fails() -> None:
    (failure,) = crashes(finished("ran", "never", "never"), limits=RunLimits())

    assert ("never-ran", "2 cells never ran; the first one is cell 2 (step(1))") == (failure.kind, failure.what)
    assert 4 == failure.exit_code


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("dead", "the kernel died in cell 2 (step(1)); 1 cell never ran"),
        ("cell-timeout", "cell 2 (step(1)) was still running after 5 s; 1 cell never ran"),
        ("notebook-timeout", "the notebook was still running after 9 s, in cell 2 (step(1)); 1 cell never ran"),
        ("output", "cell 2 (step(1)) printed or displayed more than 20 MB; 1 cell never ran"),
        ("runner", "the process that ran the notebook died; 1 cell never ran"),
        ("start", "no kernel started"),
    ],
)
def test_each_way_to_break_off_has_its_own_words(kind: str, what: str) -> None:
    run = finished("ran", "stopped", "never", ending={"kind": kind, "text": "signal 9"})

    (failure,) = crashes(run, limits=RunLimits(cell_s=5, notebook_s=9))
    assert (kind, what, 4) == (failure.kind, failure.what, failure.exit_code)
    assert failure.why
    assert failure.next


def test_an_error_names_the_cell_and_the_exception() -> None:
    (failure,) = crashes(finished("raised", error="ValueError: no", error_name="ValueError"), limits=RunLimits())

    assert "cell 1 (step(0)) raised ValueError: no" == failure.what


def test_asking_for_input_is_named_as_that() -> None:
    (failure,) = crashes(finished("raised", error_name="StdinNotImplementedError"), limits=RunLimits())

    assert "cell 1 (step(0)) calls input()" == failure.what
    assert "a run without a browser cannot ask for input" == failure.why


@pytest.mark.parametrize(("name", "call"), [("SystemExit", "sys.exit"), ("exit", "exit()")])
def test_an_exit_is_a_failure_even_in_the_last_cell(name: str, call: str) -> None:
    (failure,) = crashes(finished("exited", error_name=name), limits=RunLimits())

    assert f"cell 1 (step(0)) called {call}" == failure.what
