"""Run as a program: the public facts of a fixture lab, from its exercises and its solution's cells, as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from edl_labs.checks import RegisteredExercise, plain_data
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import given_halves, plain_cases


def facts(lab: str, cells: list[str], points: dict[str, float]) -> dict[str, Any]:
    """What `edl_labs.checks.lab_facts.facts` reads."""
    names: dict[str, Any] = {}
    for cell in cells:
        exec(cell, names)
    known = {e.name: e for e in load_lab(lab)}
    exercises = [_row(name, known.get(name), most) for name, most in points.items()]
    goldens = {name: _golden(e, names) for name, e in known.items()}
    head = {"schema": 2, "lab": lab, "title": "Shapes", "minutes": 10, "locked": {}}
    return {**head, "exercises": exercises, "goldens": goldens}


def _row(name: str, known: RegisteredExercise | None, points: float) -> dict[str, Any]:
    row = {"name": name, "kind": "code" if known else "explain", "points": points, "hints": ["a", "b"]}
    return {**row, "uses": list(known.uses) if known else [], "trusting": bool(known and known.trusting)}


def _golden(exercise: RegisteredExercise, names: dict[str, Any]) -> dict[str, Any]:
    cases = exercise.draw_cases(1)
    wants = [record["value"] for record in collect(exercise, names, given_halves(cases))]
    return {"seed": 1, "cases": plain_data.to_json(plain_cases(cases)), "wants": plain_data.to_json(wants)}


if __name__ == "__main__":
    print(json.dumps(facts(*json.load(sys.stdin))))
