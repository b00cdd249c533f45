"""Every lab through a small class run: the stub has nothing, the solution everything, known mistakes lose their own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_labs
from edl_labs.course.marks.entry_timelines import entry_timelines
from edl_labs.course.marks.leaderboard import Leaderboard, leaderboards
from edl_labs.errors import NothingToDo
from tests.course.course_fixture import REPOSITORY, Course, cell_of, make_lab_course, solved

LABS = {lab.name: lab for lab in read_labs(Repository(REPOSITORY))}
SCORED = "lab10b_within_the_budget"
# A lab's solution runs in a sandbox for up to some minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def a_mistake_an_exercise(lab: Lab, course: Course) -> dict[str, nbformat.NotebookNode]:
    """By exercise, the solution with the first of its known mistakes behind it."""
    found: dict[str, nbformat.NotebookNode] = {}
    for wrong in lab.mistakes:
        if wrong.exercise not in found and not lab.exercise(wrong.exercise).optional:
            notebook = solved(course)
            cell_of(notebook, wrong.exercise)["source"] += "\n\n" + wrong.code
            found[wrong.exercise] = notebook
    return found


@pytest.mark.parametrize("name", LABS)
def test_a_class_run_gives_the_marks_that_proofs_give(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = LABS[name]
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    course = make_lab_course(tmp_path, name)
    mistakes = a_mistake_an_exercise(lab, course)
    course.submit("stub", course.released())
    course.submit("solution", solved(course))
    for exercise, notebook in mistakes.items():
        course.submit(f"wrong-{exercise}", notebook)
    with pytest.raises(NothingToDo):
        leaderboards(name, course=Repository(course.root))
    report = grade(name, course=Repository(course.root), jobs=2)
    marks = {row.student: dict(row.marks) for row in report.rows}
    full = {one.name: one.points for one in lab.exercises if one.kind == "code" and not one.optional}

    assert 0 == sum(marks["stub"].get(one, 0.0) for one in full)
    assert full == {one: marks["solution"].get(one) for one in full}
    assert [] == [one for one in mistakes if marks[f"wrong-{one}"][one] >= full[one]]
    if name == SCORED:
        the_board_ranks(course, monkeypatch)


def the_board_ranks(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graded class has a leaderboard, whose page names nobody."""
    (board,) = leaderboards(SCORED, course=Repository(course.root))
    monkeypatch.chdir(course.root)
    done = CliRunner().invoke(app, ["leaderboard", SCORED, "--html", "board.html", "--instructor"])

    assert "score" == board.exercise
    assert "stub" not in [row.student for row in board.standings]
    assert 0.85 <= board.standings[0].efficiency <= 1
    assert 0 == done.exit_code, done.output
    page = (course.root / "board.html").read_text(encoding="utf-8")
    assert board.standings[0].name in page
    assert ">solution<" not in page
    the_board_shows_steps(board, page)


def the_board_shows_steps(board: Leaderboard, page: str) -> None:
    """Every entry has kept what ran when; the page unfolds it, and the terminal compares it with the instructor's."""
    kept = [entry_timelines(row.timelines) for row in board.standings]
    best = next(one for row, one in zip(board.standings, kept, strict=True) if row.student == "solution")
    told = CliRunner().invoke(app, ["leaderboard", SCORED, "--named", "--entry", "solution"])

    assert None not in kept
    assert best is not None
    assert best.theirs.steps == best.reference.steps  # the solution against itself
    assert len(board.standings) == page.count("<details")
    assert 0 == told.exit_code, told.output
    assert "about the same" in told.output
