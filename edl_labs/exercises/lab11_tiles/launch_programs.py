"""The judge's reading of what a host function did: each entry of it is checked before anything of it is used."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import Wrong

_DTYPES = ("float16", "float32", "int32")
_MOST_LETTERS = 200_000  # of a record: 100 launches of some 20 arguments
_MOST_BUFFERS = 20  # a lab's host code allocates one or two
_MOST_ELEMENTS = 1 << 22  # of all buffers: a case's tensors have some 100,000
_MOST_ITEMS = 100  # launches, as in `HostProgram`, and arguments of each


@dataclass(frozen=True)
class Buffer:
    """A tensor that the host allocated."""

    name: str
    elements: int
    dtype: str
    zeros: bool


@dataclass(frozen=True)
class HostLaunch:
    """A launch. A tensor among the arguments is `{"tensor": name}`; the others are numbers or None."""

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


@dataclass(frozen=True)
class LaunchProgram:
    """What a host function allocated and launched, and the name of the tensor that it returned."""

    allocated: tuple[Buffer, ...]
    launches: tuple[HostLaunch, ...]
    returned: str


class _MalformedError(Exception):
    """What is wrong with a record, in a few words."""


def read_launch_program(text: str, inputs: Collection[str]) -> LaunchProgram:
    """The program in a record; Wrong where no host function leaves such a record, or where it launches nothing."""
    try:
        program = _program(_json(text), inputs)
    except _MalformedError as error:
        then = "allocate with torch, launch with kernel[grid](…), and do not change the record"
        raise Wrong("The record of the host function cannot be used.", why=str(error), next=then) from None
    if not program.launches:
        why = "the host function returned without a launch"
        raise Wrong("No kernel was launched.", why=why, next="launch your kernel: kernel[grid](…)")
    return program


def _json(text: str) -> Any:
    if len(text) > _MOST_LETTERS:
        raise _MalformedError(f"it has {len(text):,} characters, but only {_MOST_LETTERS:,} are allowed")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _MalformedError("it is not JSON") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _MalformedError("an entry appears twice")
    return dict(pairs)


def _program(record: Any, inputs: Collection[str]) -> LaunchProgram:
    entries = _entries(record, "the record", "allocated", "launches", "returned")
    buffers = tuple(_buffer(one) for one in _items(entries["allocated"], "allocated", _MOST_BUFFERS))
    known = [*inputs, *(one.name for one in buffers)]
    _require(len(set(known)) == len(known), "two tensors have the same name")
    elements = sum(one.elements for one in buffers)
    _require(elements <= _MOST_ELEMENTS, f"it allocates {elements:,} elements, but only {_MOST_ELEMENTS:,} are allowed")
    launches = tuple(_launch(one, known) for one in _items(entries["launches"], "launches", _MOST_ITEMS))
    returned = _text(entries["returned"], "returned")
    _require(returned in known, f"it returns {returned[:40]!r}, which is not a tensor of this call")
    return LaunchProgram(buffers, launches, returned)


def _buffer(record: Any) -> Buffer:
    one = _entries(record, "an allocation", "name", "elements", "dtype", "zeros")
    name, dtype = _text(one["name"], "name"), _text(one["dtype"], "dtype")
    _require(type(one["zeros"]) is bool, f"zeros of {name[:40]!r} is not true or false")
    _require(dtype in _DTYPES, f"{name[:40]!r} has the type {dtype[:40]!r}, but only {', '.join(_DTYPES)} are allowed")
    elements = _whole(one["elements"], "elements")
    _require(elements >= 0, f"{name[:40]!r} has {elements} elements")
    return Buffer(name, elements, dtype, one["zeros"])


def _launch(record: Any, known: Collection[str]) -> HostLaunch:
    one = _entries(record, "a launch", "kernel", "grid", "arguments", "named")
    _require(isinstance(one["named"], dict), "named is not an object")
    grid = tuple(_whole(part, "a grid") for part in _items(one["grid"], "grid", _MOST_ITEMS))
    arguments = tuple(_items(one["arguments"], "arguments", _MOST_ITEMS))
    for value in (*arguments, *one["named"].values()):
        _require_argument(value, known)
    return HostLaunch(_text(one["kernel"], "kernel"), grid, arguments, one["named"])


def _require_argument(value: Any, known: Collection[str]) -> None:
    if isinstance(value, dict):
        name = _text(_entries(value, "a tensor argument", "tensor")["tensor"], "tensor")
        _require(name in known, f"an argument is {name[:40]!r}, which is not a tensor of this call")
    else:
        _require(value is None or type(value) in (bool, int, float), "an argument is neither a number nor a tensor")
        _require(type(value) is not int or abs(value) < 2**63, "an argument is an integer of more than 64 bits")


def _entries(value: Any, what: str, *names: str) -> dict[str, Any]:
    _require(isinstance(value, dict) and value.keys() == set(names), f"{what} needs the entries {', '.join(names)}")
    return dict(value)


def _items(value: Any, name: str, most: int) -> list[Any]:
    _require(isinstance(value, list), f"{name} is not a list")
    _require(len(value) <= most, f"{name} has {len(value):,} items, but only {most} are allowed")
    return list(value)


def _text(value: Any, name: str) -> str:
    _require(type(value) is str, f"{name} is not text")
    return str(value)


def _whole(value: Any, name: str) -> int:
    _require(type(value) is int, f"{name} is not a whole number")
    return int(value)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise _MalformedError(problem)
