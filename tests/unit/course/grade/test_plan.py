"""From a student's cells to what runs: nobody loses more than the exercise whose cell is odd."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edl_labs.checks import RegisteredExercise
from edl_labs.course.assignment import Assignment, KnownCell
from edl_labs.course.grade.plan import MarkingPlan, make_plan, solution_plan
from edl_labs.course.grade.submission import Submission, SubmittedCell


def known(role: str, name: str, source: str, *, solution: str = "", kind: str = "code") -> KnownCell:
    grade_id = {"check": f"check_{name}", "": ""}.get(role, name)
    points = 2.0 if role in ("check", "answer") else 0.0
    return KnownCell(kind, f"{role or 'c'}-{name}", source, solution or source, {}, role, grade_id, points)


EXERCISES = (RegisteredExercise("area", "lab", None), RegisteredExercise("box", "lab", None, uses=("area",)))


@pytest.fixture
def assignment() -> Assignment:
    cells = (
        known("", "setup", "import edl_labs"),
        known("solve", "area", "def area(): stub", solution="def area(): right"),
        known("check", "area", 'check("area")'),
        known("locked", "area_question", "Why?", kind="markdown"),
        known("answer", "why", "your answer", solution="because", kind="markdown"),
    )
    return Assignment("lab", cells, EXERCISES, {}, {}, own_exercises=False)


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
    assert "the check of area occurs 3 times" in [note.text for note in plan.notes]


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
    assert ["area = lambda: 1"] == [c.source for c in plan.cells if not (c.runs or c.known)]
    assert "area = lambda: 1" not in [cell.source for cell in plan.cells if cell.runs or cell.probes]


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


def test_work_that_was_moved_below_its_check_is_checked_there(assignment: Assignment):
    setup, solve, check, *rest = handed_in(assignment, solve_area="def area(): mine")
    plan = planned(assignment, [setup, check, *rest, solve])
    until = plan.until("area").cells

    assert ("solve-area", "check-area") == tuple(c.known.id for c in until[-2:])
    assert ["the check of area was above the cell of area, and was run below it"] == [n.text for n in plan.notes]
    assert not plan.tampered


def test_a_stub_below_its_check_moves_nothing(assignment: Assignment):
    setup, solve, check, *rest = handed_in(assignment)

    plan = planned(assignment, [setup, check, solve, *rest])

    assert [setup.id, check.id, solve.id] == [c.known.id for c in plan.cells[:3] if c.known]


def test_a_check_stays_below_the_first_work_even_where_there_is_more(assignment: Assignment):
    cells = handed_in(assignment, solve_area="def area(): mine")
    plan = planned(assignment, [*cells, SubmittedCell("code", "copy", "def area(): too", "area")])

    assert [2] == [index for index, cell in enumerate(plan.cells) if cell.probes]


def test_a_check_goes_below_what_its_exercise_builds_on(assignment: Assignment):
    box = (known("solve", "box", "def box(): stub"), known("check", "box", 'check("box")'))
    larger = replace(assignment, cells=(*assignment.cells, *box))
    cells = handed_in(larger, solve_area="def area(): mine", solve_box="def box(): mine")
    moved = [cells[0], *cells[2:], cells[1]]
    plan = planned(larger, moved)

    assert ["solve-area", "check-box", "check-area"] == [c.known.id for c in plan.cells[-3:] if c.known]
    assert ["area", "box"] == sorted(cell.probes for cell in plan.cells if cell.probes)


def test_what_the_release_has_below_a_check_stays_there(assignment: Assignment):
    setup, solve, check, *rest = assignment.cells
    other = replace(assignment, cells=(setup, check, solve, *rest))
    plan = planned(other, handed_in(other, solve_area="def area(): mine"))

    assert () == plan.notes
    assert ["setup", "check-area", "solve-area"] == [c.known.id.removeprefix("c-") for c in plan.cells[:3]]


def test_the_released_parameters_become_those_of_a_quick_run_and_a_students_own_stay(assignment: Assignment):
    parameters = KnownCell("code", "parameters", "steps = 1000\nname = 'a'", "", {})
    quick = replace(assignment, cells=(parameters, *assignment.cells), parameters={"steps": 10, "name": "b"})
    cells = handed_in(quick)
    mine = replace(cells[0], source="steps = 300")
    kept, changed, lost = (planned(quick, some).cells[0] for some in (cells, [mine, *cells[1:]], cells[1:]))

    assert "steps = 1000\nname = 'a'\nsteps = 10\nname = 'b'" == kept.runs_as == lost.runs_as
    assert ("steps = 1000\nname = 'a'", "steps = 300") == (kept.source, changed.runs_as)


def test_solution_runs_as_its_own_submission(assignment: Assignment):
    assert ["import edl_labs", "def area(): right"] == running(solution_plan(assignment))


def test_texts_that_are_evidence_are_those_of_the_notebooks_cells_that_run_before_the_check(assignment: Assignment):
    cells = handed_in(assignment, solve_area="def area(): mine")
    plan = planned(assignment, [*cells, SubmittedCell("code", "later", "def area(): another")])

    assert ["import edl_labs", "def area(): mine"] == plan.texts_until("area")
    assert [] == plan.without({"area"}).texts_until("nothing")
