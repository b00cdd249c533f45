"""`new`: what it writes builds and is proved at once, and a refusal changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from edl_labs.course.course_folder import Course
from edl_labs.course.lab import scaffold
from edl_labs.course.lab.build import build
from edl_labs.course.lab.prove import prove
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.scaffold import new
from edl_labs.errors import UsageError
from tests.sampling import few
from tests.unit.course.lab import kit

PYPROJECT = Path(__file__).resolve().parents[4] / "pyproject.toml"


def files(course: Course) -> dict[str, bytes]:
    """Every file of a course."""
    made = ("__pycache__", "stamps.json")
    kept = [p for p in sorted(course.root.rglob("*")) if p.is_file() and not {*made} & {*p.parts}]
    return {course.shown(p): p.read_bytes() for p in kept}


def test_a_new_lab_is_built_and_proved_at_once(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    course = Course(tmp_path)

    report = new(course, "lab07_medians")

    proof = prove(course, "lab07_medians", seeds=3)
    assert [] == proof.problems
    assert ["medians_first"] == [one.name for one in proof.exercises]
    assert 4 == len(report.written)
    assert build(course, check=True).ok


def test_a_new_exercise_is_in_all_five_places_and_proved_at_once(built: Course) -> None:
    new(built, kit.LAB, "step_time")

    proof = prove(built, kit.LAB, seeds=3)
    assert [] == proof.problems
    assert ["doubled_time", "why_twice", "step_time"] == [one.name for one in proof.exercises]
    assert 2 == len(proof.exercises[2].mistakes)
    assert build(built, check=True).ok


def with_minutes(course: Course) -> Course:
    """The fixture's course, its exercises with minutes of their own, whose sum the first cell says."""
    path = kit.toml(course)
    path.write_text(path.read_text().replace("points = 2\n", "points = 2\nminutes = 18\n"))
    path.write_text(path.read_text().replace("points = 3\n", "points = 3\nminutes = 12\n"))
    return course


@pytest.mark.parametrize(("kind", "own", "whole"), [("function", 10, 40), ("explain", 12, 42)])
def test_a_new_exercise_of_a_lab_with_minutes_has_its_own(built: Course, kind: str, own: int, whole: int) -> None:
    report = new(with_minutes(built), kit.LAB, "step_time", kind=kind)

    lab = read_lab(built, kit.LAB)
    assert own == report.minutes
    assert [18, 12, own] == [one.minutes for one in lab.exercises]
    assert whole == lab.minutes
    assert f"About {whole} minutes." in lab.cells[0].source
    assert build(built, check=True).ok


def test_minutes_are_found_where_the_text_breaks_a_line(built: Course) -> None:
    path = kit.source(with_minutes(built))
    path.write_text(
        path.read_text().replace("About 30 minutes.", "Section 3 takes 5 min, all of it **30\n# minutes**.")
    )

    new(built, kit.LAB, "step_time")

    assert "# Section 3 takes 5 min, all of it **40\n# minutes**." in path.read_text()


def test_a_lab_whose_exercises_have_no_minutes_takes_as_long_as_before(built: Course) -> None:
    assert 0 == new(built, kit.LAB, "step_time").minutes
    assert 30 == read_lab(built, kit.LAB).minutes


@pytest.mark.slow
def test_programs_on_virtual_machines_and_a_question_are_proved_at_once(built: Course) -> None:
    new(built, kit.LAB, "full_queue", kind="gpu")
    new(built, kit.LAB, "hidden_sums", kind="cluster")
    new(built, kit.LAB, "why_queue", kind="explain")
    proof = prove(built, kit.LAB, exercises=["full_queue", "hidden_sums", "why_queue"], seeds=3)

    assert [] == proof.problems
    assert [("full_queue", "code", 2), ("hidden_sums", "code", 2), ("why_queue", "explain", 0)] == [
        (one.name, one.kind, len(one.mistakes)) for one in proof.exercises
    ]
    assert build(built, check=True).ok


