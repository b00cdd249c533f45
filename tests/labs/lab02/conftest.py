"""The solution's names of lab02_roofline, and a way to judge a function in an exercise's place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import Exercise, Outcome, judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.course.lab.source import parse

LAB = "lab02_roofline"
SOURCE = Path(__file__).resolve().parents[3] / "solutions" / LAB / f"{LAB}.py"


@pytest.fixture(scope="module")
def solution() -> dict[str, Any]:
    """The names that the solution notebook defines, from its set-up, parameters, given and solve cells."""
    names: dict[str, Any] = {}
    for cell in parse(SOURCE.read_text(encoding="utf-8"), file=SOURCE.name):
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    return names


@pytest.fixture(scope="module")
def exercises() -> dict[str, Exercise]:
    """The lab's exercises by name."""
    return {exercise.name: exercise for exercise in load_lab(LAB)}


@pytest.fixture(scope="module")
def judged(solution, exercises) -> Callable[..., Outcome]:
    """`judged("name", seed=1, function=...)`: the outcome (of 1 point) with names of the solution replaced."""

    def judged(name: str, *, seed: int = 1, **replaced: Any) -> Outcome:
        exercise = exercises[name]
        cases = exercise.draw_cases(seed)
        want = [record["value"] for record in collect(exercise, dict(solution), cases)]
        return judge(exercise, cases, collect(exercise, {**solution, **replaced}, cases), want, points=1)

    return judged
