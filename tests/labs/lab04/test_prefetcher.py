"""prefetcher: what close() promises, whose exception arrives, and a given consumer that waits for nothing for ever."""

from __future__ import annotations

import queue
import threading
import time
from types import SimpleNamespace

import numpy
import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.exercises.lab04_data_pipelines import threaded_prefetcher
from tests.sampling import few


def in_time(work, limit_s=20.0):
    """What `work()` gives, or None if it still runs after `limit_s`."""
    box = []
    thread = threading.Thread(target=lambda: box.append(work()), daemon=True)
    thread.start()
    thread.join(limit_s)
    return box[0] if box else None


@pytest.mark.slow
def test_a_close_that_only_sets_the_flag_is_refused(judged, solution):
    class Flag(solution["Prefetcher"]):
        def close(self):
            self._closed.set()

    outcome = judged("prefetcher", Prefetcher=Flag)

    assert "your thread is still running after close()" == outcome.what
    assert outcome.points < 1


@pytest.mark.slow
def test_a_close_that_waits_for_the_last_line_of_its_thread_passes(judged, solution):
    class Told(solution["Prefetcher"]):
        def __init__(self, source, *, depth):
            self._done = threading.Event()
            super().__init__(source, depth=depth)

        def _fill(self, source):
            super()._fill(source)
            self._done.set()

        def close(self):
            self._closed.set()
            self._done.wait()

    assert "passed" == judged("prefetcher", Prefetcher=Told).state


@pytest.mark.slow
def test_an_equal_exception_is_not_the_very_same(judged, solution):
    class Copies(solution["Prefetcher"]):
        def __iter__(self):
            try:
                yield from super().__iter__()
            except Exception as error:
                raise type(error)(*error.args) from None

    assert "your code passed on a copy of the exception" == judged("prefetcher", Prefetcher=Copies).what


@pytest.mark.slow
def test_a_wrapped_exception_is_told_to_be_another_one(judged, solution):
    class Wraps(solution["Prefetcher"]):
        def __iter__(self):
            try:
                yield from super().__iter__()
            except Exception as error:
                raise AssertionError(f"the source failed: {error}") from error

    assert "your code passed on a different exception" == judged("prefetcher", Prefetcher=Wraps).what


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_list_of_known_exceptions_is_long_enough(judged, solution):
    known = (ValueError, OSError, LookupError, StopAsyncIteration, EOFError, RuntimeError, TypeError, ArithmeticError)
    made = []

    class Known(solution["Prefetcher"]):
        def __init__(self, source, *, depth):
            made.append(self)
            super().__init__(source, depth=depth)

        def _fill(self, source):
            try:
                for item in source:
                    if not self._put("item", item):
                        return
                self._put("end", None)
            except known as error:
                self._put("error", error)

    outcome = judged("prefetcher", Prefetcher=Known)
    for prefetcher in made:
        prefetcher.close()  # which lets the consumers go that wait
    for thread in threading.enumerate():
        if thread.name == "consumer of the check":
            thread.join(20)

    assert "the consumer waits forever" == outcome.what


@pytest.mark.slow
def test_a_queue_without_kinds_that_close_wakes_with_an_error_passes(judged):
    """Another right answer: marks of its own for the end, a condition, and an exception for who waits at close()."""

    class Other:
        def __init__(self, source, *, depth):
            self._change, self._items, self._depth = threading.Condition(), [], depth
            self._ended, self._closed = None, False
            self._thread = threading.Thread(target=self._draw, args=(source,), daemon=True)
            self._thread.start()

        def _draw(self, source):
            error = None
            try:
                for item in source:
                    with self._change:
                        self._change.wait_for(lambda: self._closed or len(self._items) < self._depth)
                        if self._closed:
                            return
                        self._items.append(item)
                        self._change.notify_all()
            except BaseException as raised:
                error = raised
            with self._change:
                self._ended = (error,)
                self._change.notify_all()

        def __iter__(self):
            return self

        def __next__(self):
            with self._change:
                self._change.wait_for(lambda: self._items or self._ended or self._closed)
                if self._items:
                    self._change.notify_all()
                    return self._items.pop(0)
                if self._closed:
                    raise RuntimeError("the prefetcher was closed")
                raise self._ended[0] or StopIteration

        def close(self):
            with self._change:
                self._closed = True
                self._change.notify_all()
            self._thread.join()

    assert "passed" == judged("prefetcher", Prefetcher=Other).state


