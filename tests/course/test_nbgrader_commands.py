"""Every command of nbgrader on one course: handed in through its exchange and by zip, graded by it and by edl-labs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.marks.feedback import feedback
from tests.course.course_fixture import LAB, Course

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def student_command(course: Course, home: Path, *arguments: str) -> str:
    """What a student's nbgrader said, in a folder that is no course."""
    exchange = [f"--Exchange.root={course.root / 'exchange'}", "--course=edl", "--Exchange.path_includes_course=False"]
    command = [sys.executable, "-m", "nbgrader", *arguments, *exchange]
    env = {**course.env, "HOME": str(home), "TZ": "UTC"}
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def course(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course with an exchange of its own."""
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    exchange = course.root / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.Exchange.root = {str(exchange)!r}\n")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy", "edl_labs.checks.evidence"))
    return course


def hand_in_by_exchange(course: Course, home: Path) -> str:
    """A student fetches, answers and submits; the student's name, which is the account's."""
    home.mkdir()
    course.nbgrader("release_assignment", LAB)
    assert LAB in student_command(course, home, "list")
    student_command(course, home, "fetch_assignment", LAB)
    (home / LAB / f"{LAB}.ipynb").write_text(json.dumps(course.answered(prose="It is symmetric.")))
    student_command(course, home, "submit", LAB)
    course.nbgrader("collect", LAB)
    return next(path.name for path in (course.root / "course" / "submitted").iterdir())


def hand_in_by_zip(course: Course) -> None:
    """Another student's work, through `nbgrader zip_collect`."""
    archive = course.root / "downloaded" / LAB / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "notebooks.zip", "w") as packed:
        packed.writestr(f"bob_{LAB}.ipynb", json.dumps(course.answered(prose="It is so.")))
    names = rf"--FileNameCollectorPlugin.named_regexp=.*/(?P<student_id>\w+?)_(?P<file_id>{LAB}\.ipynb)"
    course.nbgrader("zip_collect", LAB, "--force", names)


def test_work_goes_through_the_exchange_and_back(course: Course, tmp_path: Path):
    home = tmp_path / "student"
    ada = hand_in_by_exchange(course, home)
    hand_in_by_zip(course)
    course.nbgrader("autograde", LAB)
    course.nbgrader("generate_feedback", LAB)
    course.nbgrader("release_feedback", LAB)
    student_command(course, home, "fetch_feedback", LAB)
    pages = list((home / LAB / "feedback").rglob("*.html"))

    assert 1 == len(pages)
    assert "It is symmetric." in pages[0].read_text()
    assert {ada: 7.0, "bob": 7.0} == {s: sum(v or 0.0 for v in course.scores(s).values()) for s in (ada, "bob")}
    course.nbgrader("export", "--to", "marks.csv")
    assert 2 == len((course.root / "marks.csv").read_text().splitlines()[1:])


def test_commands_that_need_no_class_run_too(course: Course):
    source = f"build/source/{LAB}/{LAB}.ipynb"
    course.nbgrader("db", "student", "add", "ada", "--first-name=Ada")

    assert "ada" in course.nbgrader("db", "student", "list")
    assert LAB in course.nbgrader("db", "assignment", "list")
    assert "Success" in course.nbgrader("validate", source)
    course.nbgrader("update", source)
    course.nbgrader("generate_solution", LAB)
    assert (course.root / "course" / "solution" / LAB / f"{LAB}.ipynb").is_file()
    assert "jupyter" in course.nbgrader("formgrade", ok=False)  # no command of its own any more; the docs say so


def test_pages_of_a_class_run_can_be_released_too(course: Course, tmp_path: Path):
    home = tmp_path / "student"
    ada = hand_in_by_exchange(course, home)
    course.submit("cleo", course.answered(prose="Because."))
    folder = Repository(course.root)

    assert ["graded", "graded"] == [row.state for row in grade(LAB, course=folder, jobs=2).rows]
    assert {ada, "cleo"} == feedback(LAB, course=folder).pages.keys()
    course.nbgrader("release_feedback", LAB)
    student_command(course, home, "fetch_feedback", LAB)
    page = next((home / LAB / "feedback").rglob("*.html")).read_text()
    assert "Your notebook, as it was graded" in page
    assert 2 == len(os.listdir(course.root / "exchange" / "edl" / "feedback"))
