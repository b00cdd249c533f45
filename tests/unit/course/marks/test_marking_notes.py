"""What graders have at hand: read from nbgrader's source, shown in formgrader alone; saved comments are spelt out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from nbformat import from_dict
from nbformat.v4 import new_markdown_cell, new_notebook
from traitlets.config import Config

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.source_notebook import RUBRIC_HEAD
from edl_labs.course.marks.marking_notes import marking_notes, saved_comments
from edl_labs.course.marks.nbgrader_plugins import NotesForGraders
from edl_labs.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[4]
ANSWER = {"nbgrader": {"grade": True, "solution": True, "grade_id": "why"}}
SOURCE = f"Because it is.\n\n{RUBRIC_HEAD}\n\n* 1 point: says so.\n* 1 point: derives it."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    folder = tmp_path / "build" / "source" / "lab01_mine"
    folder.mkdir(parents=True)
    cell = new_markdown_cell(SOURCE, metadata=ANSWER)
    (folder / "lab01_mine.ipynb").write_text(json.dumps(new_notebook(cells=[cell])))
    (tmp_path / "feedback.toml").write_text('[why]\n1a = "Say why."\n')
    return tmp_path


def shown(root: Path, resources: dict[str, str]) -> str:
    """The page's cells, as formgrader's exporter would get them."""
    config = Config(Course(root).config)
    graded = from_dict(new_notebook(cells=[new_markdown_cell("Mine.", metadata=ANSWER)]))
    made, _ = NotesForGraders(config=config).preprocess(graded, resources)
    return "\n".join(cell.source for cell in made.cells)


def test_graders_see_model_answer_rubric_and_saved_comments_above_the_answer(root: Path):
    page = shown(root, {"submission_id": "1", "assignment_id": "lab01_mine"})

    assert page.index("Because it is.") < page.index("1 point: derives it.") < page.index("Mine.")
    assert "`@1a` Say why." in page


def test_a_saved_comment_stands_below_the_line_of_the_rubric_that_its_key_begins_with(root: Path):
    (root / "feedback.toml").write_text('[why]\n2a = "From what?"\n1a = "Say why."\ngood = "Well argued."\n')
    page = shown(root, {"submission_id": "1", "assignment_id": "lab01_mine"})
    order = ("1. 1 point: says so.", "`@1a`", "2. 1 point: derives it.", "`@2a`", "whole answer", "`@good`", "Mine.")

    assert sorted(page.index(said) for said in order) == [page.index(said) for said in order]


def test_every_other_page_has_none_of_it(root: Path):
    assert "Mine." == shown(root, {"assignment_id": "lab01_mine"})


def test_the_notes_are_read_line_by_line_and_a_lab_without_source_has_none(root: Path):
    course = Course(root)

    assert ("1 point: says so.", "1 point: derives it.") == marking_notes(course, "lab01_mine")["why"].rubric
    assert {} == marking_notes(course, "lab02_other")


def test_saved_comments_of_a_wrong_form_are_refused_with_the_place(root: Path):
    (root / "feedback.toml").write_text("why = 3\n")
    with pytest.raises(UsageError, match="why must be a table of texts"):
        saved_comments(root)
