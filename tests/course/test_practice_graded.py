"""Optional practice through grading: judged and told, and worth nothing in gradebook, export, report and feedback."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import ClassReport, grade
from edl_labs.course.lab.build import build
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.export import export
from edl_labs.course.marks.feedback import feedback
from edl_labs.course.marks.student_marks import class_marks
from tests.course.course_fixture import REPOSITORY, cell_of
from tests.unit.course.lab import kit

DOUBLED = "def doubled_time(duration_s):\n    return 2 * duration_s"
QUADRUPLED = "def quadrupled_time(duration_s):\n    return {} * duration_s"
PRELOAD = ("edl_labs", "numpy", "edl_labs.checks.evidence")


def submit(root: Path, student: str, **answers: str) -> None:
    notebook = nbformat.read(root / "labs" / kit.LAB / f"{kit.LAB}.ipynb", as_version=4)
    for name, source in answers.items():
        cell_of(notebook, name)["source"] = source
    folder = root / "course" / "submitted" / student / kit.LAB
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{kit.LAB}.ipynb")


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Course, ClassReport]:
    """Three students: all right, practice wrong, practice not attempted."""
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    monkeypatch.setattr(class_kernels, "ALWAYS", PRELOAD)  # without torch: these tests need none
    root = tmp_path / "course"
    course = kit.write_course(root)
    kit.add_second(course, uses=', uses=("doubled_time",)', worth="optional = true")
    build(course)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    submit(root, "all", doubled_time=DOUBLED, quadrupled_time=QUADRUPLED.format(4))
    submit(root, "wrong", doubled_time=DOUBLED, quadrupled_time=QUADRUPLED.format(1))
    submit(root, "idle", doubled_time=DOUBLED)
    folder = Course(root)
    return folder, grade(kit.LAB, course=folder)


@pytest.mark.slow
def test_practice_is_worth_nothing_from_the_gradebook_to_the_export(graded: tuple[Course, ClassReport]) -> None:
    course, report = graded

    assert {"all": 2.0, "wrong": 2.0, "idle": 2.0} == {row.student: row.points for row in report.rows}
    marks = {m.student: m for m in class_marks(course, kit.LAB)}
    assert {5.0} == {m.max_points for m in marks.values()}
    practice = {mark.exercise: (mark.points, mark.max_points) for mark in marks["all"].marks}["quadrupled_time"]
    assert (0.0, 0.0) == practice
    export(kit.LAB, kind="csv", out=course.root / "marks.csv", course=course)
    head = next(csv.reader(io.StringIO((course.root / "marks.csv").read_text("utf-8-sig"))))
    assert "doubled_time" in head
    assert "quadrupled_time" not in head


@pytest.mark.slow
def test_practice_is_told_in_feedback_and_counted_in_the_report(graded: tuple[Course, ClassReport]) -> None:
    course, _ = graded

    pages = {
        student: (course.root / path).read_text() for student, path in feedback(kit.LAB, course=course).pages.items()
    }
    assert "practice</td>" in pages["all"]
    assert "the duration came back as it was" in pages["wrong"]
    overview, solutions = class_report(kit.LAB, course=course)
    practice = next(e for e in overview.exercises if e.name == "quadrupled_time")
    assert ((), 1, (("the duration came back as it was", 1),)) == (
        practice.shares,
        practice.not_attempted,
        practice.mistakes,
    )
    write_report(overview, solutions, course.root / "report.html")
    assert "practice without points; 1 not attempted." in (course.root / "report.html").read_text()
