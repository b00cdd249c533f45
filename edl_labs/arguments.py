"""Arguments of public functions, checked against their annotations: a wrong call is refused in a sentence.

>>> @checked_arguments(steps="Pass steps=1 or more.")
... def train(steps: int, names: Sequence[str] = ()) -> int:
...     return steps
>>> train("3")
Traceback (most recent call last):
...
edl_labs.errors.UsageError: train() needs a whole number, got the text '3'.
  why:  `steps` is declared as `int`.
  next: Pass steps=1 or more.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
import os
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from traceback import walk_tb
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar

from edl_labs.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

_LOOKED_AT = 100  # items of a long list that are checked: a wrong kind of list is wrong from its first item
_SHOWN_LETTERS = 40  # of a text in a message: a third of a line
# What annotations name, and modules import for type checkers alone.
_HEAVY = {"torch": "torch", "nn": "torch.nn", "np": "numpy"}
_NOUNS: Mapping[Any, str] = {
    int: "whole number", float: "number", str: "text", bool: "bool", bytes: "bytes object", NoneType: "None",
    Callable: "function", Mapping: "dict", dict: "dict", tuple: "tuple", Iterable: "iterable", Iterator: "iterator",
}  # fmt: skip


def checked_arguments(**advice: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: UsageError for an argument that does not fit its annotation, or for a library that is missing.

    `advice` has the `next` of parameters that deserve a sentence of their own. Annotations that cannot be evaluated at
    run time, and values inside of iterators, are not checked.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        checks = functools.cache(lambda: _checks_of(function))
        name = function.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]

        @functools.wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> T:
            try:
                _check(name, checks(), args, keywords, advice)
                return function(*args, **keywords)
            except ModuleNotFoundError as error:
                if refused := _missing_library(f"{name}()", error):
                    raise refused from error
                raise

        return call

    return decorate


def _missing_library(who: str, error: ModuleNotFoundError) -> UsageError | None:
    """What to raise where this package imports a missing library; None where the caller's own function does."""
    name = (error.name or "").partition(".")[0]
    if name in ("", "edl_labs") or not _importer(error).startswith("edl_labs."):
        return None
    return UsageError(
        f"{who} needs {name}, which is not installed here.",
        why="The function that you called needs it.",
        next=f"Run `pip install {name}`, and restart the kernel.",
    )


