"""From a student's cells to what runs: nobody loses more than the exercise whose cell is odd."""

from __future__ import annotations

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.grader import tell_broken_cells
from edl_labs.course.grade.plan import MarkingPlan, make_plan, solution_plan
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submission import Submission, SubmittedCell


def known(role: str, name: str, source: str, *, solution: str = "", kind: str = "code") -> KnownCell:
    grade_id = {"check": f"check_{name}", "": ""}.get(role, name)
    points = 2.0 if role in ("check", "answer") else 0.0
    return KnownCell(kind, f"{role or 'c'}-{name}", source, solution or source, {}, role, grade_id, points)


@pytest.fixture
def assignment() -> Assignment:
    cells = (
        known("", "setup", "import edl_labs"),
        known("solve", "area", "def area(): stub", solution="def area(): right"),
        known("check", "area", 'check("area")'),
        known("locked", "area_question", "Why?", kind="markdown"),
        known("answer", "why", "your answer", solution="because", kind="markdown"),
    )
    return Assignment("lab", cells, (), {}, {}, own_exercises=False)


def handed_in(assignment: Assignment, **changed: str) -> list[SubmittedCell]:
    return [
        SubmittedCell(c.kind, c.id, changed.get(c.id.replace("-", "_"), c.source), c.grade_id) for c in assignment.cells
    ]


def planned(assignment: Assignment, cells: list[SubmittedCell]) -> MarkingPlan:
    return make_plan(assignment, Submission(tuple(cells)))


def running(plan: MarkingPlan) -> list[str]:
    return [cell.source for cell in plan.cells if cell.runs]


def test_untouched_submission_has_no_note(assignment: Assignment):
    plan = planned(assignment, handed_in(assignment))

    assert () == plan.notes
    assert ("area", "why") == plan.untouched()


def test_check_cells_never_run_and_are_where_probes_are(assignment: Assignment):
    plan = planned(assignment, handed_in(assignment, solve_area="def area(): mine"))

    assert ["import edl_labs", "def area(): mine"] == running(plan)
    assert ["area"] == [cell.probes for cell in plan.cells if cell.probes]


def test_without_an_exercise_none_of_its_cells_runs_and_all_others_do(assignment: Assignment):
    cells = handed_in(assignment, solve_area="def area(): mine")
    plan = planned(assignment, [*cells, SubmittedCell("code", "copy", "def area(): too", "area")])

    assert ["import edl_labs", "def area(): mine", "def area(): too"] == running(plan)
    assert ["import edl_labs"] == running(plan.without({"area"}))
    assert plan.cells == plan.without({"another"}).cells


def test_of_several_copies_of_a_check_the_last_alone_is_probed(assignment: Assignment):
    cells = handed_in(assignment, solve_area="def area(): first guess")
    guesses = [SubmittedCell("code", f"g{i}", f"def area(): guess {i}") for i in range(2)]
    checks = [SubmittedCell("code", f"c{i}", 'check("area")', "check_area") for i in range(2)]

    plan = planned(assignment, [*cells, guesses[0], checks[0], guesses[1], checks[1]])

    assert [""] * 6 + ["area"] == [cell.probes for cell in plan.cells if cell.kind == "code" or cell.probes]
    assert "the check of area is there 3 times" in [note.text for note in plan.notes]


@pytest.mark.parametrize("lost", ["c-setup", "solve-area", "check-area", "locked-area_question", "answer-why"])
def test_lost_cell_is_put_back_where_it_was(assignment: Assignment, lost: str):
    cells = [cell for cell in handed_in(assignment) if cell.id != lost]
    plan = planned(assignment, cells)

    assert [c.id for c in assignment.cells] == [c.known.id for c in plan.cells if c.known]
    assert 1 == len(plan.notes)
    assert not plan.tampered


def test_stub_put_back_does_not_run(assignment: Assignment):
    cells = [cell for cell in handed_in(assignment) if cell.id != "solve-area"]

    assert ["import edl_labs"] == running(planned(assignment, cells))


def test_changed_check_is_tampering_and_its_text_does_not_run(assignment: Assignment):
    plan = planned(assignment, handed_in(assignment, check_area="area = lambda: 1"))

    assert plan.tampered
    assert "area = lambda: 1" not in [cell.source for cell in plan.cells]


def test_copy_left_as_released_does_not_undo_the_work_in_another(assignment: Assignment):
    cells = handed_in(assignment, solve_area="def area(): mine")
    cells.insert(2, SubmittedCell("code", "copy", "def area(): stub", "area"))
    plan = planned(assignment, cells)

    assert ["import edl_labs", "def area(): mine"] == running(plan)
    assert ["def area(): mine"] == [c.source for c in plan.cells if c.keeps_id and c.known.grade_id == "area"]


def test_each_released_cell_is_kept_once_whatever_was_copied(assignment: Assignment):
    plan = planned(assignment, handed_in(assignment) * 3)
    kept = [cell.known.grade_id for cell in plan.cells if cell.keeps_id]

    assert sorted(c.grade_id for c in assignment.cells if c.grade_id) == sorted(kept)


def test_claim_of_an_id_that_was_never_released_is_tampering(assignment: Assignment):
    cells = [*handed_in(assignment), SubmittedCell("code", "x", "100", "check_bonus")]

    assert planned(assignment, cells).tampered


def test_prose_counts_from_the_copy_with_work_in_it(assignment: Assignment):
    cells = [*handed_in(assignment, answer_why="it is so"), SubmittedCell("markdown", "y", "your answer", "why")]

    assert {"why": "it is so"} == planned(assignment, cells).answers()


def test_solution_runs_as_its_own_submission(assignment: Assignment):
    assert ["import edl_labs", "def area(): right"] == running(solution_plan(assignment))


@pytest.mark.parametrize(
    ("source", "state", "said"),
    [
        ("def area(:\n    return 1", "wrong", "Python cannot read the cell of area|line 1: invalid syntax"),
        ("area = undefined", "wrong", "the cell of area ended in an error before it had defined everything|"),
        ("def area(): stub", "not attempted", "|"),
    ],
)
def test_a_cell_that_failed_is_not_called_not_attempted(assignment: Assignment, source: str, state: str, said: str):
    plan = planned(assignment, handed_in(assignment, solve_area=source))
    run = ProbedRun({"area": Outcome("area", "lab", "not attempted", 0.0, 2.0)}, unsure={"cell 2"})
    tell_broken_cells(plan, run)

    assert (state, said) == (run.outcomes["area"].state, f"{run.outcomes['area'].what}|{run.outcomes['area'].why}")
