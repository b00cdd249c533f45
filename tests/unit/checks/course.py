"""A small course in a temporary folder, for tests of the engine."""

from __future__ import annotations

import json
from pathlib import Path

from edl_labs.checks import plain_data
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.checks.spec import plain_cases

EXERCISES = '''
from edl_labs.checks import Case, Exercise, Wrong, close, exercise

@exercise("double")
class Double(Exercise):
    """Twice the number."""

    answers = "all"

    def cases(self, rng):
        return [Case(given={"x": float(rng.uniform(1, 9))}) for _ in range(4)]

    def probe(self, student, given):
        return {"y": student.double(given["x"])}

    def compare(self, case, got, want):
        if close(got["y"], 3 * case["x"]):
            raise Wrong("that is three times", why="x was added twice", next='hint("double")')
        if not close(got["y"], want["y"]):
            raise Wrong("that is not twice the number", why="it differs", next='hint("double")')

@exercise("quadruple", uses=["double"])
class Quadruple(Exercise):
    """Twice twice."""

    answers = "all"

    def cases(self, rng):
        return [Case(given={"x": float(rng.uniform(1, 9))}) for _ in range(4)]

    def probe(self, student, given):
        return student.quadruple(given["x"])

    def compare(self, case, got, want):
        if not close(got, want):
            raise Wrong("that is not four times the number", why="it differs", next='hint("quadruple")')
        return 0.5 if case["x"] > 100 else None
'''
SOLUTION = [
    ("solve-double", "def double(x):\n    return 2 * x\n"),
    ("solve-quadruple", "def quadruple(x):\n    return double(double(x))\n"),
]
POINTS = {"double": 2, "quadruple": 3}
LAB = "lab90_numbers"


def write_facts(folder: Path) -> None:
    """The facts of the course, as the build would write them."""
    goldens = {}
    with ProbeProcess(SOLUTION, exercises_folder=folder) as worker:
        for exercise in load_lab(LAB):
            cases = exercise.draw_cases(1)
            wants = [record["value"] for record in worker.collect(exercise.name, cases)]
            golden = {"cases": plain_data.to_json(plain_cases(cases)), "wants": plain_data.to_json(wants)}
            goldens[exercise.name] = {"seed": 1, **golden}
    exercises = [
        {
            "name": e.name,
            "kind": "code",
            "points": POINTS[e.name],
            "hints": ["think", "think twice"],
            "uses": list(e.uses),
            "trusting": False,
        }
        for e in load_lab(LAB)
    ]
    words = {"name": "why", "kind": "explain", "points": 1, "hints": ["say", "more"], "uses": [], "trusting": False}
    facts = {
        "schema": 2,
        "lab": LAB,
        "title": "Numbers",
        "minutes": 5,
        "locked": {},
        "exercises": [*exercises, words],
        "goldens": goldens,
    }
    (folder / "goldens" / f"{LAB}.json").write_text(json.dumps(facts))
