"""Right answers in unusual forms pass: the table of docs/grading.md, one row a test."""

from __future__ import annotations

import array
import re
from collections import Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from edl_labs.checks import Exercise, RegisteredExercise, judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.evidence_form import Misfit, fitted

GRADING = Path(__file__).parents[3] / "docs" / "grading.md"


class Fault(str, Enum):  # noqa: UP042 (as students write it)
    """As many students write their answers."""

    NONE = "none"


class Level(IntEnum):
    """An int with a name."""

    TWO = 2


class Seconds(float):
    """A float whose own methods lie."""

    def __float__(self) -> float:
        raise AssertionError("asked")

    __eq__ = __repr__ = __str__ = is_integer = __float__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Count(int):
    """An int whose own methods lie."""

    def __int__(self) -> int:
        raise AssertionError("asked")

    __eq__ = __index__ = __repr__ = __str__ = bit_length = __int__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Rows(list):
    """A list whose own methods lie."""

    def __iter__(self) -> Any:
        raise AssertionError("asked")

    __len__ = __getitem__ = copy = __iter__  # type: ignore[assignment]


Pair = namedtuple("Pair", "flop moved_bytes")


@dataclass
class Parts:
    """An answer as a dataclass."""

    a: Any
    b: Any


class Window(Sequence[int]):
    """A sequence that is no list: the whole numbers from a first to before a last."""

    def __init__(self, first: int, stop: int) -> None:
        self.numbers = range(first, stop)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at: Any) -> Any:
        return self.numbers[at]


def torch() -> Any:
    return pytest.importorskip("torch")


# What the reference returned, and what passes for it, by the row of the table.
PASSES: dict[str, list[tuple[Any, Any]]] = {
    "a number": [
        (2.5, Seconds(2.5)),
        (2.5, np.float32(2.5)),
        (2.5, np.longdouble(2.5)),
        (2.5, np.array(2.5)),
        (2.5, np.array(2.5, dtype=np.longdouble)),
        (2.5, lambda: torch().tensor(2.5)),
        (2.5, lambda: torch().tensor(2.5, dtype=torch().bfloat16, requires_grad=True)),
        (2.5, lambda: torch().nn.Parameter(torch().tensor(2.5))),
        (2.5, Fraction(5, 2)),
        (2.5, Decimal("2.5")),
        (-0.0, Decimal("-0.0")),
        (2.0, 2),
    ],
    "a whole number": [
        (2, 2.0),
        (2, Count(2)),
        (2, Level.TWO),
        (2, np.uint8(2)),
        (2, np.array(2)),
        (2, np.float64(2.0)),
        (2, Fraction(4, 2)),
        (10**30, Fraction(10**30)),
        (2, Decimal(2)),
        (2, lambda: torch().tensor(2)),
    ],
    "True or False": [(True, np.bool_(True)), (True, np.array(True)), (True, lambda: torch().tensor(True))],
    "text": [("none", Fault.NONE), ("none", np.str_("none")), ("none", UserString("none")), ("none", np.array("none"))],
    "a list or a pair": [
        ([1.5, 2.5], (1.5, 2.5)),
        ([1.5, 2.5], Pair(1.5, 2.5)),
        ([1.5, 2.5], Rows([1.5, 2.5])),
        ([1.5, 2.5], np.array([1.5, 2.5])),
        ([1.5, 2.5], np.array([1.5, 2.5], dtype=np.longdouble)),
        ([1.5, 2.5], np.array([Fraction(3, 2), 2.5], dtype=object)),
        ([1.5, 2.5], lambda: torch().tensor([1.5, 2.5])),
        ([1.5, 2.5], [np.array(1.5), np.float16(2.5)]),
        ([1.5, 2.5], array.array("d", [1.5, 2.5])),
        ([1, 2], np.array([1.0, 2.0])),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
        ([1, 2], lambda: (i for i in (1, 2))),
        ([1, 2], lambda: map(int, "12")),
        ([1, 2], range(1, 3)),
        ([1, 2], deque([1, 2])),
        ([1, 2.5], UserList([Fraction(1), Decimal("2.5")])),
        ([[1, 2]], UserList([UserList([1.0, 2.0])])),
        ([1, 2], Window(1, 3)),
        ([1, 2], {"a": 1, "b": 2}.values()),
        (["a", "b"], {"a": 1, "b": 2}.keys()),
        (["a", "b"], np.array(["a", "b"])),
        ([["a", 1]], {"a": 1}.items()),
        (["a", 1], np.array(["a", 1], dtype=object)),
    ],
    "a dict": [
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": 1}, Counter("a")),
        ({"a": 1}, defaultdict(int, a=1)),
        ({"a": 1}, UserDict(a=Fraction(1))),
        ({"a": [1, 0.5]}, MappingProxyType({"a": UserList([Decimal(1), Fraction(1, 2)])})),
        ({"a": 1, "b": 2.5}, Parts(1, Fraction(5, 2))),
        ({"none": 1}, {Fault.NONE: 1.0}),
    ],
    "an array": [(np.arange(3), np.arange(3).astype(">i8")), (np.arange(3), np.arange(3).view(np.recarray))],
    "a tensor": [(lambda: torch().ones(2), lambda: torch().nn.Parameter(torch().ones(2)))],
}

