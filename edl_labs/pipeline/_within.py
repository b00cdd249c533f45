"""Limits on waiting: a call that does not return ends with an error that names what was waited for."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError

T = TypeVar("T")


class _Rang(BaseException):
    """A limit that is reached: no Exception, so that code which tries again after any of those does not swallow it."""


class TookTooLong(EdlError):
    """A wait exceeded its limit."""


@checked_arguments()
def within(limit_s: float, fn: Callable[[], T], *, what: str) -> T:
    """What `fn` returns, or TookTooLong, naming `what`, when it does not return within `limit_s`.

    In the main thread of a Unix process a timer interrupts the call itself, and costs nothing; elsewhere the call runs
    in a daemon thread that is left behind.
    """
    if can_alarm():
        with alarm(limit_s, what=what):
            return fn()
    return _in_thread(limit_s, fn, what)


def can_alarm() -> bool:
    """Whether a timer can interrupt this thread: the main one of a Unix process."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


@contextmanager
def alarm(limit_s: float, *, what: str, **advice: str) -> Iterator[None]:
    """A block that TookTooLong ends after `limit_s`; a timer that was running before goes on afterwards.

    `advice` is the error's `why` and `next`, where a loader's do not fit.
    """

    rang = _Rang()

    def ring(signum: int, frame: Any) -> None:
        raise rang

    start = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    except _Rang as error:
        if error is not rang:
            raise
        raise too_long(what, limit_s, **advice) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(left_s - (time.monotonic() - start), 1e-3), every_s)


def too_long(
    what: str,
    limit_s: float,
    *,
    why: str = "a worker hangs or died, a disk or a lock does not respond, or the work takes longer than expected",
    next: str = "try the loader with workers=0 to see the error itself, or increase limit_s",
) -> TookTooLong:
    """The error for a wait that reached its limit."""
    return TookTooLong(f"{what} did not arrive within {limit_s:g} s", why=why, next=next)


def _in_thread(limit_s: float, fn: Callable[[], T], what: str) -> T:
    result: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            result.append((True, fn()))
        except BaseException as error:
            result.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not result:
        raise too_long(what, limit_s)
    good, value = result[0]
    if not good:
        raise value
    return value
