"""Demonstrations do not run, and marks are those of all cells, whatever was handed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.grade.declared_cells import declared_plan
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.reference_process import ReferenceProcess
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import parse
from tests.attacks.attack_case import FULL, AttackCase, all_cases
from tests.attacks.bench import Bench
from tests.attacks.conftest import SEED
from tests.attacks.odd_submissions import AREAS, GIVEN, SHOWING, drawn, shown, with_showing
from tests.course.course_fixture import LAB, solve_cell
from tests.sampling import few

ODD = 210
QUICK = (0, 1, 2)  # of the drawn ones, in the everyday run


@pytest.fixture(scope="module")
def examiner(bench: Bench) -> Iterator[Examiner]:
    """The bench's, for the fixture lab with cells that show things between its exercises."""
    assignment = with_showing(bench.assignment)
    runner = replace(bench.examiner.runner, assignment=assignment)
    folder = Course(bench.course.root).grading(LAB) / "references"
    solution = ReferenceProcess(assignment, bench.examiner.solution.limits)
    known = reference(runner, seed=SEED, folder=folder)
    yield Examiner(runner, known, bench.examiner.judge, solution)
    solution.close()


def both(examiner: Examiner, data: bytes) -> tuple[ProbedRun, ProbedRun]:
    plan = make_plan(examiner.runner.assignment, parse(data))
    return examiner.grade(plan, all_cells=True), examiner.grade(plan, all_cells=False)


def runs_all(examiner: Examiner, data: bytes) -> bool:
    """Whether both runs would be one and the same."""
    plan = make_plan(examiner.runner.assignment, parse(data))
    return declared_plan(plan) is plan


def answered(bench: Bench, bodies: dict[str, str]) -> bytes:
    """An honest submission, but for the bodies of some functions."""
    cells = {name: solve_cell(name, body=body) for name, body in bodies.items()}
    return json.dumps(shown(bench.course.answered(cells))).encode()


def points(run: ProbedRun) -> dict[str, float]:
    return {name: outcome.points for name, outcome in run.outcomes.items()}


def test_an_honest_submission_runs_without_demonstrations_and_its_notebook_says_so(bench: Bench, examiner: Examiner):
    notebook = shown(bench.course.answered())
    for cell in notebook.cells:
        if cell.id == "c-late":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "<b>mine</b>"}]
    plan = make_plan(examiner.runner.assignment, parse(json.dumps(notebook).encode()))
    every, declared = (examiner.grade(plan, all_cells=all_cells) for all_cells in (True, False))
    made = graded_notebook(examiner.runner.assignment, plan, declared)["cells"]
    not_run = {cell["id"] for cell in made if cell["metadata"].get("edl_labs") == {"in_grading": "not run"}}
    late = json.dumps([cell["outputs"] for cell in made if cell["id"] == "c-late"])
    read_by_given = {"c-log", "c-class", "c-view", "c-marks", "c-modules"}

    assert points(every) == points(declared)
    assert [] == sorted(every.not_run)
    assert {name for name, *_ in SHOWING} - {*GIVEN} - read_by_given == not_run
    assert "not run during grading" in late
    assert "mine" in late


def test_an_error_as_evidence_is_a_reason_to_run_all_cells(bench: Bench, examiner: Examiner):
    data = answered(bench, {"area": "return [width][height]"})
    every, declared = both(examiner, data)

    assert points(every) == points(declared)
    assert frozenset() == declared.not_run


def test_a_value_without_a_demonstration_that_only_text_names_needs_a_second_run(bench: Bench, examiner: Examiner):
    """`eval` hides the name that it reads: the first run has an error, the second one a value."""
    body = "return [value / 2 * eval('counted') / 3 for value in values]"
    every, declared = both(examiner, answered(bench, {"halves": body}))

    assert FULL["halves"] == points(declared)["halves"]
    assert points(every) == points(declared)


def test_a_check_that_timed_out_is_not_repeated(bench: Bench, examiner: Examiner):
    """`halves` raises, so that all cells run; `longest` has had its time."""
    data = answered(bench, {"longest": "while True: pass", "halves": "return [][1]"})
    run = examiner.grade(make_plan(examiner.runner.assignment, parse(data)), all_cells=False)

    assert ["longest"] == [event.where for event in run.events]
    assert "your code did not finish in time" == run.outcomes["longest"].what
    assert frozenset() == run.not_run


@pytest.mark.parametrize(
    "body", few((body for body in AREAS if body.startswith("return") and "(1 if " in body), quick=2)
)
def test_what_an_answer_reads_of_given_cells_is_there(bench: Bench, examiner: Examiner, body: str):
    data = answered(bench, {"area": body})
    every, declared = both(examiner, data)

    assert points(every) == points(declared)
    assert points(every)["area"] > 0


@pytest.mark.parametrize("number", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(ODD)])
def test_marks_are_the_same_for_odd_submissions(bench: Bench, examiner: Examiner, number: int):
    data = drawn(bench.course, number)
    if runs_all(examiner, data):
        return
    every, declared = both(examiner, data)

    assert points(every) == points(declared)


@pytest.mark.slow
def test_of_many_odd_submissions_demonstrations_do_not_run(bench: Bench, examiner: Examiner):
    """Else their marks would be the same for nothing."""
    plans = [make_plan(examiner.runner.assignment, parse(drawn(bench.course, number))) for number in range(ODD)]

    assert ODD / 5 < sum(declared_plan(plan) is not plan for plan in plans)


@pytest.mark.slow
@pytest.mark.timeout(900)  # graded three times, each time until the notebook's time is over
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in all_cases()])
def test_marks_are_the_same_for_attacks(bench: Bench, examiner: Examiner, case: AttackCase):
    data = json.dumps(case.notebook(bench.course)).encode()
    if runs_all(examiner, data):
        return
    every, declared = both(examiner, data)

    assert points(every) == points(declared)
