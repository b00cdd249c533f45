"""Collecting evidence: running a probe next to the student's code, once a case, whatever that code does."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks._exercise import PACKAGE, RegisteredExercise
from edl_labs.checks.asked_form import CALLING, checked
from edl_labs.checks.evidence_form import Misfit
from edl_labs.checks.global_state import fresh_global_state
from edl_labs.checks.time_limit import TookTooLong
from edl_labs.errors import EdlError, PlainDataError, Sentence

MAX_TEXT = 2000  # characters: a long exception's message, a screen of text
# Records after which no further case is run.
LAST = frozenset({"stub", "missing", "interrupted", "too_long"})


UNREADABLE = "your result could not be read in the expected form"
_OF_READING = (AttributeError, LookupError, TypeError, ValueError)


class Missing(Exception):
    """A probe needs a name that the notebook does not define."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the notebook defines no {name!r}")
        self.missing = name


class Student:
    """Attribute access to a notebook's namespace: `student.finish_times` is the notebook's `finish_times`.

    What a function returns is plain where it acts as something plain, and has the form that `returns` declares for it.
    """

    def __init__(self, namespace: dict[str, Any], returns: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_namespace", namespace)
        object.__setattr__(self, "_returns", returns)
        object.__setattr__(self, "_has_class", False)

    def __getattr__(self, name: str) -> Any:
        try:
            found = object.__getattribute__(self, "_namespace")[name]
        except KeyError:
            raise Missing(name) from None
        asked = object.__getattribute__(self, "_returns").get(name)
        if isinstance(found, type):
            object.__setattr__(self, "_has_class", True)
        return found if isinstance(found, type) or not callable(found) else checked(found, asked)


def collect(
    exercise: RegisteredExercise,
    namespace: dict[str, Any],
    givens: list[dict[str, Any]],
    *,
    references: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """One record for the given half of each case: `{"value": ...}`, or what happened instead.

    The others are `{"stub": True}` (NotImplementedError), `{"missing": name}`, `{"misfit": text}` (an answer of another
    form), `{"not_plain_data": text, "kind": type}` and `{"error": {"type", "message", "line"}}`, with the "name" that a
    NameError lacks. Each case begins with fresh global
    settings and the same random numbers. `references` are names that take the place of the notebook's own while the
    probe runs. Stops after a stub or a missing name. Nothing that student code raises gets out, except a
    KeyboardInterrupt's record.
    """
    records: list[dict[str, Any]] = []
    with _standing_in(namespace, references or {}):
        for given in givens:
            records.append(_one(exercise, namespace, given))
            if records[-1].keys() & LAST:
                break
    return records


def _one(exercise: RegisteredExercise, namespace: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    student = Student(namespace, exercise.spec.returns)
    try:
        with fresh_global_state():
            value = exercise.spec.probe(student, plain_data.plain_copy(given))
            return {"value": plain_data.plain_copy(value)}
    except NotImplementedError:
        return {"stub": True}
    except Missing as missing:
        return {"missing": missing.missing}
    except PlainDataError as error:
        return _not_plain_data(error.what)
    except Misfit as problem:
        return {"misfit": _text(problem)}
    except KeyboardInterrupt:
        return {"interrupted": True}
    except TookTooLong:
        return {"too_long": True}
    except BaseException as error:
        said = {"misfit": UNREADABLE} if _is_of_probe(error, exercise, student, namespace) else {}
        return {"error": _describe(error, namespace), **said}


def _not_plain_data(said: Sentence) -> dict[str, str]:
    """The record of a result that is not plain data. No student has seen where in the evidence it lies."""
    values = {**said.values, "where": "your result"}
    return {"not_plain_data": _text(said.template.format_map(values)), "kind": _text(values.get("kind", ""))}


def _describe(error: BaseException, namespace: Mapping[str, Any]) -> dict[str, Any]:
    name = ""
    try:
        message = str(error)
        name = (error.name if type(error) is NameError else "") or ""
    except BaseException:
        message = ""
    told = {"type": _text(type(error).__name__), "message": _text(message), "line": _student_line(error, namespace)}
    return {**told, "name": _text(name)} if name else told


def _student_line(error: BaseException, namespace: Mapping[str, Any]) -> str:
    """The deepest line of the student's own code in the traceback, as text; empty when there is none."""
    import linecache

    found = ""
    try:
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_globals is namespace:
                found = linecache.getline(frame.f_code.co_filename, number).strip() or found
    except BaseException:
        return ""
    return _text(found)


def _is_of_probe(
    error: BaseException, exercise: RegisteredExercise, student: Student, namespace: Mapping[str, Any]
) -> bool:
    """Whether an exercise's own code failed on an answer that it could not read.

    What is raised in a call is the student's, and so is what an object of the student's own class lacks.
    """
    if not isinstance(error, _OF_READING) or isinstance(error, EdlError):
        return False
    places = [frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)]
    called = any(names is namespace or names is CALLING for names in places)
    if called or not places or object.__getattribute__(student, "_has_class"):
        return False
    return str(places[-1].get("__name__", "")).startswith((f"{PACKAGE}.", type(exercise.spec).__module__))


def _text(value: Any) -> str:
    return str(value)[:MAX_TEXT].encode("utf-8", "replace").decode()


@contextmanager
def _standing_in(namespace: dict[str, Any], references: Mapping[str, Any]) -> Iterator[None]:
    absent = object()
    own = {name: namespace.get(name, absent) for name in references}
    namespace.update(references)
    try:
        yield
    finally:
        for name, value in own.items():
            if value is absent:
                namespace.pop(name, None)
            else:
                namespace[name] = value
