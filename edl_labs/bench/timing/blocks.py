"""Timing blocks of calls: the inner loops, and what surrounds them so that nothing but the calls is in them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

from edl_labs.bench.timing.argument_pool import ArgumentPool
from edl_labs.clock import Clock, is_asynchronous, is_processor_time
from edl_labs.errors import EdlError

MAX_CALLS = 1 << 20  # a million: even an empty function fills a block
_EIGHT = 8  # calls a turn of the loop, as many as `_plain` writes out


class FunctionFailed(EdlError):
    """The function that was to be timed raised; its own exception is the cause."""


class Runner:
    """Times blocks of calls of `fn` on `clock`: `block_s(k)` is the raw, drained time of k calls.

    With a `feed`, call i gets the i-th of its rotating arguments. With `before_each` (a cache flush), each call of a
    block is timed by itself and what runs before it is not counted.
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
        self._loop_s = feed.loop_s() if feed is not None and is_processor_time(clock) else 0.0

    def block_s(self, calls: int) -> float:
        """Seconds on the clock from before the first of `calls` calls to after the last; may raise FunctionFailed."""
        self.calls += calls
        try:
            with collector_off():
                return self._timed(calls)
        except EdlError:
            raise
        except Exception as error:
            raise failed(self.name, error) from error

    def once(self) -> Any:
        """The result of one call, untimed; with a feed, always on its first arguments."""
        self.calls += 1
        try:
            return self.fn(*(self.feed.pool[0] if self.feed else ()))
        except EdlError:
            raise
        except Exception as error:
            raise failed(self.name, error) from error

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
        if drain is None:
            return _plain(self.fn, calls, clock.now_s)
        return _drained(self.fn, calls, clock.now_s, drain=drain)


def label(fn: object) -> str:
    """A short name for a function."""
    name = str(getattr(fn, "__name__", "") or type(fn).__name__)
    return "the function" if name == "<lambda>" else name


def failed(name: str, error: BaseException) -> FunctionFailed:
    """The message for a function that raised instead of being timed."""
    text = str(error).strip().splitlines()
    return FunctionFailed(
        f"{name} raised {type(error).__name__}" + (f": {text[0][:200]}" if text else ""),
        why="it was called to be timed, and no time can be given for a call that fails",
        next="call it once by itself, fix it, then measure again",
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


def _plain(fn: Callable[[], object], calls: int, now: Callable[[], float]) -> float:
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
    return now() - start


def _drained(fn: Callable[[], object], calls: int, now: Callable[[], float], *, drain: Callable[[], object]) -> float:
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
    drain()
    return now() - start
