"""Cells that no mark needs are not run, and marks are the same as if they had been, whatever was handed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.mark import Examiner
from edl_labs.course.grade.needed_cells import thrifty
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.reference import reference
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import parse
from tests.attacks.attack_case import AttackCase, all_cases
from tests.attacks.bench import Bench
from tests.attacks.conftest import SEED
from tests.attacks.odd_submissions import AREAS, SHOWING, drawn, shown, with_showing
from tests.course.course_fixture import LAB, solve_cell
from tests.sampling import few

ODD = 210
QUICK = (0, 1, 2)  # of the drawn ones, in the everyday run


@pytest.fixture(scope="module")
def examiner(bench: Bench) -> Iterator[Examiner]:
    """The bench's, for the fixture lab with cells that show things between its exercises."""
    assignment = with_showing(bench.assignment)
    runner = replace(bench.examiner.runner, assignment=assignment)
    folder = CourseFolder(bench.course.root).grading(LAB) / "references"
    solution = replace(bench.examiner.solution, assignment=assignment, _process=None, _folder=None)
    known = reference(runner, seed=SEED, folder=folder)
    yield Examiner(runner, known, bench.examiner.judge, solution)
    solution.close()


def both(examiner: Examiner, data: bytes) -> tuple[ProbedRun, ProbedRun]:
    plan = make_plan(examiner.runner.assignment, parse(data))
    return examiner.grade(plan, whole=True), examiner.grade(plan, whole=False)


def is_spared_nothing(examiner: Examiner, data: bytes) -> bool:
    """Whether both runs would be one and the same."""
    plan = make_plan(examiner.runner.assignment, parse(data))
    return thrifty(plan) is plan


def points(run: ProbedRun) -> dict[str, float]:
    return {name: outcome.points for name, outcome in run.outcomes.items()}


def test_an_honest_submission_is_spared_what_shows_and_its_notebook_says_so(bench: Bench, examiner: Examiner):
    notebook = shown(bench.course.answered())
    for cell in notebook.cells:
        if cell.id == "c-late":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "<b>mine</b>"}]
    plan = make_plan(examiner.runner.assignment, parse(json.dumps(notebook).encode()))
    whole, spared = (examiner.grade(plan, whole=whole) for whole in (True, False))
    made = graded_notebook(examiner.runner.assignment, plan, spared)["cells"]
    not_run = [cell["id"] for cell in made if cell["metadata"].get("edl_labs") == {"in_grading": "not run"}]
    late = json.dumps([cell["outputs"] for cell in made if cell["id"] == "c-late"])

    assert points(whole) == points(spared)
    assert [] == sorted(whole.spared)
    cheap_or_unseen = {"c-import", "c-helper", "c-class", "c-modules", "c-patch"}
    assert {name for name, *_ in SHOWING} - cheap_or_unseen == set(not_run)
    assert "not run in grading" in late
    assert "mine" in late


@pytest.mark.slow
def test_what_went_wrong_for_want_of_a_cell_is_run_whole(bench: Bench, examiner: Examiner):
    """Whatever ends in an error may do so for want of something that the analysis did not see."""
    data = json.dumps(
        shown(bench.course.answered({"area": solve_cell("area", body="return [width][height]")}))
    ).encode()
    whole, spared = both(examiner, data)

    assert not is_spared_nothing(examiner, data)
    assert points(whole) == points(spared)
    assert frozenset() == spared.spared


@pytest.mark.parametrize(
    "body", few((body for body in AREAS if body.startswith("return") and "(1 if " in body), quick=2)
)
def test_what_an_answer_sees_by_another_way_is_run(bench: Bench, examiner: Examiner, body: str):
    data = json.dumps(shown(bench.course.answered({"area": solve_cell("area", body=body)}))).encode()
    whole, spared = both(examiner, data)

    assert points(whole) == points(spared)
    assert points(whole)["area"] > 0


@pytest.mark.parametrize("number", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in range(ODD)])
def test_marks_are_the_same_for_odd_submissions(bench: Bench, examiner: Examiner, number: int):
    data = drawn(bench.course, number)
    if is_spared_nothing(examiner, data):
        return
    whole, spared = both(examiner, data)

    assert points(whole) == points(spared)


@pytest.mark.slow
def test_many_odd_submissions_are_spared_something(bench: Bench, examiner: Examiner):
    """Else their marks would be the same for nothing."""
    plans = [make_plan(examiner.runner.assignment, parse(drawn(bench.course, number))) for number in range(ODD)]

    assert ODD / 5 < sum(thrifty(plan) is not plan for plan in plans)


@pytest.mark.slow
@pytest.mark.timeout(900)  # graded three times, each time until the notebook's time is over
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in all_cases()])
def test_marks_are_the_same_for_attacks(bench: Bench, examiner: Examiner, case: AttackCase):
    data = json.dumps(case.notebook(bench.course)).encode()
    if is_spared_nothing(examiner, data):
        return
    whole, spared = both(examiner, data)

    assert points(whole) == points(spared)
