"""prefetcher: a bounded queue between a real thread and its consumer, untimed: every wait has a limit."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab04_data_pipelines.prefetcher_symptoms import (
    CLOSED_ELSEWHERE,
    ERROR_AHEAD,
    FALSE_ITEMS,
    items_taken,
    judge_bound,
    judge_closing,
    judge_error,
    judge_hang,
    judge_items,
)
from edl_labs.units import counted

# Long enough for any machine, and only ever waited out by what is wrong; shorter for what was waited out before.
_LIMIT_S, _AGAIN_S = 5.0, 0.5
_HUNG: set[int] = set()
# Nothing has moved for so long: whoever could go on has done so.
_STILL_S = 0.15
# How long a slow source keeps the thread that draws from it, and how long a thread that ends may take to be gone.
_SLOW_S, _GONE_S = 0.25, 0.03
_KNOWN = (ValueError, OSError, KeyError, StopAsyncIteration, EOFError, RuntimeError, TypeError, ZeroDivisionError)
ERRORS: dict[str, type[Exception]] = {error.__name__: error for error in _KNOWN}
# An exception that no list of known ones holds: its type is made anew for each source.
OWN = "BadRecord"
_OURS = "consumer of the check"


@exercise("prefetcher", trusting=True, sleeps=True, timeout_s=150)
class Prefetcher(Exercise):
    """A real thread that loads ahead: bounded, in order, with its exceptions, and it ends.

    `student.Prefetcher(source, depth=)`: iterate it; `close()` ends its thread.
    """

    answers = ("items", "error")

    def probe(self, student: Any, given: Any) -> Any:
        before = set(threading.enumerate())
        source = _Source(given)
        try:
            make = student.Prefetcher
            return _bounded(lambda: _seen(make, source, given, before), source, before, who=id(make))
        finally:
            source.let_go.set()

    def compare(self, case: Any, got: Any, want: Any) -> None:
        judge_hang(case, got)
        judge_items(case, got, want)
        judge_error(case, got, want)
        judge_bound(case, got)
        judge_closing(got)
        if got["threads_left"]:
            raise Wrong(
                "your thread is still running after close()",
                why=f"{items_taken(got['taken'])} taken, then close() was called; when it returned, a new thread was "
                "still alive",
                next="signal the thread to stop, even if it is waiting at a full queue, and wait in close() until it "
                "has stopped",
            )
        if case["take"] < 0 and not got["source_closed"]:
            raise Wrong(
                "your code left the source open",
                why="its last item was taken, but its `finally` never ran",
                next="iterate over the source until it ends",
            )

    def format_answer(self, case: Any, got: Any) -> str:
        """The items that came; of one that hangs the message says what is known."""
        return "" if got["hangs"] else f"{items_taken(got['taken'])} taken: {str(got['items'])[:200]}"

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What only an endless source shows: all of it is drawn before the first item comes."""
        for case, one in zip(cases, got, strict=True):
            if (
                case["count"] < 0
                and one["hangs"]
                and one["made"]
                and not one["taken"]
                and one["given"] > 100 * case["depth"]
            ):
                return Wrong(
                    "your code draws the whole source before it passes on the first item",
                    why=f"more than {100 * case['depth']} items of an endless source were drawn, but none was "
                    "delivered",
                    next="put each item as soon as it is drawn: list(source), for example, waits for the source's end",
                )
        return None

    def format_case(self, case: Any) -> str:
        end = f", then raises {case['error']}" if case["error"] else ""
        taken = "all" if case["take"] < 0 else str(case["take"])
        count = "endless" if case["count"] < 0 else counted(case["count"], "item")
        slow = f" (item number {case['slow']} takes {_SLOW_S} s)" if case["slow"] else ""
        then = f"the consumer takes {taken}, then calls close()"
        if case["kind"] == FALSE_ITEMS:
            slow = ", the first half of them 0, the rest None"
        if case["kind"] == ERROR_AHEAD:
            then = f"the consumer begins after that, and {then.removeprefix('the consumer ')}"
        if case["kind"] == CLOSED_ELSEWHERE:
            slow = f" (item number {case['slow']} arrives only after close() was called)"
            then = f"the consumer takes {taken} and waits for the next one; another thread calls close()"
        return f"depth={case['depth']}; the source gives {count}{slow}{end}; {then}"


