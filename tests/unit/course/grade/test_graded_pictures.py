"""Grading draws no figures: the graded notebook shows those that were handed in, where a cell made some."""

from __future__ import annotations

import json
from typing import Any

from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell
from edl_labs.course.grade.run_record import ProbedRun

PNG = "iVBORw0KGgo="
FIGURE = {"output_type": "display_data", "data": {"text/plain": "<Figure size 640x480 with 1 Axes>"}, "metadata": {}}
SAID = {"output_type": "stream", "name": "stdout", "text": "3 launches\n"}


def picture(data: str = PNG) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"image/png": data, "text/plain": "<Figure>"}, "metadata": {}}


def outputs(graded: list[dict[str, Any]], handed_in: list[dict[str, Any]]) -> list[str]:
    """What the graded notebook shows of a cell, each output in a word or by its text."""
    cell = PlannedCell("code", "plot()", runs=True, outputs=json.dumps(handed_in).encode())
    run = ProbedRun(outputs={0: graded})
    made = graded_notebook(Assignment("lab", (), (), {}, {}, False), MarkingPlan((cell,), ()), run)
    shown = made["cells"][0]["outputs"]
    return [one.get("text") or ("picture" if "image/png" in one["data"] else "text") for one in shown]


def test_a_figure_is_shown_as_it_was_handed_in():
    head, said, shown = outputs([SAID, FIGURE], [picture(), SAID])

    assert "figures are not drawn during grading" in head
    assert ("3 launches\n", "picture") == (said, shown)


def test_without_one_that_was_handed_in_a_figure_is_named():
    assert ["picture", "[a figure]\n"] == outputs([FIGURE, FIGURE], [SAID, picture()])[1:]


def test_cells_without_figures_show_what_they_gave_in_grading():
    assert ["3 launches\n"] == outputs([SAID], [picture()])
