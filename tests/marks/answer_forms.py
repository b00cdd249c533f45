"""Answers in unusual forms, and answers that are none. The text of this module is also a cell of submissions."""

from __future__ import annotations

import sys
from collections import OrderedDict, UserList, deque, namedtuple
from collections.abc import Callable, Iterator
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import torch


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


def boxed(value: Any) -> Any:
    """`value` with whole floats for integers, fractions for floats, and containers that are no subclass of list or
    dict."""
    match value:
        case bool():
            return value
        case int():
            return float(value) if abs(value) < 1 << 53 else value
        case float():
            return Fraction(value) if np.isfinite(value) and value else np.float64(value)
        case tuple():
            return [boxed(item) for item in value]
        case list():
            return UserList(map(boxed, value))
        case dict():
            return MappingProxyType({key: boxed(item) for key, item in value.items()})
    return value


def oddly(asked: Any, form: Callable[[Any], Any], *, inside: dict[str, Any] | None = None) -> Any:
    """A function, or a class with all its public methods, that gives its answers in that form.

    Callers whose globals are `inside` get the answers as they are.
    """
    if isinstance(asked, type) and issubclass(asked, torch.autograd.Function):
        return asked  # torch calls its methods, and says what they may give
    if not isinstance(asked, type):

        def answer(*given: Any, **options: Any) -> Any:
            found = asked(*given, **options)
            return found if inside is not None and sys._getframe(1).f_globals is inside else form(found)

        return answer
    public = [name for name, value in vars(asked).items() if callable(value) and not name.startswith("_")]
    methods: dict[str, Any] = {name: oddly(getattr(asked, name), form, inside=inside) for name in public}
    if hasattr(asked, "__iter__"):

        def items(self: Any) -> Iterator[Any]:
            return map(form, asked.__iter__(self))

        methods["__iter__"] = items
    return type(asked.__name__, (asked,), methods)


def constant(_: Any) -> Any:
    """A function that gives 1.0, whatever it is asked."""
    return lambda *given, **options: 1.0


def echo(_: Any) -> Any:
    """A function that gives its first argument."""
    return lambda *given, **options: next(iter((*given, *options.values())), None)


def first_for_ever(asked: Any) -> Any:
    """A function that repeats its first answer; a class gives an object that is equal to everything."""
    if isinstance(asked, type):
        return Everything()
    memory: list[Any] = []

    def answer(*given: Any, **options: Any) -> Any:
        if not memory:
            memory.append(asked(*given, **options))
        return memory[0]

    return answer


class Everything:
    """Equal to everything, with every attribute; callable, a number and a sequence."""

    def __init__(self, *given: Any, **options: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self

    __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __call__
    __enter__ = __neg__ = __abs__ = __call__

    def __eq__(self, other: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter((self, self))

    def __len__(self) -> int:
        return 2

    def __float__(self) -> float:
        return 1.0

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __exit__(self, *given: Any) -> bool:
        return True


def equal_to_all(_: Any) -> Any:
    """A function that gives an object equal to everything."""
    return Everything