class _Source:
    """What the thread draws from: it notes how far it got, and ends when the check lets go."""

    def __init__(self, case: Any) -> None:
        self.case, self.given, self.taken, self.closed, self.closing = case, 0, 0, False, False
        self.raised: Exception | None = None
        self.let_go, self.drawing, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.asked_again = self.made = False
        self.prefetcher: Any = None

    def items(self) -> Iterator[int | None]:
        try:
            while self.given != self.case["count"] and not self.let_go.is_set():
                self.given += 1
                if self.given == self.case["slow"]:
                    self.drawing.set()
                    self.let_go.wait(_LIMIT_S if self.case["kind"] == CLOSED_ELSEWHERE else _SLOW_S)
                yield self._item()
            if self.case["error"]:
                self.raised = _error_type(self.case["error"])(self.case["message"])
                raise self.raised
        finally:
            self.closed = True
            self.ended.set()

    def _item(self) -> int | None:
        if self.case["kind"] == FALSE_ITEMS:
            return 0 if 2 * self.given <= self.case["count"] else None
        return self.case["first"] + 3 * self.given


def _error_type(name: str) -> type[Exception]:
    return ERRORS.get(name) or type(name, (Exception,), {})


def _bounded(work: Any, source: _Source, before: set[Any], *, who: int) -> Any:
    """What `work()` gives, run where it can be left behind: a consumer that hangs is an answer too."""
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(("value", work()))
        except BaseException as error:
            box.append(("error", error))

    thread = threading.Thread(target=run, daemon=True, name=_OURS)
    thread.start()
    thread.join(_AGAIN_S if who in _HUNG else _LIMIT_S)
    if not box:
        _HUNG.add(who)
        return {"items": [], "error": "", "message": "", "same": True, "given": source.given} | {
            "taken": source.taken,
            "threads_left": _left(before, within_s=0.0),
            "source_closed": False,
            "hangs": True,
            "made": source.made,
            "closing": source.closing,
            "dropped": _dropped(source, before),
            "refused": "",
        }
    kind, value = box[0]
    if kind == "error":
        raise value
    return value


def _dropped(source: _Source, before: set[Any]) -> bool:
    """Whether items came to nobody: all are drawn, the thread is gone, and the prefetcher's one queue is empty."""
    with contextlib.suppress(Exception):
        kept = [value for value in vars(source.prefetcher).values() if isinstance(value, queue.Queue)]
        is_over = source.ended.is_set() and not _left(before, within_s=0.0)
        return is_over and source.taken < source.given and len(kept) == 1 and kept[0].maxsize > 0 and kept[0].empty()
    return False


def _seen(make: Any, source: _Source, case: Any, before: set[Any]) -> Any:
    prefetcher = make(source.items(), depth=case["depth"])
    source.made, source.prefetcher = True, prefetcher
    items: list[Any] = []
    came: Exception | None = None
    if case["kind"] == ERROR_AHEAD:
        source.ended.wait(_LIMIT_S / 2)
        _left(before, within_s=_AGAIN_S)  # what is kept of the error is kept now
    iterator = iter(prefetcher)
    try:
        while len(items) != case["take"]:
            items.append(next(iterator))
            source.taken += 1
            if len(items) > 10_000:
                break
    except StopIteration:
        pass
    except Exception as error:
        if source.raised is None:
            raise
        came = error
    if case["kind"] == CLOSED_ELSEWHERE:
        _go_on_while_closed(iterator, prefetcher, source)
    given = _settled(source) if not case["slow"] else _slowly(source)
    source.closing = True
    before_that = "a second time" if case["kind"] == CLOSED_ELSEWHERE else "after the end" if case["take"] < 0 else ""
    refused = _closed_twice(prefetcher, make, when=before_that)
    return {
        "items": items,
        "error": type(came).__name__ if came else "",
        "message": str(came.args[0]) if came and came.args else "",
        "same": came is source.raised,
        "taken": len(items),
        "given": given,
        "threads_left": _left(before),
        "source_closed": source.closed,
        "hangs": False,
        "made": True,
        "closing": False,
        "dropped": False,
        "refused": refused,
    }


