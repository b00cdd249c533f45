"""Functions and methods of loaded modules that are wrapped while one call runs, and put back after it."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_MISSING = object()
Path = tuple[str, str, str]  # module, class ('' for a function of the module), name


@contextmanager
def all_wrapped(throughs: Iterable[tuple[Path, Callable[..., Any]]]) -> Iterator[None]:
    """Calls of each of these go through `through(original, *args, **kwargs)`; what is not loaded is left alone.

    Inherited methods are wrapped in the class that is named, not in the one that they come from.
    """
    changed: list[tuple[Any, str, Any]] = []
    try:
        for (module, kind, name), through in throughs:
            owner: Any = sys.modules.get(module)
            owner = getattr(owner, kind, None) if kind and owner is not None else owner
            method = getattr(owner, name, None)
            if owner is None or not callable(method):
                continue
            kept = vars(owner).get(name, _MISSING)
            try:
                setattr(owner, name, _through(through, method))
            except (AttributeError, TypeError):  # a class that is not written in Python
                continue
            changed.append((owner, name, kept))
        yield
    finally:
        for owner, name, kept in reversed(changed):
            if kept is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, kept)


def _through(through: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return through(method, *args, **kwargs)

    return wrapper


@contextmanager
def own_name_wrapped(
    functions: Iterable[types.FunctionType], original: Callable[..., Any], through: Callable[..., Any]
) -> Iterator[None]:
    """The same for `original` under whatever names the globals of these functions have for it (`from x import y`)."""
    spaces = {id(one.__globals__): one.__globals__ for one in functions}.values()
    names = [(space, name) for space in spaces for name, value in space.items() if value is original]
    wrapper = functools.partial(through, original)
    try:
        for space, name in names:
            space[name] = wrapper
        yield
    finally:
        for space, name in names:
            space[name] = original


@contextmanager
def writes_seen(see: Callable[[], None]) -> Iterator[None]:
    """`see` is told of each text that is written to this process's standard streams."""
    streams = {id(one): one for one in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__) if one is not None}
    changed = [stream for stream in streams.values() if _told(stream, see)]
    try:
        yield
    finally:
        for stream in changed:
            del stream.write


def _told(stream: Any, see: Callable[[], None]) -> bool:
    write = stream.write

    def telling(text: Any) -> Any:
        see()
        return write(text)

    if "write" in getattr(stream, "__dict__", {"write": None}):
        return False
    try:
        stream.write = telling
    except (AttributeError, TypeError):
        return False
    return True
