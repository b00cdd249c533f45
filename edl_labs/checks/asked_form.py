"""The form that an exercise declares for what a function returns, checked before its probe reads the answer."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Set, ValuesView
from itertools import islice
from typing import Any

from edl_labs.checks.evidence_form import Misfit, keys_differ, kind_of, unpacked
from edl_labs.checks.plain_forms import fields_of, unboxed
from edl_labs.units import counted

_LONGEST = 1_000_000  # items of a lazy sequence
CALLING = globals()
"""The globals of the frames in which a student's function is called."""
_IN_A_ROW = (Iterator, Set, ValuesView)
_EXAMPLES: dict[Any, Any] = {float: 0.0, int: 0, str: "", bool: True, list: [], dict: {}}


def in_form(value: Any, asked: Any) -> Any:
    """`value` as plain data of the form that a type says, such as `tuple[float, float]`; Misfit, in words, if not.

    `Any` accepts everything, `dict[Literal["a", "b"], float]` says which keys there are, `X | None` allows None. Whole
    numbers become ints where `int` is declared, lazy sequences and arrays become lists.

    >>> in_form(range(2), tuple[int, float])
    (0, 1)
    """
    value, origin, parts = unboxed(value), typing.get_origin(asked) or asked, typing.get_args(asked)
    if asked is Any or (value is None and types.NoneType in parts):
        return value
    if origin is types.UnionType:
        return in_form(value, next(one for one in parts if one is not types.NoneType))
    if origin is tuple:
        return _in_parts(value, parts)
    if origin is list:
        return [in_form(item, parts[0] if parts else Any) for item in _items(value, "a list or a tuple")]
    value = unpacked(fields_of(value), _EXAMPLES[origin])
    if kind_of(value) != kind_of(_EXAMPLES[origin]):
        raise Misfit(f"expected {kind_of(_EXAMPLES[origin])}, got {kind_of(value)}")
    if origin is dict:
        return _with_keys(value, *parts)
    return int(value) if origin is int and type(value) is float and value.is_integer() else value


def checked(function: Callable[..., Any], asked: Any) -> Callable[..., Any]:
    """`function` with its answers unboxed and, where a form is declared, in that form; itself it is `__wrapped__`."""

    def answering(*given: Any, **named: Any) -> Any:
        answer = function(*given, **named)
        return unboxed(answer) if asked is None else in_form(answer, asked)

    answering.__wrapped__ = function  # type: ignore[attr-defined]
    return answering


def _in_parts(value: Any, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    wanted = counted(len(parts), "value")
    items = _items(value, wanted, most=len(parts) + 1)
    if len(items) != len(parts):
        raise Misfit(f"expected {wanted}, got {counted(len(items), 'value')}")
    return tuple(map(in_form, items, parts))


def _items(value: Any, wanted: str, most: int = _LONGEST) -> list[Any]:
    """What is in a sequence; text is none, and neither is a dict."""
    if isinstance(value, _IN_A_ROW):
        return list(islice(iter(value), most))
    value = unpacked(value, [])
    if not isinstance(value, (list, tuple)):
        raise Misfit(f"expected {wanted}, got {kind_of(value)}")
    return list(value)


def _with_keys(value: Mapping[Any, Any], key: Any = Any, item: Any = Any) -> dict[Any, Any]:
    wanted = typing.get_args(key) if typing.get_origin(key) is typing.Literal else ()
    if not value.keys() >= set(wanted):
        raise keys_differ(value, wanted)
    if not wanted:
        return {in_form(name, key): in_form(one, item) for name, one in value.items()}
    return {name: _under(name, one, item) for name, one in value.items()}


def _under(name: Any, value: Any, asked: Any) -> Any:
    """`value` in the form asked for; a Misfit says under which key of the dict it is."""
    try:
        return in_form(value, asked)
    except Misfit as problem:
        raise Misfit(f"for `{name}`, {problem}") from None


def tensor_of(value: Any, shape: tuple[int, ...]) -> Any:
    """A tensor, an array or nested lists of numbers as a float64 tensor of that shape, but for dimensions of one."""
    import torch

    try:
        found = torch.as_tensor(value).detach().to(torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise Misfit(f"expected a tensor, got {kind_of(value)}") from None
    got = tuple(found.shape)
    if [size for size in got if size != 1] != [size for size in shape if size != 1]:
        raise Misfit(f"expected a tensor of shape {tuple(shape)}, got shape {got}")
    return found.reshape(shape)
