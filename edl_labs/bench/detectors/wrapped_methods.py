"""Functions and methods of loaded modules that are wrapped while one call runs, and put back after it."""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_MISSING = object()
Path = tuple[str, str, str]  # module, class ('' for a function of the module), name


@dataclass
class _Wrapped:
    """One name that is wrapped: what it was, what stood under it, and who is told of its calls."""

    method: Callable[..., Any]
    kept: Any
    told: list[Callable[..., Any]] = field(default_factory=list)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.method
        for through in tuple(self.told):
            call = functools.partial(through, call)
        return call(*args, **kwargs)


# Calls that are watched in several threads may overlap: the last one to end puts a name back.
_WRAPPED: dict[tuple[int, str], _Wrapped] = {}
_CHANGING = threading.Lock()


@contextmanager
def all_wrapped(throughs: Iterable[tuple[Path, Callable[..., Any]]]) -> Iterator[None]:
    """Calls of each of these go through `through(original, *args, **kwargs)`; what is not loaded is left alone.

    Inherited methods are wrapped in the class that is named, not in the one that they come from.
    """
    changed: list[tuple[Any, str, Callable[..., Any]]] = []
    try:
        for (module, kind, name), through in throughs:
            owner: Any = sys.modules.get(module)
            owner = getattr(owner, kind, None) if kind and owner is not None else owner
            if owner is not None and _wrap(owner, name, through):
                changed.append((owner, name, through))
        yield
    finally:
        for owner, name, through in reversed(changed):
            _unwrap(owner, name, through)


def _wrap(owner: Any, name: str, through: Callable[..., Any]) -> bool:
    with _CHANGING:
        wrapped = _WRAPPED.get((id(owner), name))
        if wrapped is None:
            method = getattr(owner, name, None)
            if not callable(method):
                return False
            wrapped = _Wrapped(method, vars(owner).get(name, _MISSING))
            try:
                setattr(owner, name, _as_function(wrapped))
            except (AttributeError, TypeError):  # a class that is not written in Python
                return False
            _WRAPPED[id(owner), name] = wrapped
        wrapped.told.append(through)
        return True


def _unwrap(owner: Any, name: str, through: Callable[..., Any]) -> None:
    with _CHANGING:
        wrapped = _WRAPPED[id(owner), name]
        wrapped.told.remove(through)
        if wrapped.told:
            return
        del _WRAPPED[id(owner), name]
        if wrapped.kept is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, wrapped.kept)


def _as_function(wrapped: _Wrapped) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)

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
    """`see` is called with each text that is written to this process's standard streams."""
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
