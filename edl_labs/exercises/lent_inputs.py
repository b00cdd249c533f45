"""Inputs that are lent to a student's functions: copies, of which it is told which came back changed."""

from __future__ import annotations

import copy
from typing import Any

from edl_labs.errors import Wrong


class Lent:
    """Hands out copies of tensors, lists and dicts by name, and says which of them are no longer what they were.

    >>> lent = Lent()
    >>> lent("counts", [2, 1]).sort(), lent("edges", [0, 1, 2])
    (None, [0, 1, 2])
    >>> lent.changed()
    ['counts']
    """

    def __init__(self) -> None:
        self._handed_out: list[tuple[str, Any, Any]] = []

    def __call__(self, name: str, value: Any) -> Any:
        """A copy of `value`, all that is in it included."""
        handed = _copied(value)
        self._handed_out.append((name, handed, _copied(value)))
        return handed

    def changed(self) -> list[str]:
        """The names of what differs from what was handed out, each once, in their order."""
        return list(dict.fromkeys(name for name, now, before in self._handed_out if not _same(now, before)))


def judge_lent(changed: list[str]) -> None:
    """Wrong where something that was handed in has changed; `changed` is what `Lent.changed` gave."""
    if changed:
        why = f"after your call {' and '.join(changed)} {'is' if len(changed) == 1 else 'are'} no longer what was given"
        then = "build something new, or work on a copy: who calls you goes on with the old one"
        raise Wrong("what your function was given has been changed", why=why, next=then)


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
