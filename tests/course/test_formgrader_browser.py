"""Formgrader in a real browser lists the marks that the class run gave."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade import grader
from edl_labs.course.grade.classrun import grade
from tests.course.browser import NEEDS_BROWSER
from tests.course.course_fixture import LAB, Course, solve_cell
from tests.course.formgrader import Formgrader, formgrader

pytestmark = NEEDS_BROWSER


def rendered(server: Formgrader, path: str, profile: Path) -> str:
    """The text of a page as the browser shows it after its scripts have run."""
    document = server.seen(path, profile)
    return re.sub(r"\s+", " ", re.sub(r"<script.*?</script>|<[^>]+>", " ", document, flags=re.DOTALL))


def test_marks_of_a_class_run_are_listed(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(released.root, tmp_path / "course")
    course = Course(tmp_path / "course")
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(grader, "ALWAYS", ("edl_labs", "numpy"))
    course.submit("ada", course.answered(prose="So."))
    course.submit("bob", course.answered({"area": solve_cell("area", body="return 0")}, prose="So."))
    report = grade(LAB, course=CourseFolder(course.root))
    points = {row.student: row.points for row in report.rows}
    with formgrader(course) as server:
        assignments = rendered(server, "manage_assignments", tmp_path / "profile")
        submissions = rendered(server, f"manage_submissions/{LAB}", tmp_path / "profile")

    assert LAB in assignments
    for student in ("ada", "bob"):
        assert re.search(rf"{student}.*?{points[student]:g} / 9", submissions), submissions[-2000:]
    assert {"ada": 7.0, "bob": 5.0} == points
