"""The report on a class: whose notebook reaches for the exercises' own modules, and which hints stand in it."""

from __future__ import annotations

import json

import pytest

from edl_labs.checks.outcome_display import Hint
from edl_labs.cli import instructors
from edl_labs.course.grade.submission import Submission, SubmittedCell
from edl_labs.course.marks.class_report import ExerciseOverview, _facts, imports_exercises, shown_hints


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from edl_labs.exercises.lab02_roofline import layer_diagnosis", True),
        ("import edl_labs.exercises.lab01_gpu_basics.judge as j", True),
        ("from edl_labs import check, exercises", True),
        ("importlib.import_module('edl_labs.exercises')", True),
        ("import edl_labs\nedl_labs . exercises", True),
        ("from edl_labs import check\n# the exercises of this lab", False),
        ("from edl_labs.roofline import bound", False),
    ],
)
def test_a_notebook_that_names_the_exercises_modules_is_seen(source, expected) -> None:
    assert expected == imports_exercises(source)


def shown(name: str, number: int, *, total: int = 3, lines: bool = False) -> SubmittedCell:
    """A cell below which a hint stands, as Jupyter saves it."""
    text = repr(Hint(name, number, total, "Look at the first call."))
    data = {"text/plain": [text] if lines else text, "text/html": f"<b>Hint {number} of {total}</b>"}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return SubmittedCell("code", "c", f'hint("{name}")', outputs=json.dumps([output]).encode())


def test_the_furthest_hint_that_stands_in_a_notebook_counts():
    cells = (shown("honest_timer", 1), shown("honest_timer", 3, lines=True), shown("honest_timer", 2), shown("ring", 1))

    assert {"honest_timer": 3, "ring": 1} == shown_hints(Submission(cells))


def test_no_output_and_other_text_show_no_hint():
    asked = SubmittedCell("code", "c", 'hint("honest_timer")')
    said = SubmittedCell("code", "d", "", outputs=b'[{"text": "a hint 2 of 3 for you: \xff"}]')

    assert {} == shown_hints(Submission((asked, said, shown("ring", 1, total=0))))


def test_the_page_says_in_how_many_notebooks_hints_stand():
    assert "hints stand in 3 notebooks, 2 of them as a median" in _facts(
        ExerciseOverview("ring", 2.0, (1.0,), hints=(1, 2, 3))
    )
    assert "hint" not in _facts(ExerciseOverview("ring", 2.0, (1.0,)))


@pytest.mark.parametrize(
    ("points", "shares", "said"), [(2.0, (1.0, 0.5), "75%"), (2.0, (0.0,), "0%"), (2.0, (), "–"), (0.0, (), "practice")]
)
def test_the_table_says_no_mean_where_there_is_none(points: float, shares: tuple[float, ...], said: str) -> None:
    assert said == instructors._mean(ExerciseOverview("one", points, shares))
