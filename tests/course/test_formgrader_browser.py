"""Formgrader in a real browser lists the marks that the class run gave."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.grade import class_kernels
from edl_labs.course.grade.classrun import grade
from edl_labs.course.lab.source_notebook import RUBRIC_HEAD
from tests.course.browser import NEEDS_BROWSER
from tests.course.course_fixture import LAB, Course, cell_of, solve_cell
from tests.course.formgrader import Formgrader, formgrader

pytestmark = NEEDS_BROWSER


def rendered(server: Formgrader, path: str, profile: Path) -> str:
    """The text of a page as the browser shows it after its scripts have run."""
    document = server.seen(path, profile)
    return re.sub(r"\s+", " ", re.sub(r"<script.*?</script>|<[^>]+>", " ", document, flags=re.DOTALL))


def graded(released: Course, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Course, dict[str, float]]:
    """A class of two, and their points."""
    shutil.copytree(released.root, folder)
    course = Course(folder)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(course.exercises))
    monkeypatch.setattr(class_kernels, "ALWAYS", ("edl_labs", "numpy"))
    course.submit("ada", course.answered(prose="So."))
    course.submit("bob", course.answered({"area": solve_cell("area", body="return 0")}, prose="So."))
    report = grade(LAB, course=Repository(course.root))
    return course, {row.student: row.points for row in report.rows if row.points is not None}


def test_marks_of_a_class_run_are_listed(released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    course, points = graded(released, tmp_path / "course", monkeypatch)
    with formgrader(course) as server:
        assignments = rendered(server, "manage_assignments", tmp_path / "profile")
        submissions = rendered(server, f"manage_submissions/{LAB}", tmp_path / "profile")

    assert LAB in assignments
    for student in ("ada", "bob"):
        assert re.search(rf"{student}.*?{points[student]:g} / 9", submissions), submissions[-2000:]
    assert {"ada": 7.0, "bob": 5.0} == points


def test_rubric_model_answer_and_saved_comments_stand_right_above_the_essay(
    released: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    course, _ = graded(released, tmp_path / "course", monkeypatch)
    source = course.root / "build" / "source" / LAB / f"{LAB}.ipynb"
    notebook = nbformat.read(source, as_version=4)
    cell_of(notebook, "why_square")["source"] += f"\n\n{RUBRIC_HEAD}\n\n* 1 point: says so.\n* 1 point: derives it."
    nbformat.write(notebook, source)
    (course.root / "feedback.toml").write_text('[why_square]\n1a = "Why so?"\n')
    with formgrader(course) as server:
        one = next(n for n in server.api(f"submitted_notebooks/{LAB}/{LAB}") if n["student"] == "ada")
        page = rendered(server, f"submissions/{one['id']}", tmp_path / "profile")
    above, _, below = page.partition(" So. ")
    notes = above[above.index("For graders only") :]

    order = ("largest when", "Rubric:", "1 point: says so.", "@1a", "Why so?", "1 point: derives it.")
    assert sorted(notes.index(said) for said in order) == [notes.index(said) for said in order]
    assert "check_" not in notes  # no other cell comes in between
    assert "For graders only" not in below