@pytest.mark.parametrize(("kind", "said"), [("quiz", "no kind 'quiz'"), ("", "no kind")])
def test_a_kind_that_there_is_not_is_refused(built: Course, kind: str, said: str) -> None:
    before = files(built)

    with pytest.raises(UsageError, match=said):
        new(built, kit.LAB, "step_time", kind=kind)
    with pytest.raises(UsageError, match="the first exercise of a lab must be answered in code"):
        new(built, "lab81_other", kind="explain")
    assert before == files(built)


@pytest.mark.slow
def test_a_new_exercise_of_a_folder_is_a_module_that_the_folder_lists(built: Course) -> None:
    folder = kit.as_folder(built)

    new(built, kit.LAB, "step_time")

    assert [] == prove(built, kit.LAB, seeds=3).problems
    assert kit.EXERCISES == (folder / "doubling_time.py").read_text()
    assert "EXERCISES = (DoubledTime,\n    StepTime,\n)\n" in (folder / "__init__.py").read_text()
    assert build(built, check=True).ok


def test_a_new_exercise_leaves_what_was_there_byte_for_byte(built: Course) -> None:
    new(built, kit.LAB, "step_time")

    assert kit.source(built).read_text().startswith(kit.SOURCE)
    assert kit.toml(built).read_text().startswith(kit.TOML)


def test_a_new_exercise_comes_before_the_closing_progress(built: Course) -> None:
    path = kit.source(built)
    path.write_text(path.read_text() + '\n# %% [markdown]\n# ## Where you are\n\n# %%\nProgress("lab80_doubling")\n')

    new(built, kit.LAB, "step_time")

    text = path.read_text()
    assert text.index('check("step_time")') < text.index("## Where you are") < text.index("Progress(")


def test_a_new_lab_passes_lint_and_format(tmp_path: Path) -> None:
    (tmp_path / "solutions").mkdir()
    new(Course(tmp_path), "lab07_a_rather_long_name_of_a_lab_about_medians")
    (tmp_path / "pyproject.toml").write_bytes(PYPROJECT.read_bytes())
    (tmp_path / "solutions" / "ruff.toml").write_bytes((PYPROJECT.parent / "solutions" / "ruff.toml").read_bytes())

    for arguments in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True
        )

        assert (0, "") == (done.returncode, done.stderr), done.stdout


@pytest.mark.parametrize(
    "name", few(["lab7_x", "../lab07_x", "", "medians", "lab07", "lab07-x", "lab07_X", "lab07_x/y"], quick=3)
)
def test_a_bad_name_of_a_lab_is_refused(built: Course, name: str) -> None:
    before = files(built)

    with pytest.raises(UsageError, match="is not a lab's name"):
        new(built, name)
    assert before == files(built)


@pytest.mark.parametrize(
    "name", few(["step-time", "class", "sum", "Step", "1step", "", "match", "check", "x" * 41], quick=3)
)
def test_a_bad_name_of_an_exercise_is_refused(built: Course, name: str) -> None:
    before = files(built)

    with pytest.raises(UsageError, match="is not an exercise's name"):
        new(built, kit.LAB, name)
    assert before == files(built)


def test_a_lab_that_exists_is_refused(built: Course) -> None:
    with pytest.raises(UsageError, match=f"{kit.LAB} already exists") as caught:
        new(built, kit.LAB)
    assert f"to add an exercise to it, run edl-labs new {kit.LAB} EXERCISE" == caught.value.next


@pytest.mark.parametrize("lab", [kit.LAB, "lab81_other"])
def test_an_exercise_that_exists_anywhere_is_refused(built: Course, lab: str) -> None:
    with pytest.raises(UsageError, match="an exercise called why_twice already exists"):
        new(built, lab, "why_twice")


def test_a_lab_that_does_not_build_afterwards_is_taken_back(built: Course) -> None:
    (built.labs / "notes.txt").write_text("in the way")
    before = files(built)

    with pytest.raises(Exception, match=r"notes\.txt"):
        new(built, "lab81_other")
    assert before == files(built)
    assert not (built.solutions / "lab81_other").exists()


def test_a_template_with_a_forgotten_value_cannot_be_written() -> None:
    with pytest.raises(UndefinedError, match="name"):
        scaffold._filled("function/class.py", class_name="X")
