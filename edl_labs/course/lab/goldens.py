"""The goldens file of a lab: its public facts, the cases of seed 1 and what the solution gives for them."""

from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from edl_labs.checks import RegisteredExercise, judge, plain_data
from edl_labs.checks._exercise import PUBLIC_SEED
from edl_labs.checks.known_mistakes import KnownMistake, digest_of_text, digests, parts_of
from edl_labs.checks.lab_exercises import forget, load_lab
from edl_labs.checks.lab_facts import SCHEMA
from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.checks.spec import Case, defines, plain_cases
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.errors import EdlError, PlainDataError, SourceError, Wrong, place_of

# Sixteen steps of float32: short sums of products on two processors were seen to differ by six steps, 7e-7.
SAME_FLOAT = 2**-19
_VECTOR = 16  # numbers: so many in one list are values of one tensor, and none of them has a unit of its own


def exercises_of(course: Course, lab: Lab) -> dict[str, RegisteredExercise]:
    """The registered exercises of a lab by name, read anew. The course must be activated."""
    forget(lab.name)
    try:
        found = load_lab(lab.name)
    except EdlError:
        raise
    except Exception as error:
        raise EdlError(
            f"{course.shown(course.exercise_module(lab.name))} does not run",
            why=f"{type(error).__name__}: {error}",
            next="fix the exercise module",
        ) from error
    return {exercise.name: exercise for exercise in found}


