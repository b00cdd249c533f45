"""What every result has in common: JSON there and back, a short text form, a data frame, and a picture.

A result is a frozen dataclass that inherits `Value`. Its fields and the properties named in `DERIVED` go to JSON with a
kind and a schema number; `from_json` rebuilds it from the types of its fields. Values never import what shows them:
`presenters` has the hooks for that.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, repr=False)
... class Lap(Value):
...     name: str
...     times_s: tuple[float, ...]
>>> lap = Lap("forward", (0.25, math.inf))
>>> lap.to_json()
{'kind': 'lap', 'schema': 1, 'name': 'forward', 'times_s': [0.25, 'inf']}
>>> Lap.from_json(lap.to_json()) == lap
True
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from edl_labs.errors import UsageError

_SHOWN_ITEMS = 4  # a repr is one glance: longer sequences are told by their length
_SHOWN_LETTERS = 60  # about half a line of a terminal


class Value:
    """A frozen result. Dataclasses that inherit it say `repr=False`, so that theirs stays short."""

    KIND: ClassVar[str] = ""
    """Its name in JSON; if empty, the class's name in snake_case."""
    SCHEMA: ClassVar[int] = 1
    DERIVED: ClassVar[tuple[str, ...]] = ()
    """Properties that are written to JSON with the fields."""
    OMITTED: ClassVar[tuple[str, ...]] = ()
    """Fields that stay out of JSON: what a value was made from, or an object that is not data."""
    ROWS: ClassVar[str] = ""
    """The field or property whose items are the rows of `to_frame`; the value itself is the one row when empty."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__eq__" not in cls.__dict__:
            cls.__eq__ = _equal  # type: ignore[method-assign]  # set before @dataclass, which then keeps it

    @classmethod
    def kind_name(cls) -> str:
        """The value of `kind` in this class's JSON."""
        return cls.__dict__.get("KIND") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON data, with its kind and schema number."""
        names = [field.name for field in _fields(self) if field.name not in self.OMITTED] + list(self.DERIVED)
        return {
            "kind": self.kind_name(),
            "schema": self.SCHEMA,
            **{name: as_tree(getattr(self, name)) for name in names},
        }

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Self:
        """The value that `to_json` wrote, from its tree or its text; UsageError for anything else."""
        data = read_tree(tree, kind=cls.kind_name(), schema=cls.SCHEMA)
        return rebuilt(lambda: from_tree(cls, data), kind=cls.kind_name())

    @classmethod
    def from_fields(cls, tree: Mapping[str, Any]) -> Self:
        """The value from the tree of its fields; overridden with `to_json` where JSON holds one in another form."""
        return _from_fields(cls, tree)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each item of `ROWS`, or one row; UsageError where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise UsageError(
                "to_frame() needs pandas", why="it is not installed here", next="run pip install pandas"
            ) from error
        rows = getattr(self, self.ROWS) if self.ROWS else (self,)
        return pandas.DataFrame([_row(item) for item in rows])

    def __repr__(self) -> str:
        parts = (f"{field.name}={_glance(getattr(self, field.name))}" for field in _fields(self) if field.repr)
        return f"{type(self).__name__}({', '.join(parts)})"


def _equal(value: Any, other: object) -> bool:
    """Equality of results: as a dataclass has it, but NaN equals NaN, so that a value equals its round trip."""
    if type(value) is not type(other):
        return NotImplemented
    names = [field.name for field in _fields(value) if field.compare]
    return all(_same(getattr(value, name), getattr(other, name)) for name in names)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    is_nan = isinstance(one, float) and isinstance(other, float) and one != one and other != other
    return is_nan or one is other or bool(one == other)


def as_tree(value: Any) -> Any:
    """Plain JSON data of a value: infinities and NaN, which JSON lacks, become their names."""
    if isinstance(value, Value):
        return value.to_json()
    if isinstance(value, enum.Enum):
        return as_tree(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str):
        return str(value)  # a subclass, such as a Sentence, is no plain data to every encoder
    if isinstance(value, Mapping):
        return {str(key): as_tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_tree(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(as_tree(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_tree(getattr(value, field.name)) for field in _fields(value)}
    return value


def number(value: Any) -> float:
    """A float from what `as_tree` returned for it."""
    return float(value)


def from_tree(wanted: Any, tree: Any) -> Any:
    """An object of the type `wanted` from what `as_tree` made of it; TypeError, ValueError or KeyError if it is not."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _from_union(arguments, tree)
    if isinstance(wanted, type) and issubclass(wanted, Value):
        return wanted.from_fields(tree)
    if dataclasses.is_dataclass(wanted):
        return _from_fields(wanted, tree)
    if origin is tuple:
        return _tuple(arguments, tree)
    if origin in (list, set, frozenset):
        return origin(from_tree(arguments[0], item) for item in tree)
    if origin is not None and issubclass(origin, Mapping):
        # JSON's keys are texts.
        key_of = int if arguments[0] is int else lambda key: from_tree(arguments[0], key)
        return {key_of(key): from_tree(arguments[1], item) for key, item in tree.items()}
    return _scalar(wanted, tree)