# What the reference returned, what does not pass for it, and how that is told.
REFUSED: dict[str, list[tuple[Any, Any, str]]] = {
    "a number": [
        (2.5, "2.5", "expected a number, got text"),
        (2.5, True, "expected a number, got True or False"),
        (2.5, np.array([2.5]), "expected a number, got an array"),
        (2.5, 2.5j, "your result is an object of type complex, not plain data"),
        (2.5, None, "expected a number, got None"),
    ],
    "a whole number": [(2, 2.5, "is off"), (2, float("nan"), "is off")],
    "True or False": [(True, 1, "expected True or False, got a number")],
    "text": [("none", 1, "expected text, got a number")],
    "a list or a pair": [
        ([1, 2], {1, 2}, "your result is an object of type set, not plain data"),
        ([1, 2], {"a": 1}, "expected a list or a tuple, got a dict"),
        ([1, 2], np.array(1), "expected a list or a tuple, got an array"),
    ],
    "a dict": [
        ({"a": 1}, Pair(1, 2), "expected a dict, got a list or a tuple"),
        ({"a": 1}, {1: 1}, "your result has the key 1; keys of plain data must be text"),
        ({"a": 1}, {"b": 1}, "expected a dict with the key 'a', got the key 'b'"),
        ({"a": 1}, {"a": 1, "b": 2}, "expected a dict with the key 'a', got the keys 'a', 'b'"),
        ({"a": 1}, {}, "expected a dict with the key 'a', got no keys"),
    ],
    "an array": [(np.arange(3), [0, 1, 2], "expected an array, got a list or a tuple")],
    "a tensor": [
        (lambda: torch().ones(2), np.ones(2), "expected a tensor, got an array"),
        (lambda: torch().ones(2), lambda: torch().ones(1, 2), "expected a tensor of shape (2,), got shape (1, 2)"),
        (lambda: torch().ones(2), lambda: torch().ones(2, device="meta"), "your result is a tensor of float32"),
    ],
}


class Spec(Exercise):
    """Compares exactly, types and all."""

    def probe(self, student: Any, case: Any) -> Any:
        return student.answer()

    def compare(self, case: Any, got: Any, want: Any) -> bool:
        same = type(got) is type(want) and (got.tolist() == want.tolist() if hasattr(want, "tolist") else got == want)
        return same or (type(want) is float and type(got) is int and got == want)


def outcome_of(want: Any, given: Any) -> Any:
    """What the judge says when the student's function returns `given`."""
    exercise = RegisteredExercise("ex", "lab90_x", Spec())
    answer = given if callable(given) and not isinstance(given, type) else lambda: given
    records = collect(exercise, {"answer": answer}, [{}])
    return judge(exercise, [{}], records, [want() if callable(want) else want], points=1)


def rows(table: dict[str, list[Any]]) -> list[Any]:
    """One parameter set for each example."""
    return [pytest.param(*one, id=f"{name}: {i}") for name, examples in table.items() for i, one in enumerate(examples)]


@pytest.mark.parametrize(("want", "given"), rows(PASSES))
def test_a_right_answer_passes_in_any_of_its_forms(want: Any, given: Any) -> None:
    outcome = outcome_of(want, given)

    assert ("passed", "") == (outcome.state, outcome.what)


@pytest.mark.parametrize(("want", "given", "said"), rows(REFUSED))
def test_another_kind_is_refused_by_its_own_name(want: Any, given: Any, said: str) -> None:
    outcome = outcome_of(want, given)

    assert "wrong" == outcome.state
    assert said == "is off" or said in outcome.what


def test_the_documents_table_has_a_row_for_each_kind() -> None:
    section = GRADING.read_text(encoding="utf-8").partition("## Accepted forms of an answer")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]

    assert list(PASSES) == list(REFUSED) == named


def test_an_endless_generator_ends_with_a_sentence() -> None:
    from itertools import count

    outcome = outcome_of([1], lambda: count())

    assert "has too many parts" in outcome.what


def test_a_generator_that_raises_is_told_as_what_it_raised() -> None:
    def broken() -> Any:
        yield 1
        raise ZeroDivisionError("in the generator")

    outcome = outcome_of([1], broken)

    assert "your code raised ZeroDivisionError: in the generator" == outcome.what


def test_an_exercise_that_looks_at_forms_itself_gets_lists_and_numbers() -> None:
    spec = Spec()
    spec.skip_type_check = True  # type: ignore[misc]
    seen = []
    spec.compare = lambda case, got, want: seen.append(got)  # type: ignore[method-assign]
    records = collect(RegisteredExercise("ex", "lab90_x", spec), {"answer": lambda: np.array([1.0, 2.0])}, [{}])

    judge(RegisteredExercise("ex", "lab90_x", spec), [{}], records, [[1, 2]], points=1)

    assert [[1, 2]] == seen


def test_an_array_too_long_to_be_a_list_is_told_so() -> None:
    outcome = outcome_of([1], np.zeros(1_000_001, dtype=np.uint8))

    assert "an array of 1,000,001 numbers, but at most 1,000,000 can be compared" in outcome.what


@pytest.mark.parametrize(
    ("got", "want", "fits"),
    [
        ([1, 2, 3], [0.5], [1, 2, 3]),
        ([1.0, 2.0], [0], [1, 2]),
        ([True, False], [True], [True, False]),
        ([1.0, True], [0.5], "expected a number, got True or False"),
        ([1, 2], [True], "expected True or False, got a number"),
        (["a", 1], ["b"], "expected text, got a number"),
        ([1.5, 2.0], [0], [1.5, 2]),
    ],
)
def test_a_list_of_one_kind_has_the_form_that_its_numbers_have(got, want, fits):
    if isinstance(fits, str):
        with pytest.raises(Misfit, match=fits):
            fitted(got, want)
    else:
        found = fitted(got, want)
        assert fits == found
        assert list(map(type, fits)) == list(map(type, found))
        assert found is not got
