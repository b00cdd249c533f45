"""Forged evidence and changed objects earn nothing: every exercise in the long run, a drawn one every day.

`edl-labs test LAB --forge` tries more; "Forged evidence" in benchmarks/README.md has what it found.
"""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.forge import LabForgery, forge

COURSE = Course(Path(__file__).parents[2])
MOST = 12  # lies of each kind a wrong answer; together the wrong answers of an exercise try some hundred
FEW = 3  # of the drawn exercise: 2 to 20 s of CPU
# Of each machine whose programs are evidence, and of claims beside answers, those that take least time.
DRAWN = (
    ("lab01_gpu_basics", "honest_timer"),
    ("lab04_data_pipelines", "pack_sequences"),
    ("lab05_profiling", "most_to_gain"),
    ("lab06_memory", "place_checkpoints"),
    ("lab07_many_gpus", "ring"),
    ("lab07b_models_that_do_not_fit", "split_a_block"),
    ("lab08c_compilers", "autotuner"),
    ("lab09_inference", "calibrate"),
    ("lab09b_serving", "streams"),
)


def gains(found: LabForgery) -> list[str]:
    """What lies earned, where the exercise does not say itself that it trusts its student."""
    return [str(gain) for one in found.exercises if not one.ok for gain in one.gains]


@pytest.mark.slow
@pytest.mark.parametrize("lab", COURSE.lab_names())
def test_no_lie_earns_a_point(lab: str) -> None:
    assert [] == gains(forge(COURSE, lab, most=MOST))


def test_no_lie_earns_a_point_in_an_exercise_drawn_today() -> None:
    lab, exercise = random.Random(date.today().toordinal()).choice(DRAWN)

    found = forge(COURSE, lab, exercises=[exercise], most=FEW)

    assert [] == gains(found)
    assert found.exercises[0].replacements + found.exercises[0].changes
