"""The report on a class: whose notebook reaches for the exercises' own modules."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.class_report import imports_exercises


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