def test_a_second_iteration_after_the_end_gives_nothing(solution):
    prefetcher = solution["Prefetcher"](iter(range(3)), depth=2)

    assert [[0, 1, 2], [], []] == [in_time(lambda: list(prefetcher)) for _ in range(3)]


def test_a_consumer_that_waits_is_let_go_by_a_close_elsewhere(solution):
    let_go = threading.Event()

    def slow():
        yield 1
        let_go.wait(20)
        yield 2

    prefetcher = solution["Prefetcher"](slow(), depth=1)
    closer = threading.Thread(target=lambda: (time.sleep(0.2), prefetcher.close()), daemon=True)
    closer.start()
    seen = in_time(lambda: list(prefetcher), limit_s=10.0)
    let_go.set()
    closer.join(20)

    assert [1] == seen
    assert not closer.is_alive()


def test_what_was_raised_ends_the_iteration_too(solution):
    def broken():
        yield 1
        raise OSError("record 2 is truncated")

    prefetcher = solution["Prefetcher"](broken(), depth=4)

    with pytest.raises(OSError, match="record 2"):
        list(prefetcher)
    assert [] == in_time(lambda: list(prefetcher))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "told"),
    few(
        [
            (str, "for `items`, expected a number, got text"),
            (lambda item: ("item", item), "for `items`, expected a number, got a list or a tuple"),
            (lambda item: item + 0.5, "your code changed the items"),
        ],
        quick=1,
    ),
)
def test_items_that_became_something_else_are_told_as_what_came(judged, solution, kind, told):
    class Changes(solution["Prefetcher"]):
        def __iter__(self):
            return (kind(item) for item in super().__iter__())

    outcome = judged("prefetcher", Prefetcher=Changes)

    assert 0 == outcome.points
    assert told in outcome.what


@pytest.mark.slow
@pytest.mark.parametrize("kind", [float, numpy.int64, numpy.asarray])
def test_items_may_be_any_kind_of_whole_number(judged, solution, kind):
    class Kinds(solution["Prefetcher"]):
        def __iter__(self):
            return (item if item is None else kind(item) for item in super().__iter__())

    assert "passed" == judged("prefetcher", Prefetcher=Kinds).state


CASE = {"kind": "all", "first": 0, "depth": 3, "count": 4, "take": -1, "error": "", "message": "", "slow": 0}


@pytest.mark.parametrize(
    ("close", "take", "told"),
    [
        (
            "if self._closed.is_set(): raise RuntimeError('closed')",
            -1,
            "your close() raised an exception when it was called after the last item",
        ),
        (
            "if self._closed.is_set(): raise OSError",
            2,
            "your close() raised an exception when it was called a second time",
        ),
        # Near it: one that cannot be closed at all.
        ("self._no_such_name", -1, "your code raised AttributeError"),
        ("raise OSError", 2, "your code raised OSError"),
    ],
)
def test_a_close_that_raises_is_named_where_a_new_one_can_be_closed(
    exercises, solution, monkeypatch, close, take, told
):
    monkeypatch.setattr(threaded_prefetcher, "_STILL_S", 0.01)
    names = dict(solution)
    exec(f"class Raises(Prefetcher):\n def close(self):\n  {close}\n  super(Raises, self).close()", names)
    case = {**CASE, "take": take}
    want, got = (
        collect(exercises["prefetcher"], {"Prefetcher": one}, [case])
        for one in (solution["Prefetcher"], names["Raises"])
    )

    assert judge(exercises["prefetcher"], [case], got, [want[0]["value"]], points=1).what.startswith(told)


@pytest.mark.parametrize(
    ("given", "kept", "is_over", "dropped"),
    [
        (4, [], True, True),
        # Near it: all came, one waits in the queue, the source goes on.
        (2, [], True, False),
        (4, ["item"], True, False),
        (4, [], False, False),
    ],
)
def test_items_were_dropped_where_they_were_drawn_and_wait_nowhere(given, kept, is_over, dropped):
    source = threaded_prefetcher._Source(CASE)
    source.given, source.taken, source.prefetcher = given, 2, SimpleNamespace(queue=queue.Queue(3))
    for item in kept:
        source.prefetcher.queue.put(item)
    if is_over:
        source.ended.set()

    assert dropped == threaded_prefetcher._dropped(source, set(threading.enumerate()))
