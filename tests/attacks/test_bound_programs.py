"""Programs belong to their case: a changed object or record, before or after the work, earns nothing."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks import Outcome, RegisteredExercise, judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.probe_process import run_cell
from edl_labs.checks.spec import given_halves
from edl_labs.course.lab.source import parse

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
CHANGED = "the program was changed"
_RUN = ("setup", "parameters", "given", "solve")


@dataclass(frozen=True)
class Forgery:
    """Code that replaces the function of an exercise, and the sentence with which it is refused."""

    lab: str
    exercise: str
    name: str
    code: str
    told: str = CHANGED


FORGERIES = [
    Forgery(**one)
    for one in tomllib.loads(Path(__file__).with_name("forgeries.toml").read_text(encoding="utf-8"))["forgery"]
]


@pytest.fixture(autouse=True)
def _own_exercises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)


@cache
def solved(lab: str) -> dict[str, Any]:
    """The names of a lab's solution."""
    names: dict[str, Any] = {}
    for cell in parse((SOLUTIONS / lab / f"{lab}.py").read_text(encoding="utf-8"), file=lab):
        if cell.role in _RUN:
            run_cell(cell.label, cell.source, names)
    return names


@cache
def drawn(lab: str, name: str) -> tuple[RegisteredExercise, list[Any], list[Any]]:
    """An exercise, its cases of one seed, and what the solution gives."""
    exercise = next(one for one in load_lab(lab) if one.name == name)
    cases = exercise.draw_cases(1)
    return exercise, cases, [record["value"] for record in collect(exercise, dict(solved(lab)), given_halves(cases))]


def outcome(forgery: Forgery) -> Outcome:
    """What a forgery is judged as, of 1 point."""
    os.environ.pop("EDL_LABS_EXERCISES", None)
    exercise, cases, want = drawn(forgery.lab, forgery.exercise)
    names = dict(solved(forgery.lab))
    exec(compile(forgery.code, forgery.name, "exec"), names)
    return judge(exercise, cases, collect(exercise, names, given_halves(cases)), want, points=1)


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: f"{one.exercise}: {one.name}")
def test_a_forged_program_earns_nothing(forgery: Forgery) -> None:
    found = outcome(forgery)

    assert (0.0, forgery.told) == (found.points, found.what), found.why
