"""The goldens file of a lab: its public facts, the cases of seed 1 and what the solution gives for them."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from edl_labs.checks import plain
from edl_labs.checks.exercise import _REGISTRY, Exercise, load_lab
from edl_labs.checks.worker import Worker
from edl_labs.course.lab.course import Course
from edl_labs.course.lab.lab import Lab
from edl_labs.errors import EdlError

PUBLIC_SEED = 1
SCHEMA = 1


def exercises_of(course: Course, lab: Lab) -> dict[str, Exercise]:
    """The registered exercises of a lab by name, read anew. The course must be activated."""
    _REGISTRY.loaded.pop(lab.name, None)
    try:
        found = load_lab(lab.name)
    except EdlError:
        raise
    except Exception as error:
        raise EdlError(
            f"{course.shown(course.exercises / lab.name)}.py does not run",
            why=f"{type(error).__name__}: {error}",
            next="mend the exercise module",
        ) from error
    return {exercise.name: exercise for exercise in found}


def goldens(course: Course, lab: Lab, *, locked: dict[str, str]) -> str:
    """The text of `goldens/<lab>.json`. `locked` holds the digests of the release's locked cells."""
    with course.activated():
        registered = exercises_of(course, lab)
        wants = _wants(course, lab, registered)
    listed = [_public(lab, one.name, registered.get(one.name)) for one in lab.exercises]
    data = {
        "schema": SCHEMA,
        "lab": lab.name,
        "title": lab.title,
        "minutes": lab.minutes,
        "exercises": listed,
        "goldens": wants,
        "locked": locked,
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def values(records: list[dict[str, Any]], *, exercise: str, lab: str) -> list[Any]:
    """The values in the records of the reference; EdlError when it failed on a case."""
    for index, record in enumerate(records):
        if "value" not in record:
            raise EdlError(
                f"{lab}: the probe of {exercise} failed on the solution, case {index}",
                why=json.dumps(record, sort_keys=True)[:500],
                next=f"mend the probe, or the solution of {exercise}",
            )
    return [record["value"] for record in records]


def rounded(value: Any, digits: int) -> Any:
    """`value` with every float in it at `digits` significant digits.

    >>> rounded({"a": [1 / 3, 12345678.9, 7]}, 3)
    {'a': [0.333, 12300000.0, 7]}
    """
    if type(value) is float:
        return float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    return _rounded_array(value, digits)


def _rounded_array(value: Any, digits: int) -> Any:
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind == "f":
        flat = [rounded(float(v), digits) for v in value.ravel()]
        return numpy.array(flat, dtype=value.dtype).reshape(value.shape)
    if torch is not None and isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        flat = [rounded(v, digits) for v in value.double().reshape(-1).tolist()]
        return torch.tensor(flat, dtype=torch.float64).to(value.dtype).reshape(value.shape)
    return value


def _wants(course: Course, lab: Lab, registered: dict[str, Exercise]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not registered:
        return found
    with Worker(lab.namespace_cells(), exercises_folder=course.exercises) as worker:
        if worker.error:
            raise EdlError(f"{lab.name}: the solution does not run", why=worker.error, next="mend that cell")
        for name, exercise in registered.items():
            cases = plain.plain_copy(exercise.draw_cases(PUBLIC_SEED))
            records = worker.collect(name, cases, timeout_s=exercise.timeout_s)
            wants = rounded(exercise.public_wants(cases, values(records, exercise=name, lab=lab.name)), exercise.digits)
            found[name] = {"seed": PUBLIC_SEED, "cases": plain.to_json(cases), "wants": plain.to_json(wants)}
    return found


def _public(lab: Lab, name: str, registered: Exercise | None) -> dict[str, Any]:
    one = lab.exercise(name)
    return {
        "name": name,
        "kind": one.kind,
        "points": one.points,
        "hints": list(one.hints),
        "uses": list(registered.uses) if registered else [],
        "trusting": registered.trusting if registered else False,
    }
