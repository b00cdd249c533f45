"""Right answers of every exercise in unusual forms, through probe and judge: named tuples, enums, 0-d arrays.

No exercise is left out. Where a function returns nothing (four loops of `bug_hunt`, the methods of a loss scaler but
`scale`), what is judged are tensors that the check itself made: no other form of them is the student's to choose.
"""

from __future__ import annotations

import ast
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import lab_names, load_lab
from tests.labs.conftest import SOLUTIONS, parse


class Rows(list):
    """A list of its own."""


class Whole(int):
    """An int of its own."""


class Text(str):
    """A text of its own."""


class Own(torch.Tensor):
    """A tensor of its own."""


def named(value: Any) -> Any:
    """`value` with names: named tuples, enums, subclasses; numpy's numbers. What is no plain data stays."""
    match value:
        case bool():
            return np.bool_(value)
        case int():
            return np.int64(value) if abs(value) < 1 << 62 else value
        case float():
            return np.array(value)
        case str():
            return Enum("Answer", {"GIVEN": value}, type=str).GIVEN
        case tuple():
            return namedtuple("Answer", [f"part_{i}" for i in range(len(value))])(*map(named, value))
        case list():
            return Rows(map(named, value))
        case dict():
            return OrderedDict((key, named(item)) for key, item in value.items())
        case torch.Tensor():
            return value.as_subclass(Own)
    return value


def lazy(value: Any) -> Any:
    """`value` with torch's numbers, and sequences that can be read once: generators, `map`, a deque, arrays."""
    match value:
        case bool():
            return torch.tensor(value)
        case int():
            return Whole(value)
        case float():
            return torch.tensor(value, dtype=torch.float64)
        case str():
            return Text(value)
        case tuple():
            return (lazy(item) for item in value)
        case list() if value and all(type(item) is float for item in value):
            return np.array(value)
        case list():
            return map(lazy, value) if len(value) % 2 else deque(map(lazy, value))
        case dict():
            return {key: lazy(item) for key, item in value.items()}
    return value


def oddly(asked: Any, form: Callable[[Any], Any]) -> Any:
    """A function, or a class with all its public methods, that gives its answers in that form."""
    if isinstance(asked, type) and issubclass(asked, torch.autograd.Function):
        return asked  # torch calls its methods, and says what they may give
    if not isinstance(asked, type):
        return lambda *given, **options: form(asked(*given, **options))
    public = [name for name, value in vars(asked).items() if callable(value) and not name.startswith("_")]
    methods: dict[str, Any] = {name: oddly(getattr(asked, name), form) for name in public}
    if hasattr(asked, "__iter__"):

        def items(self: Any) -> Iterator[Any]:
            return map(form, asked.__iter__(self))

        methods["__iter__"] = items
    return type(asked.__name__, (asked,), methods)


@pytest.mark.slow  # every exercise of a lab, with all cases of a draw
@pytest.mark.parametrize("form", [named, lazy])
@pytest.mark.parametrize("lab", lab_names())
def test_the_solution_passes_whatever_form_its_answers_have(lab: str, form: Callable[[Any], Any]):
    source = SOLUTIONS / lab / f"{lab}.py"
    cells = parse(source.read_text(encoding="utf-8"), file=source.name)
    names: dict[str, Any] = {}
    for cell in cells:
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    told = {}
    for exercise in load_lab(lab):
        cell = next(cell for cell in cells if cell.role == "solve" and cell.name == exercise.name)
        kinds = ast.FunctionDef | ast.ClassDef
        asked = [node.name for node in ast.parse(cell.source).body if isinstance(node, kinds)]
        cases = exercise.draw_cases(1)
        wants = [record["value"] for record in collect(exercise, names, cases)]
        found = collect(exercise, {**names, **{name: oddly(names[name], form) for name in asked}}, cases)
        outcome = judge(exercise, cases, found, wants, points=1.0)
        if outcome.state != "passed":
            told[exercise.name] = (outcome.what, outcome.why)

    assert {} == told