def _closed_twice(prefetcher: Any, make: Any, *, when: str) -> str:
    """Close it twice: what is raised "after the end" or "a second time", by one that can be closed when it is new."""
    try:
        prefetcher.close()
        when = "a second time"
        prefetcher.close()
    except Exception as error:
        if isinstance(error, RuntimeError) and "before it is started" in str(error):
            error.args = (f"{error}: start it in `__init__`, before anything iterates",)
            raise
        if not when or not _can_be_closed(make):
            raise
        return f"{when}: {type(error).__name__}: {error}"[:200]
    return ""


def _can_be_closed(make: Any) -> bool:
    try:
        make(iter(range(2)), depth=2).close()
    except Exception:
        return False
    return True


def _go_on_while_closed(iterator: Iterator[Any], prefetcher: Any, source: _Source) -> None:
    """Wait for an item while another thread calls close(). What still comes, and how it ends, is left open."""
    other = threading.Thread(
        target=_close_elsewhere, args=(prefetcher, source, threading.get_ident()), daemon=True, name=_OURS
    )
    other.start()
    source.asked_again = True
    with contextlib.suppress(Exception):
        for _ in range(10_000):
            next(iterator)
    other.join(_LIMIT_S)


def _close_elsewhere(prefetcher: Any, source: _Source, consumer: int) -> None:
    """Call close() once the consumer waits for the item that the source keeps, then let the source go on."""
    deadline = time.monotonic() + _LIMIT_S / 2
    while not (source.drawing.is_set() and source.asked_again and _waits_elsewhere(consumer)):
        if time.monotonic() > deadline:
            return
        time.sleep(0.005)
    time.sleep(_STILL_S)

    def close() -> None:
        with contextlib.suppress(Exception):  # raised once more where the consumer calls it
            prefetcher.close()

    closer = threading.Thread(target=close, daemon=True, name=_OURS)
    closer.start()
    closer.join(_STILL_S)
    source.let_go.set()
    closer.join(_LIMIT_S)


def _waits_elsewhere(thread: int) -> bool:
    """Whether a thread is in another file than this one: in the student's code, or in what that calls."""
    frame = sys._current_frames().get(thread)
    return frame is not None and frame.f_code.co_filename != __file__


def _settled(source: _Source) -> int:
    """How many items the source gave once it gives no more, or runs away."""
    deadline, seen, since = time.monotonic() + _LIMIT_S / 2, source.given, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < _STILL_S:
        time.sleep(0.01)
        if source.given != seen:
            seen, since = source.given, time.monotonic()
        if seen > 100_000:
            break
    return seen


def _slowly(source: _Source) -> int:
    """How many items the source gave, the one included over which it keeps the thread now."""
    source.drawing.wait(_LIMIT_S / 2)
    return source.given


def _left(before: set[Any], *, within_s: float = _GONE_S) -> int:
    """How many new threads are alive as close() returns; one in its last line is as good as gone."""
    own = {thread for thread in threading.enumerate() if thread.name == _OURS}
    deadline = time.monotonic() + within_s
    while (left := set(threading.enumerate()) - before - own) and time.monotonic() < deadline:
        time.sleep(0.005)
    return len(left)
