"""nbgrader's own example assignment, in a course of labs: plain nbgrader's marks, and no hidden test in feedback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbgrader
import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.course.course_folder import Course as CourseFolder
from edl_labs.course.grade.classrun import ClassReport
from edl_labs.course.grade.nbgrader_class import grade_nbgraders
from edl_labs.course.marks.class_report import class_report
from edl_labs.course.marks.collect import collect
from edl_labs.course.marks.export import export
from edl_labs.course.marks.nbgrader_feedback import nbgraders_feedback
from edl_labs.errors import UsageError
from tests.course.course_fixture import Course

pytestmark = pytest.mark.slow
EXAMPLE = Path(nbgrader.__file__).parent / "docs" / "source" / "user_guide"
PS = "ps1"
HIDDEN = "\n### BEGIN HIDDEN TESTS\nassert len('hidden_marker') == 13\n### END HIDDEN TESTS"


def cell_of(notebook: dict[str, Any], grade_id: str) -> dict[str, Any]:
    """The cell that nbgrader calls so."""
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def add_hidden_test(path: Path) -> None:
    """A hidden test that everybody passes, so that marks stay those of the example."""
    notebook = json.loads(path.read_text())
    cell_of(notebook, "correct_squares")["source"].append(HIDDEN)
    path.write_text(json.dumps(notebook))


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> CourseFolder:
    """A course of labs with nbgrader's example assignment and submissions, released."""
    if not (EXAMPLE / "source" / PS / "problem1.ipynb").is_file():
        pytest.skip("this nbgrader comes without its documentation")
    root = tmp_path_factory.mktemp("own") / "course"
    shutil.copytree(EXAMPLE / "source" / PS, root / "build" / "source" / PS)
    add_hidden_test(root / "build" / "source" / PS / "problem1.ipynb")
    for student in ("bitdiddle", "hacker"):
        shutil.copytree(EXAMPLE / "submitted" / student / PS, root / "course" / "submitted" / student / PS)
    (root / "home").mkdir()
    (root / "nbgrader_config.py").write_text(
        "from edl_labs.course.own_course import configure\nc = get_config()\nconfigure(c, __file__)\n"
    )
    Course(root).nbgrader("generate_assignment", PS, "--force")
    return CourseFolder(root)


@pytest.fixture(scope="module")
def graded(course: CourseFolder) -> ClassReport:
    return grade_nbgraders(course, PS)


