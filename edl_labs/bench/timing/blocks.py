"""Timing blocks of calls: the inner loops, the arguments that calls take in turn, and nothing else inside a block."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice, repeat
from typing import Any

from edl_labs.clock import Clock, is_asynchronous, is_processor_time
from edl_labs.errors import EdlError, UsageError
from edl_labs.units import counted

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
MAX_CALLS = 1 << 20  # a million: even an empty function fills a block
_EIGHT = 8  # calls a turn of the loop, as many as `_loop` writes out


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
        """What one turn of the loop that hands out arguments costs alone, on the host."""
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
                f"the inputs factory returned {len(pool[0])} arguments first, and {len(more)} later",
                why="each call must get the same number of arguments",
                next="return a tuple of the same length each time",
            )
        pool.append(more)
    return pool


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _checked(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise UsageError(
            f"inputs= got a {type(value).__name__}",
            why="inputs= defines the arguments of each call",
            next="pass a tuple such as inputs=(x, y), or a function that returns one",
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


# A person who has waited half a minute for one call is not made to wait for another without a reason.
_AGAIN_UP_TO_S = 30.0


class FunctionFailed(EdlError):
    """The function that was to be timed raised; its own exception is the cause."""


@dataclass(frozen=True)
class FirstCall:
    """The very first call of a function: how long it took, and what was seen of it that is done once in a process."""

    took_s: float
    cause: str = ""

    @property
    def may_be_repeated(self) -> bool:
        """Whether a second call is worth its time: this one was no longer than people wait, or it did what is over."""
        return self.took_s <= _AGAIN_UP_TO_S or bool(self.cause)


def done_once() -> Callable[[], str]:
    """Asked after a call that begins now: what of it is done once in a process; '' where nothing was seen."""
    frames, modules = compiled_frames(), len(sys.modules)

    def cause() -> str:
        compiled, loaded = compiled_frames() - frames, len(sys.modules) - modules
        if compiled > 0:
            return f"torch.compile compiled {counted(compiled, 'time')}"
        return f"it imported {counted(loaded, 'module')}" if loaded > 0 else ""

    return cause


def compiled_frames() -> int:
    """How many frames torch.compile has compiled in this process so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["frames"].get("total", 0))


class Runner:
    """Times blocks of calls of `fn` on `clock`: `block_s(k)` is the raw, drained time of k calls.

    With a `feed`, call i gets the i-th of its rotating arguments. With `before_each` (a cache flush), each call of a
    block is timed alone, and what runs before it is not counted.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        clock: Clock,
        name: str = "",
        feed: ArgumentPool | None = None,
        before_each: Callable[[], object] | None = None,
    ) -> None:
        self.fn, self.clock, self.name, self.feed, self.before_each = fn, clock, name or label(fn), feed, before_each
        self.asynchronous = is_asynchronous(clock)
        self.calls = 0
        self.first: FirstCall | None = None
        self._loop_s = feed.loop_s() if feed is not None and is_processor_time(clock) else 0.0

    def block_s(self, length: int) -> float:
        """Seconds on the clock from before the first of `length` calls to after the last; may raise FunctionFailed."""
        self.calls += length
        try:
            with collector_off():
                return self._timed(length)
        except EdlError:
            raise
        except Exception as error:
            raise failed(self.name, error) from error

    def once(self) -> Any:
        """The result of one call; with a feed, always on its first arguments."""
        self.calls += 1
        cause, start = done_once(), self.clock.now_s()
        try:
            result = self.fn(*(self.feed.pool[0] if self.feed else ()))
        except EdlError:
            raise
        except Exception as error:
            raise failed(self.name, error) from error
        if self.first is None:
            if self.asynchronous:
                self.clock.synchronize()
            self.first = FirstCall(self.clock.now_s() - start, cause())
        return result

    def first_call(self) -> FirstCall:
        """The very first call, made now unless it was made before."""
        if self.first is None:
            cause = done_once()
            self.first = FirstCall(self.block_s(1), cause())
        return self.first

    def _timed(self, calls: int) -> float:
        if self.before_each is not None:
            return sum(self._cold_s() for _ in range(calls)) if calls else self._block(0)
        return self._block(calls) - calls * self._loop_s

    def _cold_s(self) -> float:
        assert self.before_each is not None
        self.before_each()
        return self._block(1)

    def _block(self, calls: int) -> float:
        clock = self.clock
        if self.asynchronous:
            clock.synchronize()
        drain = clock.synchronize if self.asynchronous else None
        if self.feed is not None:
            return self.feed.block_s(self.fn, calls, now=clock.now_s, drain=drain)
        return _loop(self.fn, calls, clock.now_s, drain=drain)


def label(fn: object) -> str:
    """A short name for a function."""
    name = str(getattr(fn, "__name__", "") or type(fn).__name__)
    return "the function" if name == "<lambda>" else name


def failed(name: str, error: BaseException) -> FunctionFailed:
    """The message for a function that raised instead of being timed."""
    text = str(error).strip().splitlines()
    return FunctionFailed(
        f"{name} raised {type(error).__name__}" + (f": {text[0][:200]}" if text else ""),
        why="a call that fails cannot be timed",
        next="call it once yourself, fix the error, and measure again",
    )


@contextmanager
def collector_off() -> Iterator[None]:
    """The garbage collector is off inside, and as it was before afterwards, whatever happens."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _loop(
    fn: Callable[[], object], calls: int, now: Callable[[], float], *, drain: Callable[[], object] | None
) -> float:
    # Eight calls a turn: the loop's own cost, about 4 ns a turn, becomes half a nanosecond a call.
    eights, rest = repeat(None, calls // _EIGHT), repeat(None, calls % _EIGHT)
    start = now()
    for _ in eights:
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
        fn()
    for _ in rest:
        fn()
    if drain is not None:
        drain()
    return now() - start