def goldens(course: Course, lab: Lab, *, locked: dict[str, str]) -> str:
    """The text of `goldens/<lab>.json`. `locked` holds the digests of the release's locked cells.

    An exercise's golden that differs from the committed one by no more than its floats' last digits stays as it is, so
    that the build makes the same bytes on every processor. So does a mistake's digest of a part that holds a float, as
    long as the mistake's code, the cases and the wants are the committed ones.
    """
    committed = _committed(course.goldens / f"{lab.name}.json")
    with course.activated():
        registered = exercises_of(course, lab)
        wants = _wants(course, lab, registered)
        kept = _kept(committed.get("goldens", {}), wants)
        old = {name: entries for name, entries in committed.get("mistakes", {}).items() if name in kept}
        mistakes = _mistakes(course, lab, registered, old)
    listed = [_public(lab, one.name, registered.get(one.name)) for one in lab.exercises]
    data = {
        "schema": SCHEMA,
        "lab": lab.name,
        "title": lab.title,
        "minutes": lab.minutes,
        "exercises": listed,
        "goldens": {**wants, **kept},
        "locked": locked,
        **({"mistakes": mistakes} if mistakes else {}),
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def alike(old: Any, new: Any) -> bool:
    """Whether two plain values differ in nothing but the last digits of their floats, by at most `SAME_FLOAT`.

    In a list or an array of 16 floats or more, the difference is relative to the largest of them: sums whose terms
    cancel keep the rounding of their largest term.

    >>> alike({"a": [0.1, 7]}, {"a": [0.1 + 1e-16, 7]}), alike(1.0, 1.00001), alike(1, 1.0)
    (True, False, False)
    """
    if type(old) is not type(new):
        return False
    if isinstance(old, float):  # a zero is near nothing but itself, sign included
        return repr(old) == repr(new) or (old != 0 and math.isclose(old, new, rel_tol=SAME_FLOAT))
    if isinstance(old, list):
        return len(old) == len(new) and (all(map(alike, old, new)) or _alike_vectors(old, new))
    if isinstance(old, dict):
        return list(old) == list(new) and all(map(alike, old.values(), new.values()))
    return _alike_arrays(old, new) if hasattr(old, "dtype") else bool(old == new)


def _alike_vectors(old: list[Any], new: list[Any]) -> bool:
    if len(old) < _VECTOR or not all(type(one) is float and math.isfinite(one) for one in (*old, *new)):
        return False
    within = SAME_FLOAT * max(map(abs, old))
    return all(abs(one - other) <= within for one, other in zip(old, new, strict=True))


def _alike_arrays(old: Any, new: Any) -> bool:
    import numpy

    if (old.dtype, old.shape) != (new.dtype, new.shape):
        return False
    one, other = _wide(old), _wide(new)
    if one.dtype != "float64":
        return bool(numpy.array_equal(one, other))
    near = numpy.isclose(one, other, rtol=SAME_FLOAT, atol=0) & (numpy.signbit(one) == numpy.signbit(other))
    if (near | (numpy.isnan(one) & numpy.isnan(other))).all():
        return True
    return _alike_vectors(one.reshape(-1).tolist(), other.reshape(-1).tolist())


def _wide(array: Any) -> Any:
    """An array's or tensor's numbers; floats of all widths as float64, complex ones as two each."""
    if hasattr(array, "is_complex"):
        wide = array.cdouble() if array.is_complex() else array.double() if array.is_floating_point() else array
        array = wide.resolve_conj().numpy()
    if array.dtype.kind == "c":
        return array.astype("complex128").reshape(-1).view("float64")
    return array.astype("float64") if array.dtype.kind == "f" else array


def _committed(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _kept(committed: Any, made: dict[str, Any]) -> dict[str, Any]:
    """The committed goldens that say what those just made say; whole, since a want belongs to its case."""
    try:
        return {name: committed[name] for name in made if name in committed and _says(committed[name], made[name])}
    except (ValueError, KeyError, TypeError, AttributeError, PlainDataError):
        return {}


def _says(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if old == new:
        return True
    return (old.keys(), old["seed"]) == (new.keys(), new["seed"]) and all(
        alike(plain_data.from_json(old[part]), plain_data.from_json(new[part])) for part in ("cases", "wants")
    )


def values(records: list[dict[str, Any]], *, exercise: str, lab: str) -> list[Any]:
    """The values in the records of the reference; EdlError when it failed on a case."""
    for index, record in enumerate(records):
        if "value" not in record:
            raise EdlError(
                f"{lab}: the probe of {exercise} failed on the solution, case {index}",
                why=json.dumps(record, sort_keys=True)[:500],
                next=f"fix the probe, or the solution of {exercise}",
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


def _wants(course: Course, lab: Lab, registered: dict[str, RegisteredExercise]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not registered:
        return found
    with ProbeProcess(lab.namespace_cells(), exercises_folder=course.exercises) as worker:
        if worker.error:
            raise EdlError(f"{lab.name}: the solution does not run", why=worker.error, next="fix this cell")
        for name, exercise in registered.items():
            drawn = steady_cases(lab, exercise)
            cases = [case for case in drawn if exercise.spec.is_public(case)]
            records = worker.collect(name, cases, timeout_s=exercise.timeout_s)
            wants = values(records, exercise=name, lab=lab.name)
            exact = [exercise.spec.public_want(case, want) for case, want in zip(cases, wants, strict=True)]
            wants = rounded(exact, exercise.digits)
            _check_rounding_is_forgiven(lab, exercise, cases, records, exact=exact, wants=wants)
            found[name] = {
                "seed": PUBLIC_SEED,
                "cases": plain_data.to_json(plain_cases(cases)),
                "wants": plain_data.to_json(wants),
            }
    return found


def _mistakes(
    course: Course, lab: Lab, registered: dict[str, RegisteredExercise], committed: dict[str, Any]
) -> dict[str, Any]:
    """Of each exercise, the mistakes that are recognized by their answers to its public cases.

    `committed` are those of the exercises whose cases and wants are the committed ones.
    """
    known = [one for one in lab.mistakes if one.next and one.exercise in registered]
    cases = {name: registered[name].draw_cases(PUBLIC_SEED) for name in {one.exercise for one in known}}
    found: dict[str, Any] = {}
    if not known:
        return found
    with ProbeProcess(lab.namespace_cells(), exercises_folder=course.exercises) as origin:
        origin.collect(known[0].exercise, [])  # imports the lab's exercises once, not in each fork
        for one in known:
            exercise = registered[one.exercise]
            _check_can_be_recognized(one, exercise)
            with origin.fork([(one.label, one.code)]) as process:
                records = process.collect(one.exercise, cases[one.exercise], timeout_s=exercise.timeout_s)
            entry = KnownMistake(one.told, one.why, one.next, digests(records), digest_of_text(one.code))
            listed = found.setdefault(one.exercise, [])
            old = committed.get(one.exercise, [])[len(listed) :][:1]
            listed.append((as_committed(entry, KnownMistake.from_json(*old), records) if old else entry).to_json())
    return found


def as_committed(new: KnownMistake, old: KnownMistake, records: list[dict[str, Any]]) -> KnownMistake:
    """`new` with the old digests of parts with a float, whose last digits differ between processors.

    The same code gave both, on the same cases; otherwise `new` as it is.
    """
    if replace(new, digests=()) != replace(old, digests=()):
        return new
    parts = [[part for _, part in parts_of(record)] for record in records]
    if [len(one) for one in old.digests] != [len(one) for one in parts]:
        return new
    kept = tuple(
        tuple(was if _holds_float(part) else now for was, now, part in zip(*case, strict=True))
        for case in zip(old.digests, new.digests, parts, strict=True)
    )
    return replace(new, digests=kept)


def _holds_float(value: Any) -> bool:
    """Whether a number in it is not whole."""
    if isinstance(value, dict):
        return any(map(_holds_float, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_float, value))
    if hasattr(value, "dtype"):
        wide = _wide(value)
        return wide.dtype == "float64" and bool((wide % 1 != 0).any())
    return type(value) is float and value % 1 != 0


def _check_can_be_recognized(mistake: Mistake, exercise: RegisteredExercise) -> None:
    for part in ("is_public", "public_want"):
        if defines(type(exercise.spec), part):
            raise SourceError(
                f"the mistake {mistake.name} cannot be recognized by its answers",
                file=mistake.file,
                line=mistake.line,
                why=f"{exercise.name} has `{part}`: so few answers are published that hashes would give them away",
                next="remove the mistake's lines `# why:` and `# next:`, and raise its message in the judge",
            )


def steady_cases(lab: Lab, exercise: RegisteredExercise) -> list[Case]:
    """The public cases; EdlError when they hang on anything but the seed, so that no two builds would agree."""
    import numpy

    first = exercise.draw_cases(PUBLIC_SEED)
    random.random()  # what all code shares moves on between two builds, as the clock does
    numpy.random.random()
    again = exercise.draw_cases(PUBLIC_SEED)
    if plain_data.encode(plain_cases(first)) != plain_data.encode(plain_cases(again)):
        raise EdlError(
            f"{lab.name}: cases() of {exercise.name} returned different cases for the same seed",
            why="cases() may depend on a clock, a global generator, the order of a set, or state from an earlier call",
            next="draw all random values from its `rng` argument",
        )
    return first


def _check_rounding_is_forgiven(
    lab: Lab,
    exercise: RegisteredExercise,
    cases: list[Case],
    records: list[dict[str, Any]],
    *,
    exact: list[Any],
    wants: list[Any],
) -> None:
    """EdlError when the solution passes against its own results and fails against them as the golden keeps them.

    A solution that fails against its own is for the proof to tell.
    """
    check_compares(lab, exercise, cases, records, wants)
    outcome = judge(exercise, cases, records, wants, points=1.0)
    if outcome.state == "passed" or judge(exercise, cases, records, exact, points=1.0).state != "passed":
        return
    raise EdlError(
        f"{lab.name}: {exercise.name}: the solution fails its own golden, case {outcome.case_index}: {outcome.what}",
        why=f"a golden keeps only {exercise.digits} digits of a float, and compare() is stricter than that",
        next=f"use a tolerance of 1e-{exercise.digits - 2} or more in compare() (close() has 1e-6), or set `digits`",
    )


def check_compares(
    lab: Lab, exercise: RegisteredExercise, cases: list[Case], records: list[dict[str, Any]], wants: list[Any]
) -> None:
    """EdlError with type and line when `compare` itself raises something on the solution."""
    for index, (case, record, want) in enumerate(zip(cases, records, wants, strict=True)):
        try:
            exercise.spec.compare(case, record["value"], want)
        except Wrong:
            continue
        except Exception as error:
            raise EdlError(
                f"{lab.name}: compare() of {exercise.name} raised {type(error).__name__} on the solution, case {index}",
                why=f"{error or 'the exception has no message'} ({place_of(error)})",
                next="fix this line; here, `got` and `want` are both what the probe returned for the solution",
            ) from error


def _public(lab: Lab, name: str, registered: RegisteredExercise | None) -> dict[str, Any]:
    one = lab.exercise(name)
    return {
        "name": name,
        "kind": one.kind,
        "points": one.points,
        "hints": list(one.hints),
        "uses": list(registered.uses) if registered else [],
        "trusting": registered.trusting if registered else False,
        **({"optional": True} if one.optional else {}),
        **({"minutes": one.minutes} if one.minutes else {}),
        **({"pause_after": True} if one.pause_after else {}),
    }
