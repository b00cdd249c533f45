"""A limit on how long a block of a student's code may run, in the thread that runs it."""

from __future__ import annotations

import ctypes
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Code that catches everything, `except:` in a loop, is told again: this many seconds after the last time.
_AGAIN_S = 1.0
_AT_ONCE_S = 1e-6  # the shortest that a timer can be set to; 0 would switch it off
_clock_s = time.monotonic


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
def time_limit(limit_s: float) -> Iterator[Limit]:
    """TookTooLong in the block once it has run for `limit_s` seconds; again and again, should the block catch it.

    In the main thread, where the system has SIGALRM (not Windows), it also ends waiting: a sleep, a lock, a join.
    Elsewhere it takes effect at the next line of Python.
    """
    limit = Limit(limit_s)
    with _alarm(limit) if _has_alarm() else _raised_from_beside(limit):
        yield limit


def _has_alarm() -> bool:
    """Whether SIGALRM is here for this thread. A handler that C code has set (None) could not be put back."""
    here = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    return here and signal.getsignal(signal.SIGALRM) is not None


@contextmanager
def _alarm(limit: Limit) -> Iterator[None]:
    """The limit by SIGALRM. There is one timer: an alarm that was set before goes on, and comes when it is due."""
    outer, (left_s, every_s) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    began_s = _clock_s()
    own_s, due_s = began_s + limit.limit_s, began_s + left_s if left_s else math.inf

    def ring(number: int, frame: Any) -> None:
        nonlocal due_s
        now_s = _clock_s()
        if not callable(outer) or not due_s < own_s or now_s >= own_s:
            limit.end()
        due_s = now_s + every_s if every_s else math.inf
        signal.setitimer(signal.ITIMER_REAL, max(min(own_s, due_s) - now_s, _AT_ONCE_S), _AGAIN_S)
        if callable(outer):
            outer(number, frame)

    first_s = min(limit.limit_s, left_s) if left_s and callable(outer) else limit.limit_s
    try:  # the outer alarm may come between any two of these lines
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, first_s, _AGAIN_S)
        yield
    finally:
        # The alarm may come in here as well; it must not get out from where nobody expects it.
        while True:
            with suppress(TookTooLong):
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, outer)
                break
        if due_s < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(due_s - _clock_s(), _AT_ONCE_S), every_s)


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
def notify_if_slow(after_s: float, tell: Callable[[], None]) -> Iterator[None]:
    """Calls `tell` once, from another thread, where the block still runs after `after_s` seconds."""
    timer = threading.Timer(after_s, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
