"""A course of an instructor's own: complete at once, found from anywhere in it, by every verb alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import lab_exercises
from edl_labs.checks.lab_exercises import forget
from edl_labs.course.course_folder import Course, use_own_exercises
from edl_labs.course.lab.build import build
from edl_labs.course.lab.prove import prove
from edl_labs.course.own_course import make_course
from edl_labs.course.policy import read_policy
from edl_labs.course.run import checkfile
from edl_labs.course.run.process import Finished, Job
from edl_labs.errors import UsageError


@pytest.mark.slow
def test_a_new_course_builds_is_proved_and_is_ready_to_grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EDL_LABS_EXERCISES", "")  # known before, so that what grading sets does not outlive the test
    monkeypatch.delenv("EDL_LABS_EXERCISES")
    forget("lab07_medians")  # of another test in this process, with an exercise of the same name
    root = tmp_path / "my-course"
    report = make_course(root, name='A "good" course')
    inside = root / "solutions" / report.lab
    folder = Course.find_class(inside)

    assert root == folder.root == Course.find(inside).root
    assert build(Course(root), check=True).ok
    assert [] == prove(Course(root), report.lab, seeds=3).problems
    assert [report.lab] == folder.assignments()
    assert ["medians_first"] == [e.name for e in folder.assignment(report.lab).exercises]
    assert "A 'good' course" == read_policy(root).name
    assert "my_course" == folder.course_id


def test_nothing_is_written_over(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        make_course(tmp_path)

    assert ["notes.txt"] == [path.name for path in tmp_path.iterdir()]


def test_a_courses_own_exercises_come_first_for_authors_and_graders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(elsewhere))
    course = Course(tmp_path)

    assert elsewhere == course.exercises
    use_own_exercises(tmp_path)
    assert str(elsewhere) == os.environ["EDL_LABS_EXERCISES"]
    own = tmp_path / "edl_labs" / "exercises"
    own.mkdir(parents=True)
    use_own_exercises(tmp_path)
    assert own == course.exercises
    assert str(own) == os.environ["EDL_LABS_EXERCISES"]


def test_notebooks_are_checked_without_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    own = tmp_path / "edl_labs" / "exercises"
    (own / "goldens").mkdir(parents=True)
    (own / "lab77_mine.py").write_text("")
    (own / "goldens" / "lab77_mine.json").write_text("{}")
    inside = tmp_path / "labs" / "lab77_mine"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)

    assert own == lab_exercises.folder_of("lab77_mine")
    assert {"lab01_gpu_basics", "lab77_mine"} <= set(lab_exercises.built_labs())
    monkeypatch.chdir(tmp_path.parent)
    assert "lab77_mine" not in lab_exercises.built_labs()


def test_a_checkout_of_another_version_is_no_course_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    (tmp_path / "edl_labs" / "exercises").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    assert 1 == len(lab_exercises.own_course_above())
    (tmp_path / "edl_labs" / "__init__.py").write_text("")
    assert () == lab_exercises.own_course_above()


def test_a_lab_of_ones_own_is_checked_with_the_courses_exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    make_course(tmp_path / "mine")
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    monkeypatch.chdir(tmp_path / "mine")
    (lab,) = Course(tmp_path / "mine").lab_names()
    started = []

    def ran(job: Job, on_cell: Any) -> Finished:
        started.append(job.env)
        return Finished((), None, 0.0)

    monkeypatch.setattr(checkfile, "run", ran)
    checkfile.check_notebook(Path("labs") / lab / f"{lab}.ipynb")

    assert [{"EDL_LABS_EXERCISES": str((tmp_path / "mine" / "edl_labs" / "exercises").resolve())}] == started


@pytest.mark.parametrize(
    ("folder", "name", "then"),
    [
        ("assignments/ps1", "ps1", "run edl-labs build, then nbgrader generate_assignment ps1"),
        ("source/ps1", "ps1", "move source/ps1 to assignments/ps1, then run edl-labs build"),
        ("labs", "ps1", "put an nbgrader assignment into assignments/ps1, then run edl-labs build"),
        ("labs", "lab77_mine", "create a lab of that name with edl-labs new lab77_mine"),
    ],
)
def test_each_next_step_of_an_unknown_assignment_leads_somewhere(tmp_path: Path, folder: str, name: str, then: str):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "nbgrader_config.py").write_text("")
    with pytest.raises(UsageError, match=f"has no {name}") as refused:
        Course(tmp_path).assignment(name)

    assert then == refused.value.next
