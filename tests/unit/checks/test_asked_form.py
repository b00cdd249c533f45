"""The form that an exercise declares is checked at the border, before its probe reads an answer."""

from __future__ import annotations

import re
from collections import UserDict, UserList, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from edl_labs.checks import Exercise, RegisteredExercise, judge
from edl_labs.checks.asked_form import in_form, tensor_of
from edl_labs.checks.evidence import collect
from edl_labs.checks.evidence_form import Misfit
from edl_labs.checks.plain_forms import unboxed

Pair = namedtuple("Pair", "scale zero")
OWN = Literal["own"]


def two() -> Iterator[int]:
    """Two numbers, to be read once."""
    yield 1
    yield 2


@pytest.mark.parametrize(
    ("answer", "asked", "form"),
    [
        (Pair(0.5, 3), tuple[float, int], (0.5, 3)),
        (UserList([Fraction(1, 2), 3.0]), tuple[float, int], (0.5, 3)),
        (two(), tuple[int, int], (1, 2)),
        (np.array([0.5, 2.0]), tuple[float, int], (0.5, 2)),
        ([[0.0, np.array(1)], deque([2])], list[list[int]], [[0, 1], [2]]),
        (
            UserDict(a=MappingProxyType({"own": np.float32(1)})),
            dict[str, dict[Literal["own"], float]],
            {"a": {"own": 1}},
        ),
        ({("x", "y"): 2.0}, dict[tuple[str, str], int], {("x", "y"): 2}),
        (None, list[Any] | None, None),
        ({1: 2}.keys(), list[Any] | None, [1]),
    ],
)
def test_an_honest_answer_comes_in_the_declared_form(answer: Any, asked: Any, form: Any) -> None:
    found = in_form(answer, asked)

    assert form == found
    assert repr(form) == repr(found).replace("1.0", "1")


@pytest.mark.parametrize(
    ("answer", "asked", "said"),
    [
        (3.5, tuple[float, float], "expected 2 values, got a number"),
        ((1, 2, 3), tuple[float, float], "expected 2 values, got 3 values"),
        ("ab", tuple[str, str], "expected 2 values, got text"),
        ("ab", list[str], "expected a list or a tuple, got text"),
        (["ab"], list[list[str]], "expected a list or a tuple, got text"),
        ("0.5", float, "expected a number, got text"),
        (
            {"own": 1},
            dict[Literal["own", "total"], float],
            "expected a dict with the keys 'own', 'total', got the key 'own'",
        ),
        (np.ones(3), float, "expected a number, got an array"),
        (object(), dict, "expected a dict, got an object of type object"),
        (None, tuple[float, float], "expected 2 values, got None"),
        (count(), tuple[int, int], "expected 2 values, got 3 values"),
    ],
)
def test_another_form_is_reported_as_exactly_that(answer: Any, asked: Any, said: str) -> None:
    with pytest.raises(Misfit) as raised:
        in_form(answer, asked)

    assert said in str(raised.value)


def test_shapes_are_reported_both() -> None:
    with pytest.raises(Misfit, match=r"expected a tensor of shape \(3, 2\), got shape \(2, 3\)"):
        tensor_of(np.ones((2, 3)), (3, 2))
    with pytest.raises(Misfit, match="expected a tensor, got text"):
        tensor_of("ab", (2,))

    assert [[1.0, 2.0]] == tensor_of([1, 2], (1, 2)).tolist()


def test_plain_answers_are_not_copied_and_objects_stay() -> None:
    plain, made = {"a": [1, (2, "x")], "b": np.ones(2)}, object()

    assert unboxed(plain) is plain
    assert unboxed(made) is made
    assert unboxed([made, UserList([Fraction(4, 2)])]) == [made, [2]]


class Fit(Exercise):
    """Takes an answer apart in three ways: two of them carelessly."""

    returns: ClassVar[Mapping[str, Any]] = {"fit": tuple[float, float]}

    def probe(self, student: Any, given: Any) -> Any:
        alpha, rate = student.fit()
        left, right = student.pair()
        return [alpha, rate, left, right, *sorted(student.table().items())]

    def compare(self, case: Any, got: Any, want: Any) -> bool:
        return got == want


def outcome_of(**functions: Callable[[], Any]) -> Any:
    """What the judge says where these functions are not the right ones."""
    right: dict[str, Any] = {"fit": lambda: (1.0, 2.0), "pair": lambda: (3, 4), "table": lambda: {"a": 1}}
    exercise = RegisteredExercise("fit", "lab90_x", Fit())
    want = collect(exercise, right, [{}])[0]["value"]
    return judge(exercise, [{}], collect(exercise, {**right, **functions}, [{}]), [want], points=1)


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({"fit": lambda: 3.5}, "expected 2 values, got a number"),
        ({"fit": lambda: "12"}, "expected 2 values, got text"),
        ({"pair": lambda: 3.5}, "your result could not be read in the expected form"),
        ({"pair": lambda: (1, 2, 3)}, "your result could not be read in the expected form"),
        ({"table": lambda: [1]}, "your result could not be read in the expected form"),
    ],
)
def test_an_exception_of_the_probes_own_reading_is_not_the_students(functions: Any, said: str) -> None:
    outcome = outcome_of(**functions)

    assert "wrong" == outcome.state
    assert said in outcome.what
    assert "raised" not in outcome.what


def test_an_exception_of_the_students_stays_theirs() -> None:
    names: dict[str, Any] = {}
    exec("def pair():\n    left, right = 3.5\n    return left, right", names)
    exercise = RegisteredExercise("fit", "lab90_x", Fit())

    outcome = judge(exercise, [{}], collect(exercise, {**names, "fit": lambda: (1, 2)}, [{}]), [[]], points=1)

    assert "your code raised TypeError: cannot unpack non-iterable float object" == outcome.what


def test_a_function_that_takes_other_arguments_is_told_so() -> None:
    outcome = outcome_of(pair=lambda more: more)  # type: ignore[misc]

    assert "your code raised TypeError" in outcome.what


class Sampler(Exercise):
    """Uses an object of a student's class."""

    def probe(self, student: Any, given: Any) -> Any:
        sampler = student.Sampler(seed=1)
        sampler.set_epoch(1)
        return list(sampler)

    def compare(self, case: Any, got: Any, want: Any) -> bool:
        return got == want


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ({}, "TypeError: .*takes no arguments"),
        ({"__init__": lambda self, *, seed: None}, "AttributeError: .*'set_epoch'"),
    ],
)
def test_what_an_own_class_lacks_is_named(methods: Any, said: str) -> None:
    exercise, names = RegisteredExercise("sampler", "lab90_x", Sampler()), {"Sampler": type("Sampler", (), methods)}

    outcome = judge(exercise, [{}], collect(exercise, names, [{}]), [[]], points=1)

    assert re.search(f"your code raised {said}", outcome.what)


def test_whole_floats_count_things_and_objects_of_the_library_stay() -> None:
    from edl_labs.checks.plain_forms import whole

    one = Pair(1.0, 2)

    assert [1, 2.5, {"heads": 2}, one] == (found := whole([1.0, 2.5, {"heads": 2.0}, one]))
    assert found[3] is one
    assert int is type(found[0])
