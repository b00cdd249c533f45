"""Exercises of a lab are found in its folder or in its module, in their order, and belong to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.checks.lab_exercises import find, forget, lab_names, load_lab
from edl_labs.errors import EdlError, UsageError

TOPIC = """
from edl_labs.checks import Case, Exercise, exercise
{imports}

class Form(Exercise):
    answers = "all"

    def cases(self, rng):
        return [Case(given={{"x": {cases}}})]

    def probe(self, student, given):
        return given

    def compare(self, case, got, want): ...


@exercise("{name}")
class {cls}(Form):
    'About {name}.'
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of its own whose lab92_folder has two topics and something that they share."""
    lab = tmp_path / "exercises" / "lab92_folder"
    lab.mkdir(parents=True)
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(lab.parent))
    (lab / "shared.py").write_text("CASE = 5\n")
    write(lab, "first", "Alpha", imports="from .shared import CASE", cases="CASE")
    write(lab, "second", "Beta", imports="from edl_labs.exercises.lab92_folder.shared import CASE", cases="CASE")
    (lab / "__init__.py").write_text(
        "from .first import Alpha\n"
        "from edl_labs.exercises.lab92_folder.second import Beta\n\n"
        "EXERCISES = (Beta, Alpha)\n"
    )
    yield lab
    forget("lab92_folder")


def write(lab: Path, name: str, cls: str, *, imports: str = "", cases: str = "1") -> None:
    (lab / f"{name}.py").write_text(TOPIC.format(name=name, cls=cls, imports=imports, cases=cases))


def test_a_folder_lists_its_exercises_in_order(folder):
    assert ["second", "first"] == [e.name for e in load_lab("lab92_folder")]
    assert {"lab92_folder"} == {e.lab for e in load_lab("lab92_folder")}
    assert ["lab92_folder"] == lab_names()
    assert "first" == find("first").name


def test_topics_may_import_one_another_relatively_and_by_their_whole_name(folder):
    assert [[{"x": 5}], [{"x": 5}]] == [e.draw_cases(1) for e in load_lab("lab92_folder")]


def test_a_folder_without_a_list_keeps_the_order_of_its_imports(folder):
    (folder / "__init__.py").write_text("from . import first, second\n")

    assert ["first", "second"] == [e.name for e in load_lab("lab92_folder")]


def test_an_exercise_that_the_list_lacks_is_refused(folder):
    (folder / "__init__.py").write_text("from .first import Alpha\nfrom .second import Beta\n\nEXERCISES = (Beta,)\n")

    with pytest.raises(EdlError, match="EXERCISES of lab92_folder lacks first"):
        load_lab("lab92_folder")


def test_what_was_forgotten_is_read_anew_with_all_its_topics(folder):
    load_lab("lab92_folder")
    (folder / "shared.py").write_text("CASE = 12345\n")

    forget("lab92_folder")

    assert [[{"x": 12345}], [{"x": 12345}]] == [e.draw_cases(1) for e in load_lab("lab92_folder")]


def test_a_flat_module_is_a_lab_too(folder):
    write(folder.parent, "lab91_flat", "Flat")

    assert ["lab91_flat", "lab92_folder"] == lab_names()
    assert [("lab91_flat", "lab91_flat")] == [(e.name, e.lab) for e in load_lab("lab91_flat")]


def test_the_packages_own_labs_come_back_after_another_course(folder, monkeypatch):
    (folder.parent / "lab01_gpu_basics.py").write_text(TOPIC.format(name="own", cls="Own", imports="", cases="1"))
    assert ["own"] == [e.name for e in load_lab("lab01_gpu_basics")]

    monkeypatch.delenv("EDL_LABS_EXERCISES")

    assert "finish_times" == load_lab("lab01_gpu_basics")[0].name


def test_a_folder_without_an_init_is_no_lab(folder):
    (folder.parent / "lab94_data").mkdir()

    assert ["lab92_folder"] == lab_names()
    with pytest.raises(UsageError, match="no exercises for lab94_data"):
        load_lab("lab94_data")