def plain_marks(folder: Path) -> dict[str, float]:
    """What nbgrader gives in a course of its own."""
    for name in ("source", "submitted"):
        shutil.copytree(EXAMPLE / name, folder / name, ignore=shutil.ignore_patterns("ps1_autotest", "gradebook.db"))
    (folder / "home").mkdir()
    plain = Course(folder)
    plain.nbgrader("generate_assignment", PS, "--force")
    plain.nbgrader("autograde", PS)
    plain.nbgrader("export", "--to=marks.csv")
    lines = (folder / "marks.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    return {row["student_id"]: float(row["score"]) for row in rows if row["assignment"] == PS}


def test_marks_are_those_of_plain_nbgrader_and_are_listed_as_trusting(graded: ClassReport, tmp_path: Path):
    assert plain_marks(tmp_path) == {row.student: row.points for row in graded.rows}
    assert {"trusting"} <= set(graded.rows[0].flags)
    assert 0 == graded.exit_code


def test_nbgraders_own_command_gives_the_same_marks(course: CourseFolder, graded: ClassReport):
    before = {row.student: row.points for row in graded.rows}
    Course(course.root).nbgrader("autograde", PS, "--force")
    export(PS, kind="csv", out=course.root / "out.csv", course=course)
    report, _ = class_report(PS, course=course)

    assert tuple(before.values()) == report.points
    assert all(f"{points:g}" in (course.root / "out.csv").read_text() for points in before.values())


@pytest.mark.usefixtures("graded")
def test_the_command_reports_on_it(course: CourseFolder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(course.root)
    said = CliRunner().invoke(app, ["report", PS])

    assert 0 == said.exit_code, said.output
    assert "2 students" in " ".join(said.output.split())


@pytest.mark.usefixtures("graded")
def test_feedback_shows_released_tests_and_no_output_of_the_run(course: CourseFolder):
    """A submission that prints what it was run with, and the frames above its functions."""
    sly = course.root / "course" / "submitted" / "sly" / PS
    shutil.copytree(course.root / "course" / "submitted" / "bitdiddle" / PS, sly)
    notebook = json.loads((sly / "problem1.ipynb").read_text())
    spy = (
        "import inspect\ndef squares(n):\n    print(In)\n    for frame in inspect.stack():\n"
        "        print(frame.frame.f_locals)\n    return []\n"
    )
    cell_of(notebook, "squares")["source"] = spy
    (sly / "problem1.ipynb").write_text(json.dumps(notebook))
    grade_nbgraders(course, PS, only=["sly"])
    page = (course.root / nbgraders_feedback(PS, course=course, only=["sly"]).pages["sly"]).read_text()
    Course(course.root).nbgrader("generate_feedback", PS, "--student", "sly", "--force")
    nbgraders = (course.path("feedback", student="sly", assignment=PS) / "problem1.html").read_text()
    seen = (course.path("autograded", student="sly", assignment=PS) / "problem1.ipynb").read_text()

    assert "hidden_marker" in seen  # it was printed, and only graders see it
    for text in (page, nbgraders):
        assert "correct_squares" in text
        assert "hidden_marker" not in text
    assert "✗" in page


SQUARES = """
def squares_of(n):
    if n < 1:
        raise ValueError(n)
    return [i ** 2 for i in range(1, n + 1)]
"""


def test_several_notebooks_are_collected_from_one_download_with_what_they_import(course: CourseFolder, tmp_path: Path):
    """jupyter/nbgrader#940: a module of the student's own next to the notebook."""
    handed_in = tmp_path / "mia"
    shutil.copytree(course.root / "labs" / PS, handed_in)
    notebook = json.loads((handed_in / "problem1.ipynb").read_text())
    cell_of(notebook, "squares")["source"] = "from helpers import squares_of as squares"
    (handed_in / "problem1.ipynb").write_text(json.dumps(notebook))
    (handed_in / "helpers.py").write_text(SQUARES)
    row = collect(PS, tmp_path, kind="dir", course=course).rows[0]
    before = json.loads((course.root / "labs" / PS / "problem1.ipynb").read_text())
    tests = [cell_of(before, name) for name in ("correct_squares", "squares_invalid_input")]
    most = sum(cell["metadata"]["nbgrader"]["points"] for cell in tests)
    graded = grade_nbgraders(course, PS, only=["mia"]).row("mia")

    assert ("mia", "new", "") == (row.student, row.state, row.problem)
    assert "modules of the student: helpers.py" in row.remarks
    assert most == graded.points


def test_a_download_without_one_of_the_notebooks_says_which(course: CourseFolder, tmp_path: Path):
    (tmp_path / "tim").mkdir()
    shutil.copy(course.root / "labs" / PS / "problem2.ipynb", tmp_path / "tim")
    row = collect(PS, tmp_path, kind="dir", course=course).rows[0]

    assert ("new", "there is no problem1.ipynb") == (row.state, row.problem)


def test_a_hand_in_that_is_no_notebook_gets_one_sentence(course: CourseFolder):
    bad = course.root / "course" / "submitted" / "bad" / PS
    bad.mkdir(parents=True)
    (bad / "problem1.ipynb").write_text("<<<<<<< HEAD\n=======\n>>>>>>> main\n")
    (bad / "problem2.ipynb").write_text("{}")
    row = grade_nbgraders(course, PS, only=["bad"]).row("bad")

    assert ("unreadable", 1) == (row.state, len(row.remarks))
    assert "Git conflict markers" in row.remarks[0]


def test_other_commands_say_in_one_sentence_that_it_is_no_lab(course: CourseFolder):
    with pytest.raises(UsageError, match="is no"):
        course.assignment(PS)


@pytest.mark.parametrize("option", ["--fresh", "--all-cells", "--gpus=1", "--jobs=2", "--seed=1", "--shard=1/2"])
def test_options_that_mean_nothing_for_it_are_refused(
    course: CourseFolder, option: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(course.root)
    refused = CliRunner().invoke(app, ["grade", PS, option]).exception

    assert f"for {PS}, only the options --only and --json are available" == getattr(refused, "what", None)


def test_a_course_that_does_not_call_edl_labs_is_not_graded_outside_the_sandbox(tmp_path: Path):
    shutil.copytree(EXAMPLE / "source" / PS, tmp_path / "source" / PS)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    with pytest.raises(UsageError, match="not a course of edl_labs") as caught:
        grade_nbgraders(CourseFolder(tmp_path), PS)

    assert f"nbgrader autograde {PS}" in caught.value.next
    done = subprocess.run(
        [sys.executable, "-m", "edl_labs.cli", "grade", PS], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in done.stderr
