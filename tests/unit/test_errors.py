"""Each message says what, why and next, and carries its exit code."""

from __future__ import annotations

import pickle

import pytest

from edl_labs import errors


def test_a_message_has_three_parts_in_order() -> None:
    error = errors.EdlError("it broke", why="it was old", next="mend it")

    assert "it broke\n  why:  it was old\n  next: mend it" == str(error)


def test_parts_that_are_empty_leave_no_line() -> None:
    assert "it broke" == str(errors.EdlError("it broke"))


def test_a_source_error_starts_with_its_place() -> None:
    error = errors.SourceError("no such marker", file="lab01.py", line=7, next="mend it")

    assert "lab01.py:7: no such marker\n  next: mend it" == str(error)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.EdlError, 1),
        (errors.UsageError, 2),
        (errors.NothingToDo, 6),
    ],
)
def test_exit_codes_are_those_of_the_design(kind: type[errors.EdlError], code: int) -> None:
    assert code == kind("x").exit_code


def test_an_error_travels_between_processes_as_it_is() -> None:
    for error in (
        errors.UsageError("it broke", why="it was old", next="mend it"),
        errors.SourceError("it is wrong", file="lab.py", line=3, why="it was old"),
    ):
        again = pickle.loads(pickle.dumps(error))

        assert (type(error), str(error), vars(error)) == (type(again), str(again), vars(again))