def read_tree(text_or_tree: str | Mapping[str, Any], *, kind: str, schema: int) -> dict[str, Any]:
    """The tree of a result of this `kind` and schema; UsageError, saying what it is instead, for anything else."""
    try:
        tree = json.loads(text_or_tree) if isinstance(text_or_tree, str) else dict(text_or_tree)
    except (ValueError, TypeError) as error:
        raise _not(kind, str(error)) from None
    if not isinstance(tree, dict) or tree.get("kind") != kind:
        raise _not(kind, f"its kind is {tree.get('kind')!r}" if isinstance(tree, dict) else "it is not a JSON object")
    if tree.get("schema") != schema:
        raise _not(kind, f"its schema is {tree.get('schema')!r}, but this version reads {schema}")
    return tree


def rebuilt(build: Callable[[], Any], *, kind: str) -> Any:
    """What `build()` returns; UsageError where the tree lacks a part or holds a wrong one."""
    try:
        return build()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not(kind, f"{type(error).__name__}: {error}") from error


def _not(kind: str, why: str) -> UsageError:
    return UsageError(f"this JSON is not a {kind}", why=why, next=f"create one with the .to_json() method of a {kind}")


def _fields(value: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(value)


def _from_fields(wanted: Any, tree: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(wanted)
    given = {
        field.name: from_tree(hints[field.name], tree[field.name])
        for field in _fields(wanted)
        if field.init and (field.name in tree or not _has_default(field))
    }
    return wanted(**given)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _from_union(arguments: tuple[Any, ...], tree: Any) -> Any:
    if tree is None and type(None) in arguments:
        return None
    failure: Exception = TypeError(f"{tree!r} matches none of {arguments}")
    for one in arguments:
        if one is not type(None):
            try:
                return from_tree(one, tree)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                failure = error
    raise failure


def _tuple(arguments: tuple[Any, ...], tree: Any) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is ...:
        return tuple(from_tree(arguments[0], item) for item in tree)
    return tuple(from_tree(one, item) for one, item in zip(arguments, tree, strict=True))


def _scalar(wanted: Any, tree: Any) -> Any:
    if wanted in (Any, object, None):
        return tree
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return wanted(tree)
    if isinstance(wanted, type) and issubclass(wanted, os.PathLike):
        return wanted(tree)  # type: ignore[call-arg]
    if wanted is float and not isinstance(tree, bool):
        return number(tree)
    if wanted in (int, str, bool) and type(tree) is not wanted:
        raise TypeError(f"{tree!r} was found instead of {wanted.__name__}")
    return tree


def _row(item: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(item):
        return dict(item) if isinstance(item, Mapping) else {"value": item}
    derived = item.DERIVED if isinstance(item, Value) else ()
    return {name: getattr(item, name) for name in [*(field.name for field in _fields(item)), *derived]}


def _glance(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN_LETTERS else value[: _SHOWN_LETTERS - 1] + "…")
    if isinstance(value, (tuple, list)) and len(value) > _SHOWN_ITEMS:
        return f"<{len(value)} items>"
    if isinstance(value, Mapping) and len(value) > _SHOWN_ITEMS:
        return f"<{len(value)} entries>"
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(_glance, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_glance(item)}" for key, item in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= 4 * _SHOWN_LETTERS else f"<{type(value).__name__}>"
