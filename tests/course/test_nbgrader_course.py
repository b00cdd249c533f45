"""The real nbgrader around a lab: release, submissions, autograde, feedback, export, formgrader."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from edl_labs.checks import Outcome, RegisteredExercise, judge
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.lab_facts import LabFacts, facts
from edl_labs.checks.probe_process import ProbeProcess
from tests.course.course_fixture import LAB, MODEL_ANSWER, POINTS, SOLUTIONS, Course, cell_of, solve_cell
from tests.course.formgrader import Formgrader, formgrader
from tests.course.once import once

NOISY = """import ctypes, logging, os, sys, warnings
def area(width, height):
    warnings.warn("rectangles are deprecated")
    print("measuring", width, file=sys.stderr)
    logging.getLogger("student").error("a log line")
    os.write(2, b"written past Python")
    ctypes.CDLL(None).perror(b"written by C")
    return width * height"""

SUBMISSIONS = {
    "stub": None,
    "solution": {},
    "wrong_area": {"area": solve_cell("area", body="return width + height")},
    "half_right": {"halves": solve_cell("halves", body="return [values[0] / 2, *values[1:]]")},
    "noisy": {"area": NOISY},
}
EXPECTED = {
    "stub": {"area": 0, "box_area": 0, "halves": 0, "longest": 0},
    "solution": {"area": 2, "box_area": 2, "halves": 2, "longest": 1},
    "half_right": {"area": 2, "box_area": 2, "halves": 1, "longest": 1},
    "noisy": {"area": 2, "box_area": 2, "halves": 2, "longest": 1},
}
# A whole class through plain nbgrader and its formgrader: half a minute before the first test.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graded(released: Course, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The course with five submissions, autograded by nbgrader's own command."""

    def make(root: Path) -> None:
        shutil.copytree(released.root, root)
        course = Course(root)
        for student, sources in SUBMISSIONS.items():
            course.submit(student, notebook_of(course, sources))
        course.nbgrader("autograde", LAB)
        course.nbgrader("generate_feedback", LAB)
        course.nbgrader("export", "--to", "marks.csv")

    return Course(once(tmp_path_factory, "graded", make))


@pytest.fixture(scope="module")
def exported(graded: Course) -> list[dict[str, str]]:
    with (graded.root / "marks.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def feedback(graded: Course) -> dict[str, str]:
    """The feedback page of each student."""
    folder = graded.root / "course" / "feedback"
    return {student: (folder / student / LAB / f"{LAB}.html").read_text() for student in SUBMISSIONS}


@pytest.fixture(scope="module")
def running(graded: Course) -> Iterator[Formgrader]:
    with formgrader(graded) as started:
        yield started


def notebook_of(course: Course, sources: dict[str, str] | None) -> nbformat.NotebookNode:
    return course.released() if sources is None else course.answered(sources, prose="It is symmetric.")


def engine_points(course: Course, notebook: nbformat.NotebookNode) -> dict[str, float]:
    """What the exercise engine says of a notebook, in a process of its own and without nbgrader."""
    code = [(c.id, c.source) for c in notebook.cells if c.cell_type == "code" and not c.source.startswith("check(")]
    known = facts(LAB)
    with ProbeProcess(code, exercises_folder=course.exercises) as worker:
        return {e.name: _judged(known, worker, e).points for e in load_lab(LAB)}


def _judged(known: LabFacts, worker: ProbeProcess, exercise: RegisteredExercise) -> Outcome:
    """Alone, then with the solutions of what it builds on in their place: the better of the two."""
    cases, wants = known.golden(exercise.name)
    points = known.exercise(exercise.name).points
    references = [(used, solve_cell(used, body=SOLUTIONS[used][1])) for used in exercise.uses]
    tries = [worker.collect(exercise.name, cases, references=names) for names in ([], references)]
    outcomes = [judge(exercise, cases, got, wants, points=points) for got in tries]
    return max(outcomes, key=lambda outcome: outcome.points)


def code_scores(course: Course, student: str) -> dict[str, float | None]:
    """A student's automatic scores in the gradebook, by exercise."""
    return {name.removeprefix("check_"): s for name, s in course.scores(student).items() if name.startswith("check_")}


def test_release_holds_no_solution(released: Course):
    released_text = (released.root / "labs" / LAB / f"{LAB}.ipynb").read_text()

    for _, body in SOLUTIONS.values():
        assert body not in released_text
    assert MODEL_ANSWER not in released_text


def test_release_holds_the_notebook_alone(released: Course):
    files = [path.name for path in (released.root / "labs" / LAB).iterdir()]

    assert [f"{LAB}.ipynb"] == files


def test_stub_of_the_release_is_not_implemented(released: Course):
    source = cell_of(released.released(), "area")["source"]

    assert "raise NotImplementedError" in source


@pytest.mark.parametrize("student", SUBMISSIONS)
def test_gradebook_says_what_the_engine_says(graded: Course, student: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(graded.exercises))
    expected = engine_points(graded, notebook_of(graded, SUBMISSIONS[student]))

    assert expected == code_scores(graded, student)


@pytest.mark.parametrize("student", EXPECTED)
def test_marks_are_those_of_the_lab(graded: Course, student: str):
    assert EXPECTED[student] == code_scores(graded, student)


def test_wrong_answer_loses_its_own_exercise(graded: Course):
    scores = code_scores(graded, "wrong_area")

    assert {"area": 0, "box_area": 2, "halves": 2, "longest": 1} == scores


def test_honest_one_that_writes_to_stderr_keeps_full_marks(graded: Course):
    full = {name: points for name, points in POINTS.items() if name in SOLUTIONS}

    assert full == code_scores(graded, "noisy")


def test_prose_waits_for_a_person_and_an_untouched_answer_gets_zero(graded: Course):
    assert [None, 0] == [graded.scores(student)["why_square"] for student in ("solution", "stub")]


def test_feedback_shows_each_student_what_was_wrong(feedback: dict[str, str]):
    assert "the area is wrong" in feedback["wrong_area"]
    assert "the area is wrong" not in feedback["solution"]


def test_feedback_shows_no_solution(feedback: dict[str, str]):
    assert [False, False] == [SOLUTIONS["area"][1] in feedback[student] for student in ("stub", "wrong_area")]


@pytest.mark.parametrize("student", EXPECTED)
def test_export_has_the_totals(exported: list[dict[str, str]], student: str):
    row = next(row for row in exported if row["student_id"] == student)

    assert sum(EXPECTED[student].values()) == float(row["score"])
    assert sum(POINTS.values()) == float(row["max_score"])


def test_formgrader_lists_the_assignment(running: Formgrader):
    assert "nbgrader formgrade" in running.page("manage_assignments")
    assert [(LAB, len(SUBMISSIONS))] == [(a["name"], a["num_submissions"]) for a in running.api("assignments")]


def test_formgrader_lists_the_class_and_its_button_repeats_the_marks(running: Formgrader):
    answer = running.press(f"submission/{LAB}/half_right/autograde")
    listed = {row["student"]: row["score"] for row in running.api(f"submissions/{LAB}")}

    assert answer["success"], answer
    assert listed.keys() == SUBMISSIONS.keys()
    assert {name: sum(marks.values()) for name, marks in EXPECTED.items()} == {name: listed[name] for name in EXPECTED}


def test_formgrader_shows_a_submission(running: Formgrader):
    notebooks = running.api(f"submitted_notebooks/{LAB}/{LAB}")
    wrong = next(row["id"] for row in notebooks if row["student"] == "wrong_area")

    assert "the area is wrong" in running.page(f"submissions/{wrong}/")
