"""Inputs that are given to a student's functions twice: a function that modifies them gives other results then.

What the student's process says of its inputs is not evidence. So functions are asked twice with the same objects, the
second results are judged, and the names of modified inputs only explain a result that is wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from edl_labs.errors import Wrong

Result = TypeVar("Result")


def asked_twice(ask: Callable[[InputGuard], Result]) -> tuple[Result, list[str]]:
    """What the second of two calls gives that receive the same objects, and the names of modified inputs."""
    guard = InputGuard()
    ask(guard)
    guard.begin_again()
    return ask(guard), guard.changed()


class InputGuard:
    """Hands out copies of tensors, lists and dicts by name, and says which of them are no longer what they were.

    >>> guard = InputGuard()
    >>> guard("counts", [2, 1]).sort(), guard("edges", [0, 1, 2])
    (None, [0, 1, 2])
    >>> guard.changed()
    ['counts']
    """

    def __init__(self) -> None:
        self._handed_out: list[tuple[str, Any, Any]] = []
        self._next = 0

    def __call__(self, name: str, value: Any) -> Any:
        """A copy of `value` and of everything in it; in the second round, the object of the first."""
        if self._next == len(self._handed_out):
            self._handed_out.append((name, _copied(value), _copied(value)))
        self._next += 1
        return self._handed_out[self._next - 1][1]

    def begin_again(self) -> None:
        """Hand out the same objects once more, in the same order."""
        self._next = 0

    def changed(self) -> list[str]:
        """The names of what differs from what was handed out, each once, in their order."""
        return list(dict.fromkeys(name for name, now, before in self._handed_out if not _same(now, before)))


@contextmanager
def explained_by_changes(changed: list[str]) -> Iterator[None]:
    """Where the judgement inside is Wrong and inputs were modified, that is the message."""
    try:
        yield
    except Wrong:
        if not changed:
            raise
        names = " and ".join(changed)
        why = f"the first call modified {names}; the second call, which was judged, got the modified value"
        then = "build a new object, or work on a copy: the caller still needs its inputs"
        raise Wrong("Your function modified its input.", why=why, next=then) from None


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {name: _copied(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    # A clone's elements lie apart, where those of an expanded tensor and its deep copy share a place.
    return value.clone() if hasattr(value, "clone") else copy.deepcopy(value)


def _same(now: Any, before: Any) -> bool:
    if type(now) is not type(before):
        return False
    if isinstance(now, dict):
        return list(now) == list(before) and all(_same(now[name], before[name]) for name in now)
    if isinstance(now, (list, tuple)):
        return len(now) == len(before) and all(map(_same, now, before))
    if hasattr(now, "equal") and hasattr(now, "dtype"):  # a tensor
        return now.dtype == before.dtype and bool(now.equal(before))
    return bool(now == before)