def _importer(error: ModuleNotFoundError) -> str:
    """The name of the module whose import failed."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    return next((name for name in reversed(modules) if not name.startswith(("importlib", "_frozen_importlib"))), "")


def lazy_facade(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported at their first use.

    `homes` has the module of each name, in the package unless it starts with "edl_labs."; "" is a module of that name.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join(sorted(homes))}")
        home = homes[name] if homes[name].startswith("edl_labs.") else f"{package}.{homes[name] or name}"
        try:
            return getattr(import_module(home), name) if homes[name] else import_module(home)
        except ModuleNotFoundError as error:
            if refused := _missing_library(f"{package}.{name}", error):
                raise refused from error
            raise

    return get, lambda: sorted(homes)


def require_positive(**values: float) -> None:
    """UsageError for the first value that is not a finite number above 0."""
    _require(values, "positive", lambda value: 0 < value < math.inf)


def require_amount(**values: float) -> None:
    """UsageError for the first value that is negative or not a finite number."""
    _require(values, "0 or more", lambda value: 0 <= value < math.inf)


def require_fraction(**values: float) -> None:
    """UsageError for the first value that is not between 0 and 1, both left out."""
    _require(values, "between 0 and 1", lambda value: 0 < value < 1)


def _require(values: Mapping[str, Any], words: str, holds: Callable[[Any], bool]) -> None:
    for name, value in values.items():
        if not fits(value, float) or not holds(value):
            raise UsageError(
                f"{name} must be {words}, got {_shown(value)}.",
                why="Other values are not meaningful here.",
                next=f"Pass {name} as a number that is {words}.",
            )


class _Names(dict[str, Any]):
    """Libraries that annotations name, imported when one is met."""

    def __missing__(self, name: str) -> Any:
        if name not in _HEAVY:
            raise KeyError(name)
        return import_module(_HEAVY[name])


def _checks_of(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    signature = inspect.signature(function)
    scope = inspect.unwrap(function).__globals__
    hints = {}
    for name, parameter in signature.parameters.items():
        hint = parameter.annotation
        try:
            several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            hints[name] = Any if several or not isinstance(hint, str) else eval(hint, scope, _Names())
        except (NameError, AttributeError, TypeError):
            hints[name] = Any
    return signature, hints


def _check(
    function: str, checks: tuple[inspect.Signature, dict[str, Any]], args: Any, keywords: Any, advice: Mapping[str, str]
) -> None:
    signature, hints = checks
    by_name = not args and keywords.keys() == hints.keys()  # needs no binding, which takes most of the time
    try:
        given = keywords if by_name else signature.bind(*args, **keywords).arguments
    except TypeError as error:
        raise _unbound(function, signature, error) from None
    for name, value in given.items():
        if fits(value, hints[name]):
            continue
        parameter, words = signature.parameters[name], wording(hints[name])
        first = next((name for name in signature.parameters if name not in ("self", "cls")), "")
        subject = f"{function}() needs" if name == first else f"{name} must be"
        raise UsageError(
            f"{subject} {words}, got {_shown(value, hints[name])}.",
            why=f"`{name}` is declared as `{parameter.annotation}`.",
            next=advice.get(name, f"Pass {words}; help({function}) describes each argument."),
        )


def _unbound(function: str, signature: inspect.Signature, error: TypeError) -> UsageError:
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    near = get_close_matches(unknown[1], names, n=1, cutoff=0.5) if unknown else []
    return UsageError(
        f"{function}() {error}.",
        why=f"Its arguments are {', '.join(names)}.",
        next=f"Use {near[0]}=…" if near else f"help({function}) describes each argument.",
    )


def fits(value: Any, hint: Any) -> bool:
    """Whether a value can be what an annotation says; numbers of numpy and torch are numbers."""
    if hint is Any or type(value) is hint:
        return True
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin in (float, int):
        return _is_whole(value) if origin is int else _is_real(value)
    if origin is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool"
    if origin is None:
        return value is None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and (not parts or (_all(value, parts[0]) and _all(value.values(), parts[1])))
    if origin is tuple or (isinstance(origin, type) and _is_collection(origin)):
        return _fits_items(value, origin, parts)
    if getattr(origin, "_is_protocol", False):
        return any(hasattr(value, name) for name in vars(origin) if not name.startswith("_"))
    return not isinstance(origin, type) or origin is object or isinstance(value, origin)


def _is_real(value: Any) -> bool:
    real = isinstance(value, numbers.Real) or (hasattr(value, "__float__") and getattr(value, "ndim", 1) == 0)
    return real and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool) and not getattr(value, "ndim", 0)


def _is_collection(origin: Any) -> bool:
    return origin is list or origin in (Sequence, Iterable, Iterator)


def _fits_items(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    if isinstance(value, (str, bytes)) or (origin is not Iterable and isinstance(value, Mapping)):
        return False
    if origin is Iterator:
        return hasattr(value, "__next__")
    if not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
        return False
    if origin is not Iterable and not hasattr(value, "__len__"):
        return False
    if origin is tuple and parts and parts[-1] is not ...:
        return len(value) == len(parts) and all(map(fits, value, parts))
    return not isinstance(value, (list, tuple, Mapping)) or not parts or _all(value, parts[0])


def _all(values: Iterable[Any], hint: Any) -> bool:
    return all(fits(value, hint) for value in islice(values, _LOOKED_AT))


def wording(hint: Any) -> str:
    """An annotation in words: 'a function', 'a dict of text to function', 'a number or None'."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        words = list(dict.fromkeys(wording(part) for part in parts))
        words = [word for word in words if word != "text" or "a path" not in words]
        return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]
    noun = _noun(hint)
    if noun in ("None", "text"):
        return noun
    return f"{'an' if noun[0].lower() in 'aeio' else 'a'} {noun}"


def _noun(hint: Any) -> str:
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping) and parts and Any not in parts:
        return f"dict of {_noun(parts[0])} to {_noun(parts[1])}"
    if origin is tuple or (isinstance(origin, type) and _is_collection(origin)):
        kind = _NOUNS.get(origin, "list")
        named = parts and parts[0] not in (Any, ...)
        return f"{kind} of {_plural(_noun(parts[0]))}" if named else kind
    if origin in (typing.Union, UnionType):
        return re.sub(r"^an? ", "", wording(hint))
    if isinstance(origin, type) and issubclass(origin, os.PathLike):
        return "path"
    return _NOUNS.get(origin) or str(getattr(origin, "__name__", origin))


def _plural(noun: str) -> str:
    """'dicts of text to function' from 'dict of text to function'."""
    return re.sub(r"^.*?(?= of | or |$)", r"\g<0>s", noun, count=1)


def _shown(value: Any, hint: Any = float) -> str:
    if isinstance(value, str):
        return f"the text {value!r:.{_SHOWN_LETTERS}}"
    numeric = any(one in (int, float, bool) for one in (hint, *typing.get_args(hint)))
    if value is None or (numeric and isinstance(value, (bool, int, float))):
        return repr(value)
    if isinstance(value, Mapping) and value:
        key, item = next(iter(value.items()))
        return f"{_kind(value)} of {_kind(key)} to {_kind(item)}"
    if not isinstance(value, (list, tuple)) or not value:
        return _kind(value)
    parts = typing.get_args(hint) if _is_collection(typing.get_origin(hint)) else ()
    wrong = next((place for place, item in enumerate(value) if parts and not fits(item, parts[0])), 0)
    return f"{_kind(value)} with {_shown(value[wrong], parts[0] if parts else Any)} at index {wrong}"


def _kind(value: Any) -> str:
    return "function" if inspect.isroutine(value) else type(value).__name__
