"""Arguments for the function under test: given once or made afresh, rotated from call to call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle, islice
from typing import Any

from edl_labs.errors import UsageError

_MOST = 64  # sets of arguments: a rotation long enough that none is remembered
_POOL_BYTES = 256 << 20  # more than the last-level cache of most machines, and still little memory
_LOOP = """
def block(fn, feed, now, drain):
    start = now()
    for {names} in feed:
        fn({arguments})
    if drain is not None:
        drain()
    return now() - start

def empty(feed, now):
    start = now()
    for {names} in feed:
        pass
    return now() - start
"""


class ArgumentPool:
    """A pool of argument tuples that calls take in turn. `given` is a tuple of arguments, or a factory of such tuples.

    A factory is called until the pool holds `fill_bytes` (so that a rotation does not stay in a cache), 64 sets, or
    as many as `fill_s` allows; tuples are used as they are.

    >>> feed = ArgumentPool((1, 2))
    >>> feed.next(), len(feed.pool), feed.rotates
    ((1, 2), 1, False)
    """

    def __init__(self, given: tuple[Any, ...] | Callable[[], Any], *, fill_bytes: int = 0, fill_s: float = 0.1) -> None:
        self.rotates = callable(given)
        self.pool = _made(given, fill_bytes, fill_s) if callable(given) else [_checked(given)]
        self._turn: Iterator[tuple[Any, ...]] = cycle(self.pool)
        self._loops = _loops(len(self.pool[0]))

    def next(self) -> tuple[Any, ...]:
        """The arguments of the next call."""
        return next(self._turn)

    def block_s(
        self,
        fn: Callable[..., object],
        calls: int,
        *,
        now: Callable[[], float],
        drain: Callable[[], object] | None,
    ) -> float:
        """Raw seconds of `calls` calls of `fn`, each with the next arguments."""
        return float(self._loops["block"](fn, islice(self._turn, calls), now, drain))

    def loop_s(self, turns: int = 2000) -> float:
        """What one turn of the loop that hands out arguments costs by itself, on the host."""
        now = time.perf_counter
        return min(float(self._loops["empty"](islice(self._turn, turns), now)) for _ in range(5)) / turns

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors and arrays in one set of arguments."""
        return total_bytes(self.pool[0])


def total_bytes(value: Any) -> int:
    """Bytes of all tensors and arrays in nested lists, tuples and dicts."""
    if isinstance(value, (list, tuple)):
        return sum(map(total_bytes, value))
    if isinstance(value, dict):
        return sum(map(total_bytes, value.values()))
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0


def _made(factory: Callable[[], Any], fill_bytes: int, fill_s: float) -> list[tuple[Any, ...]]:
    start = time.perf_counter()
    pool = [_checked(_as_tuple(factory()))]
    size = total_bytes(pool[0])
    goal = min(fill_bytes, _POOL_BYTES)
    while len(pool) < _MOST and (len(pool) < 4 or len(pool) * size < goal) and (len(pool) + 1) * size <= _POOL_BYTES:
        if len(pool) > 1 and time.perf_counter() - start > fill_s:
            break
        more = _checked(_as_tuple(factory()))
        if len(more) != len(pool[0]):
            raise UsageError(
                f"the inputs factory gave {len(pool[0])} arguments, then {len(more)}",
                why="each call takes the same number of arguments",
                next="return a tuple of one length each time",
            )
        pool.append(more)
    return pool


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _checked(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise UsageError(
            f"inputs is a {type(value).__name__}",
            why="it says which arguments each call gets",
            next="give a tuple such as inputs=(x, y), or a function that returns one",
        )
    return tuple(value)


@cache
def _loops(count: int) -> dict[str, Any]:
    # Made from text, as collections.namedtuple is: unpacking into names is the cheapest way to pass arguments.
    names = [f"a{i}" for i in range(count)]
    space: dict[str, Any] = {}
    target = f"({', '.join(names)},)" if names else "_"
    exec(_LOOP.format(names=target, arguments=", ".join(names)), space)
    return space
