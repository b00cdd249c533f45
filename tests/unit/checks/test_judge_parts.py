"""Cases that a lab's judge/ draws: found where it is installed, said where it is not, and unseen by students."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from edl_labs.checks import case_source
from edl_labs.checks.lab_exercises import forget, load_lab
from edl_labs.course.assignment import _exercise_files
from edl_labs.course.grade.grader import Grader
from edl_labs.errors import EdlError
from tests.unit import house

ROOT = Path(__file__).resolve().parents[3]
LAB = "lab95_judged"
TOPIC = """
from edl_labs.checks import Exercise, exercise

LOW = 3

@exercise("drawn")
class Drawn(Exercise):
    'Drawn by the judge.'

    answers = "all"

    def probe(self, student, given): return given
    def compare(self, case, got, want): ...
"""
DRAWING = """
from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab95_judged.topic import LOW

@case_source("drawn")
def cases(rng):
    return [Case(given={{"x": LOW}}), Case(given={{"x": {added}}})]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of its own with a lab whose judge/ draws the cases of its one exercise."""
    lab = tmp_path / "exercises" / LAB
    (lab / "judge").mkdir(parents=True)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(lab.parent))
    (lab / "topic.py").write_text(TOPIC)
    (lab / "__init__.py").write_text("from .topic import Drawn\n\nEXERCISES = (Drawn,)\n")
    (lab / "judge" / "__init__.py").write_text("from . import draws_of_topic\n")
    (lab / "judge" / "draws_of_topic.py").write_text(DRAWING.format(added="4"))
    forget(LAB)
    yield lab
    forget(LAB)


def remove_judge(lab: Path) -> None:
    for path in (lab / "judge").rglob("*.py"):
        path.unlink()
    (lab / "judge").rename(lab / "elsewhere")


def test_cases_come_from_the_judges_part(folder):
    (drawn,) = load_lab(LAB)

    assert [{"x": 3}, {"x": 4}] == drawn.draw_cases(1)


def test_the_judges_part_is_imported_for_drawing_alone(folder):
    (drawn,) = load_lab(LAB)
    assert f"edl_labs.exercises.{LAB}.judge" not in sys.modules

    drawn.draw_cases(1)

    assert f"edl_labs.exercises.{LAB}.judge" in sys.modules


def test_a_forgotten_lab_draws_anew(folder):
    load_lab(LAB)[0].draw_cases(1)
    (folder / "judge" / "draws_of_topic.py").write_text(DRAWING.format(added="12345"))

    forget(LAB)

    assert [{"x": 3}, {"x": 12345}] == load_lab(LAB)[0].draw_cases(1)


def test_a_lab_that_lost_its_judges_part_keeps_no_draw(folder):
    load_lab(LAB)[0].draw_cases(1)
    remove_judge(folder)
    forget(LAB)

    with pytest.raises(EdlError) as raised:
        load_lab(LAB)[0].draw_cases(1)

    assert "the secret cases of drawn are not in this install" == raised.value.what
    assert "edl-labs wheel --judge" in raised.value.next


def test_grading_without_the_judges_part_says_so_before_anything_starts(folder):
    remove_judge(folder)
    assignment = SimpleNamespace(exercises=tuple(load_lab(LAB)))

    with pytest.raises(EdlError, match="the secret cases of drawn are not in this install"):
        Grader(None, assignment)


def test_a_flat_module_without_cases_is_told_the_same(folder):
    (folder.parent / "lab96_flat.py").write_text(TOPIC.replace('"drawn"', '"flat"'))

    with pytest.raises(EdlError, match="the secret cases of flat are not in this install"):
        load_lab("lab96_flat")[0].draw_cases(1)

    forget("lab96_flat")


def test_an_import_that_fails_inside_the_judges_part_is_not_hidden(folder):
    (folder / "judge" / "draws_of_topic.py").write_text("import no_such_module_at_all\n")

    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        load_lab(LAB)[0].draw_cases(1)


def test_a_spec_with_cases_of_its_own_needs_no_judge(folder):
    text = TOPIC.replace("    def probe", "    def cases(self, rng): return [Case(given={'x': 7})]\n    def probe")
    text = text.replace("import Exercise", "import Case, Exercise")
    (folder / "topic.py").write_text(text)

    assert [{"x": 7}] == load_lab(LAB)[0].draw_cases(1)


def test_two_functions_cannot_draw_one_exercise(folder):
    load_lab(LAB)[0].draw_cases(1)

    with pytest.raises(EdlError, match=f"both .*{LAB}.* draw the cases of drawn"):

        @case_source("drawn")
        def other(rng):
            return [1]


def test_no_module_that_students_have_imports_a_judges_part():
    modules = house.read_package(ROOT)
    judges = {name for name in modules if ".judge" in name and name.startswith("edl_labs.exercises.")}

    assert judges
    assert [] == [m.name for m in modules.values() if m.name not in judges and m.imports & judges]


def test_a_students_kernel_gets_another_courses_exercises_without_the_judges_part(folder):
    files = _exercise_files()

    assert {f".edl/exercises/{LAB}/__init__.py", f".edl/exercises/{LAB}/topic.py"} == set(files)
