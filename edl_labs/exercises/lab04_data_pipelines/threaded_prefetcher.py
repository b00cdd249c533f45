"""prefetcher: a bounded queue between a real thread and its consumer, untimed: every wait has a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong

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


@exercise("prefetcher", trusting=True, timeout_s=150)
class Prefetcher:
    """A real thread that loads ahead: bounded, in order, with its exceptions, and it ends.

    `student.Prefetcher(source, depth=)`: iterate it; `close()` ends its thread.
    """

    def probe(self, student: Any, case: Any) -> Any:
        before = set(threading.enumerate())
        source = _Source(case)
        try:
            make = student.Prefetcher
            return _bounded(
                lambda: _seen(make(source.items(), depth=case["depth"]), source, case, before), source, who=id(make)
            )
        finally:
            source.let_go.set()

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _judge_items(case, got, want)
        _judge_error(case, got, want)
        _judge_bound(case, got)
        if got["threads_left"]:
            raise Wrong(
                "a thread goes on after close()",
                why=f"{_items(got['taken'])} taken, then close() was called; a new thread was alive when it returned",
                next="a thread that waits at a full queue must be told to stop, and close() waits until it did",
            )
        if case["take"] < 0 and not got["source_closed"]:
            raise Wrong(
                "the source was left open", why="it ended, and its finally never ran", next="iterate it to its end"
            )

    def show(self, case: Any) -> str:
        end = f", then raises {case['error']}" if case["error"] else ""
        taken = "all" if case["take"] < 0 else str(case["take"])
        count = "endless" if case["count"] < 0 else f"{case['count']} items"
        slow = f" (number {case['slow']} takes it {_SLOW_S} s)" if case["slow"] else ""
        source = f"depth={case['depth']}; the source gives {count}{slow}{end}"
        return f"{source}; the consumer takes {taken}, then calls close()"


class _Source:
    """What the thread draws from: it notes how far it got, and ends when the check lets go."""

    def __init__(self, case: Any) -> None:
        self.case, self.given, self.closed, self.closing = case, 0, False, False
        self.raised: Exception | None = None
        self.let_go, self.drawing = threading.Event(), threading.Event()

    def items(self) -> Iterator[int]:
        try:
            while self.given != self.case["count"] and not self.let_go.is_set():
                self.given += 1
                if self.given == self.case["slow"]:
                    self.drawing.set()
                    self.let_go.wait(_SLOW_S)
                yield self.case["first"] + 3 * self.given
            if self.case["error"]:
                self.raised = _error_type(self.case["error"])(self.case["message"])
                raise self.raised
        finally:
            self.closed = True


def _error_type(name: str) -> type[Exception]:
    return ERRORS.get(name) or type(name, (Exception,), {})


def _bounded(work: Any, source: _Source, *, who: int) -> Any:
    """What `work()` gives, run where it can be left behind: a consumer that hangs is an answer too."""
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(("value", work()))
        except BaseException as error:
            box.append(("error", error))

    thread = threading.Thread(target=run, daemon=True, name="consumer of the check")
    thread.start()
    thread.join(_AGAIN_S if who in _HUNG else _LIMIT_S)
    if not box:
        _HUNG.add(who)
        return {"items": [], "error": "", "message": "", "same": True, "taken": 0, "given": source.given} | {
            "threads_left": 0,
            "source_closed": False,
            "hangs": True,
            "closing": source.closing,
        }
    kind, value = box[0]
    if kind == "error":
        raise value
    return value


def _seen(prefetcher: Any, source: _Source, case: Any, before: set[Any]) -> Any:
    items: list[Any] = []
    came: Exception | None = None
    iterator = iter(prefetcher)
    try:
        while len(items) != case["take"]:
            items.append(next(iterator))
            if len(items) > 10_000:
                break
    except StopIteration:
        pass
    except Exception as error:
        if source.raised is None:
            raise
        came = error
    given = _settled(source) if not case["slow"] else _slowly(source)
    source.closing = True
    prefetcher.close()
    prefetcher.close()
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
        "closing": False,
    }


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


def _left(before: set[Any]) -> int:
    """How many new threads are alive as close() returns; one in its last line is as good as gone."""
    own = {thread for thread in threading.enumerate() if thread.name == "consumer of the check"}
    deadline = time.monotonic() + _GONE_S
    while (left := set(threading.enumerate()) - before - own) and time.monotonic() < deadline:
        time.sleep(0.005)
    return len(left)


def _judge_items(case: Any, got: Any, want: Any) -> None:
    if got["hangs"] and got["closing"]:
        raise Wrong(
            "close() never returned: the thread waits at a full queue",
            why="close() waits for a thread that waits in put(), and nobody takes anything any more",
            next="put with a timeout, and look between two attempts whether close() was called",
        )
    if got["hangs"] and case["count"] and not got["given"]:
        raise Wrong(
            "the source was never asked for anything",
            why="the consumer waits for ever, and nobody drew even the first item",
            next="is the thread started, and does it iterate over the source?",
        )
    if got["hangs"]:
        raise Wrong(
            "the consumer waits for ever",
            why=f"nothing came for seconds; the source gave {got['given']}, and close() had not been called yet",
            next="how does the consumer learn that the source has ended, or failed? Was an item, or the end, dropped?",
        )
    if got["items"] == want["items"]:
        return
    if sorted(got["items"]) == sorted(want["items"]):
        raise Wrong(
            "the order changed", why=f"first {got['items'][:5]}", next="first in, first out: one thread, one queue"
        )
    if len(got["items"]) < len(want["items"]):
        told = "items were lost before the error" if case["error"] else "items were lost"
        raise Wrong(
            told,
            why=f"{len(got['items'])} of {len(want['items'])} came",
            next="what is in the queue when the source ends comes first, and then the end",
        )
    raise Wrong("the items changed", why=f"first {got['items'][:5]}", next="hand on what the source gives, and no more")


def _items(count: int) -> str:
    return "1 item was" if count == 1 else f"{count} items were"


def _judge_error(case: Any, got: Any, want: Any) -> None:
    if got["error"] == want["error"] and got["message"] == want["message"]:
        if got["same"]:
            return
        raise Wrong(
            "a copy of the exception reached the consumer",
            why=f"another object than the {want['error']} that the source raised: what else was known of it is lost",
            next="hand over the exception itself, and raise that",
        )
    if not got["error"]:
        raise Wrong(
            "the source's exception was swallowed",
            why=f"it raised {want['error']}, and the consumer saw an ordinary end: an epoch on half of the data",
            next="catch it in the thread, hand it over behind the items, and raise it in the consumer",
        )
    raise Wrong(
        "another exception reached the consumer",
        why=f"{got['error']}({got['message']!r}) instead of {want['error']}({want['message']!r})",
        next="raise the very exception that the source raised",
    )


def _judge_bound(case: Any, got: Any) -> None:
    ahead, depth = got["given"] - got["taken"], case["depth"]
    if case["take"] < 0:
        return
    # One more than the queue holds may be in the thread's hands.
    if ahead > depth + 1:
        raise Wrong(
            "the queue has no bound",
            why=f"the consumer took {got['taken']}, the source gave {got['given']}; depth is {depth}",
            next="a thread that is depth items ahead waits until one is taken",
        )
    if ahead < (1 if case["slow"] else depth) and (case["count"] < 0 or got["given"] < case["count"]):
        raise Wrong(
            "nothing is fetched ahead",
            why=f"the consumer took {got['taken']} and paused; the source gave {got['given']}, depth is {depth}",
            next="the thread goes on by itself, from the start, until depth items wait",
        )
