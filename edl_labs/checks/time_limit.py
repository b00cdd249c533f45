"""A limit on how long a block of a student's code may run, in the thread that runs it."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Code that catches everything, `except:` in a loop, is told again: this many seconds after the last time.
_AGAIN_S = 1.0


class TookTooLong(BaseException):
    """Raised in code that has reached its limit. No `Exception`: `except Exception` in a loop must not catch it."""


class Limit:
    """A limit that may be reached: `reached` says whether it was."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.reached = False

    def end(self, *_: Any) -> None:
        """The limit is reached: raise TookTooLong here."""
        self.reached = True
        raise TookTooLong


@contextmanager
def time_limit(limit_s: float, *, on: bool = True) -> Iterator[Limit]:
    """TookTooLong in the block once it has run for `limit_s` seconds; again and again, should the block catch it.

    In the main thread, where the system has SIGALRM (not Windows), it also ends waiting: a sleep, a lock, a join.
    Elsewhere it takes effect at the next line of Python. With `on=False` there is no limit.
    """
    limit = Limit(limit_s)
    if not on:
        yield limit
    elif hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        with _alarm(limit):
            yield limit
    else:
        with _raised_from_beside(limit):
            yield limit


@contextmanager
def _alarm(limit: Limit) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, limit.end)
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, limit.limit_s, _AGAIN_S)
    try:
        yield
    finally:
        # The alarm may come in here as well; it must not get out from where nobody expects it.
        while True:
            with suppress(TookTooLong):
                signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
                signal.signal(signal.SIGALRM, before)
                break


@contextmanager
def _raised_from_beside(limit: Limit) -> Iterator[None]:
    """Where signals do not reach: another thread has the interpreter raise it in this one."""
    done, thread = threading.Event(), ctypes.c_ulong(threading.get_ident())

    def watch() -> None:
        wait_s = limit.limit_s
        while not done.wait(wait_s):
            limit.reached, wait_s = True, _AGAIN_S
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TookTooLong))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        while True:
            with suppress(TookTooLong):
                done.set()
                watcher.join()
                # What was asked for and has not been raised yet is taken back.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
                break


@contextmanager
def told_when_slow(after_s: float, tell: Callable[[], None]) -> Iterator[None]:
    """Calls `tell` from a thread beside, once, where the block still runs after `after_s` seconds."""
    timer = threading.Timer(after_s, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
