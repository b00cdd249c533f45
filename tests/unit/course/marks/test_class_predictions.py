"""A class's predictions: counted from five students on, by no name, from data that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.submission import Submission, parse
from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_predictions import Predicted, class_predictions, predictions_in
from edl_labs.course.marks.class_report import ClassOverview
from edl_labs.ui.predictions import KEPT_AS

RELEASE = [
    KnownCell("code", "a", source, "", {})
    for source in (
        'predict("pan", "Three slices take", unit="min")\npredict("first", "First is", choices=("the loop", "sum"))',
        'predict("row", "Wrong is the row", choices=rows)\npredict("why", "Because")',
        'with reveal_prediction("pan", "first", "row", "why") as truth:\n    truth(pan=180.0)',
    )
]


def notebook(*outputs: Any) -> Submission:
    """A hand-in whose one cell has these outputs."""
    cell = {"cell_type": "code", "id": "c", "source": "1", "metadata": {}, "execution_count": 1, "outputs": outputs}
    return parse(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode())


def kept(*predictions: dict[str, Any], why: Any = "") -> dict[str, Any]:
    data = {"text/plain": "x", KEPT_AS: {"predictions": predictions, "why": why}}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def of(name: str, said: Any, true: Any) -> dict[str, Any]:
    return {"name": name, "said": said, "true": true}


def counted(*said: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """By box, the counts over as many students as there are predictions."""
    students = {f"s{n}": predictions_in(notebook(kept(one))) for n, one in enumerate(said)}
    return {box.name: box.counts for box in class_predictions(RELEASE, students)}


def test_a_number_counts_by_how_far_it_is_off() -> None:
    said = [10.0, 60.0, 120.0, 180.0, 175.0, 200.0, 400.0, -180.0]

    assert {"pan": (3, 1, 2, 1, 1)} == counted(*(of("pan", one, 180.0) for one in said))


def test_a_choice_counts_as_the_choice_or_as_right_where_the_release_computes_the_choices() -> None:
    assert {"first": (3, 1, 1)} == counted(*(of("first", one, "sum") for one in ["the loop"] * 3 + ["sum", "<b>"]))
    assert {"row": (2, 3)} == counted(*(of("row", one, "SATA") for one in ["SATA"] * 2 + ["PCIe"] * 3))


@pytest.mark.parametrize(("students", "boxes"), [(4, []), (5, ["pan"])])
def test_of_fewer_than_five_students_nothing_is_counted(students: int, boxes: list[str]) -> None:
    assert boxes == list(counted(*[of("pan", 180.0, 180.0)] * students))


def test_the_last_prediction_counts_and_a_reason_is_counted_alone() -> None:
    twice = notebook(kept(of("pan", 1.0, 180.0)), kept(of("pan", 2.0, 180.0), why="Ann says: two at a time"))
    (box,) = class_predictions(RELEASE, dict.fromkeys("abcde", predictions_in(twice)))

    assert {"pan": Predicted(2.0, 180.0, explained=True)} == predictions_in(twice)
    assert (5, "Three slices take") == (box.explained, box.question)
    assert "Ann" not in box.to_json()


HOSTILE = [
    {"output_type": "display_data", "data": {KEPT_AS: "text"}, "metadata": {}},
    {"output_type": "display_data", "data": {KEPT_AS: {"predictions": 3}}, "metadata": {}},
    {"output_type": "display_data", "data": {KEPT_AS: [[]] * 3000}, "metadata": {}},
    {"output_type": "stream", "name": "stdout", "text": KEPT_AS},
    {"output_type": "display_data", "data": KEPT_AS},
    kept(of("pan", [1], 2)),
    kept(of("pan", True, 2.0)),
    kept(of("pan", "1", 2.0)),
    kept(of("pan", 1.0, None)),
    kept(of("x" * 301, 1.0, 1.0)),
    kept(of("pan", 1.0, 1.0), why="x" * 301),
    kept(*[of("pan", 1.0, 1.0)] * 1000),
]


@pytest.mark.parametrize("output", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_prediction_is_left_out(output: dict[str, Any]) -> None:
    assert {} == predictions_in(notebook(output))


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity", "[" * 9000])
def test_numbers_that_are_none_are_left_out(number: str) -> None:
    outputs = json.dumps([kept(of("pan", "NUMBER", 1.0))]).replace('"NUMBER"', number).encode()
    submission = notebook(kept(of("pan", 1.0, 1.0)))
    cell = type(submission.cells[0])("code", "c", "", outputs=outputs)

    assert {} == predictions_in(Submission((cell,)))


def test_a_box_that_the_release_does_not_have_and_an_answer_of_another_kind_count_nowhere() -> None:
    assert {} == counted(*[of("<script>", 1.0, 1.0)] * 5)
    assert {} == counted(*[of("pan", "soon", "later")] * 5)
    assert {} == counted(*[of("first", 1.0, 1.0)] * 5)


def test_the_page_shows_counts_and_no_name(tmp_path: Path) -> None:
    students = {name: predictions_in(notebook(kept(of("pan", 60.0, 180.0), why="oops"))) for name in "abcde"}
    report = ClassOverview("lab90", 5, (), 9.0, (), (), (), (), predictions=class_predictions(RELEASE, students))
    write_report(report, {}, tmp_path / "class.html")
    page = (tmp_path / "class.html").read_text()

    assert "Three slices take …: 5 students, 5 explained why they were off" in page
    assert "under half: 5, too little: 0" in page
    assert "oops" not in page
