"""What a box asks for is read from the source, and a text that gives its answer away is found before its reveal."""

from __future__ import annotations

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.prediction_boxes import PredictionBox, prediction_boxes
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.source import Cell
from edl_labs.errors import SourceError
from tests.unit.course.lab import kit

BOX = '# %%\npredict("pan", "The pan is full after", choices=["3 minutes", "4 minutes"])\n\n'
REVEAL = '# %%\nwith reveal_prediction("pan") as truth:\n    truth("3 minutes")\n\n'
AFTER = "# %% [markdown]\n# It takes 3\n# minutes.\n\n"
TOML = kit.TOML.replace("[[exercise]]", '[gives_away]\npan = ["3 minutes"]\n\n[[exercise]]', 1)


def lab_with(course: Course, cells: str) -> None:
    folder = course.solutions / kit.LAB
    text = kit.SOURCE.replace("# %%\nprint(size)", f"{cells}# %%\nprint(size)")
    (folder / f"{kit.LAB}.py").write_text(text, encoding="utf-8")
    (folder / "lab.toml").write_text(TOML, encoding="utf-8")
    read_lab(course, kit.LAB)


def code(source: str) -> Cell:
    return Cell(None, None, "code", source, 1, 1, "lab.py")


def test_a_box_is_what_its_call_says() -> None:
    cells = [
        code('predict("pan", "It takes", unit="min")\npredict("why", "Because")\npredict(name, "Nobody knows")'),
        code(
            'asked = ("pan", "why")\n'
            'with requires_solution("x"), reveal_prediction(*asked) as truth:\n    truth(pan=1.0)'
        ),
        code("%matplotlib inline"),
    ]

    assert {
        "pan": PredictionBox("pan", "It takes", "min", (), 0, 1),
        "why": PredictionBox("why", "Because", "", (), 0, 1),
    } == prediction_boxes(cells)


def test_an_answer_below_the_first_prose_after_its_reveal_is_no_fault(course: Course) -> None:
    lab_with(course, BOX + REVEAL + "# %% [markdown]\n# Next.\n\n" + AFTER)


@pytest.mark.parametrize(("cells", "line"), [(BOX + AFTER + REVEAL, 35), (BOX + REVEAL + AFTER, 39)])
def test_an_answer_beside_a_hidden_one_is_refused_wherever_its_lines_break(
    course: Course, cells: str, line: int
) -> None:
    with pytest.raises(SourceError, match="the answer of the box pan is given away") as refused:
        lab_with(course, cells)

    assert "'3 minutes' is visible here" in refused.value.why
    assert line == refused.value.line
