"""lab01 through a whole class: nbgrader's command and `grade` give the marks that `edl-labs test` proves."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade.classrun import grade
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from tests.course.course_fixture import REPOSITORY, Course, cell_of, make_lab_course, solved
from tests.course.once import once

# Long; every day the small fixture lab is graded both ways (test_nbgrader_course, test_class_run).
pytestmark = pytest.mark.slow

LAB01 = "lab01_gpu_basics"
NOISE = """import os as _os, sys as _sys, warnings as _warnings
def _noisy(function):
    def wrapped(*args, **kwargs):
        _warnings.warn("deprecated")
        print("working", file=_sys.stderr)
        _os.write(2, b"written past Python")
        return function(*args, **kwargs)
    return wrapped
"""


@dataclass
class Class01:
    """lab01's class, graded."""

    course: Course
    lab: Lab
    lost: dict[str, str]
    marks: dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def class01(tmp_path_factory: pytest.TempPathFactory) -> Class01:
    """Stub, solution, two known mistakes, and one right submission that warns: graded by a class run."""
    lab = read_lab(Repository(REPOSITORY), LAB01)
    mistakes = [lab.mistakes[0], next(w for w in lab.mistakes if w.exercise != lab.mistakes[0].exercise)]

    def make(root: Path) -> None:
        course = make_lab_course(root, LAB01)
        course.submit("stub", course.released())
        course.submit("solution", solved(course))
        course.submit("noisy", noisy(course))
        for number, wrong in enumerate(mistakes):
            course.submit(f"wrong{number}", mistaken(course, wrong.exercise, wrong.code))
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("EDL_LABS_EXERCISES", raising=False)
            report = grade(LAB01, course=Repository(course.root), jobs=2)
        (root / "marks.json").write_text(json.dumps({row.student: dict(row.marks) for row in report.rows}))

    course = Course(once(tmp_path_factory, "lab01", make), LAB01, own_exercises=False)
    marks = json.loads((course.root / "marks.json").read_text())
    return Class01(course, lab, {f"wrong{i}": w.exercise for i, w in enumerate(mistakes)}, marks)


def mistaken(course: Course, exercise: str, code: str) -> nbformat.NotebookNode:
    """The solution with a known mistake behind one solve cell."""
    notebook = solved(course)
    cell_of(notebook, exercise)["source"] += "\n\n" + code
    return notebook


def noisy(course: Course) -> nbformat.NotebookNode:
    """The solution, its first function wrapped so that it warns and writes to stderr at every call."""
    notebook = solved(course)
    cell = cell_of(notebook, "finish_times")
    cell["source"] = f"{NOISE}\n{cell['source']}\nfinish_times = _noisy(finish_times)"
    return notebook


def full(lab: Lab) -> dict[str, float]:
    return {e.name: e.points for e in lab.exercises if e.kind == "code"}


def test_stub_has_no_point(class01: Class01):
    assert dict.fromkeys(full(class01.lab), 0.0) == class01.marks["stub"]


@pytest.mark.parametrize("student", ["solution", "noisy"])
def test_right_work_has_full_marks(class01: Class01, student: str):
    assert full(class01.lab) == class01.marks[student]


@pytest.mark.parametrize("student", ["wrong0", "wrong1"])
def test_known_mistake_loses_exactly_its_exercise(class01: Class01, student: str):
    marks = class01.marks[student]
    short = {name for name, points in full(class01.lab).items() if marks[name] < points}

    assert {class01.lost[student]} == short


def test_nbgraders_own_command_gives_the_same_marks(class01: Class01):
    shutil.rmtree(class01.course.root / "course" / "autograded")
    (class01.course.root / "course" / "gradebook.db").unlink()
    class01.course.nbgrader("generate_assignment", LAB01, "--force")
    class01.course.nbgrader("autograde", LAB01)
    for student, marks in class01.marks.items():
        scores = class01.course.scores(student)

        assert marks == {name: scores[f"check_{name}"] for name in marks}
