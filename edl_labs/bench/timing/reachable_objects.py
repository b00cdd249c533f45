"""What a function can reach: the objects in its closure, its globals, its defaults and what it is bound to."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

_DEPTH = 4  # function, closure, object, its parts, theirs
_MOST = 5000  # looked through in some milliseconds


def reachable(*roots: Any) -> Iterator[Any]:
    """Objects that `roots` (functions, arguments, containers) refer to, each once, at most four steps away."""
    seen: set[int] = set()
    level = list(roots)
    for _ in range(_DEPTH + 1):
        following: list[Any] = []
        for item in level:
            if id(item) in seen or len(seen) >= _MOST:
                continue
            seen.add(id(item))
            yield item
            following += _children(item)
        level = following


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _children(item: Any) -> list[Any]:
    if isinstance(item, types.MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, types.FunctionType):
        return [] if _is_library(item) else _of_function(item)
    if isinstance(item, functools.partial):
        return [item.func, *item.args, *item.keywords.values()]
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)[:200]
    if isinstance(item, dict):
        return list(item.values())[:200]
    return _of_object(item)


def _of_function(fn: types.FunctionType) -> list[Any]:
    found: list[Any] = []
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a cell that is not filled yet
            continue
    found += [fn.__globals__[name] for name in _names(fn.__code__) if name in fn.__globals__]
    found += list(fn.__defaults__ or ()) + list((fn.__kwdefaults__ or {}).values())
    wrapped = getattr(fn, "__wrapped__", None)
    return [*found, wrapped] if wrapped is not None else found


def _of_object(item: Any) -> list[Any]:
    # Modules, classes and built-in things lead everywhere; plain objects and torch modules lead to their own parts.
    if isinstance(item, (types.ModuleType, type, str, bytes, int, float, types.BuiltinFunctionType)):
        return []
    parts = getattr(item, "__dict__", None)
    return list(parts.values())[:200] if isinstance(parts, dict) else []


def _is_library(fn: types.FunctionType) -> bool:
    module = fn.__module__ or ""
    return module.partition(".")[0] in {"torch", "numpy", "builtins", "edl_labs"} and not module.startswith(
        "edl_labs.exercises"
    )
