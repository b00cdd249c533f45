"""What a call starts in addition (threads, processes, tasks of a pool), and whether it waits for it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from edl_labs.bench.detectors.wrapped_methods import all_wrapped

# Looked up in modules that are loaded: a function cannot have used the others. (module, class, method), what it starts.
_STARTS = {
    ("threading", "Thread", "start"): "a thread",
    ("multiprocessing.process", "BaseProcess", "start"): "a process",
    ("subprocess", "Popen", "__init__"): "a process",
    ("concurrent.futures.thread", "ThreadPoolExecutor", "submit"): "a task of a pool",
    ("concurrent.futures.process", "ProcessPoolExecutor", "submit"): "a task of a pool",
}
# To ask one of them how it stands is to wait for it, as far as can be told.
_ASKS = (
    *(("threading", "Thread", name) for name in ("join", "is_alive")),
    *(("multiprocessing.process", "BaseProcess", name) for name in ("join", "is_alive")),
    *(("subprocess", "Popen", name) for name in ("wait", "communicate", "poll")),
    *(("concurrent.futures._base", "Future", name) for name in ("result", "exception", "done", "add_done_callback")),
)
# Who waits in these may wait for anything that was started.
_WAITS = (
    ("threading", "Condition", "wait"),
    ("threading", "Event", "wait"),
    ("threading", "Event", "is_set"),
    ("threading", "Barrier", "wait"),
    ("threading", "Semaphore", "acquire"),
    ("queue", "Queue", "get"),
    ("queue", "Queue", "join"),
    ("concurrent.futures._base", "_AcquireFutures", "__init__"),  # futures.wait and as_completed
)


class StartedWork:
    """Notes, for one watched call after another, what the call started and did not wait for.

    That is decided by what the call does, not by what still runs when it returns: on a busy machine a thread may end
    before its caller gets another turn.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[Any, str]] = {}
        self._caller = 0
        self._inside = False
        self.processes = 0

    def watch(self, call: Callable[[], Any]) -> Any:
        """The result of `call()`; every method is put back afterwards, whatever happens."""
        self._open, self._caller, self._inside = {}, threading.get_ident(), False
        self.processes = 0
        starts = [(path, functools.partial(self._starting, what=what)) for path, what in _STARTS.items()]
        asks = [(path, self._asking) for path in _ASKS]
        waits = [(path, self._waiting) for path in _WAITS]
        with all_wrapped([*starts, *asks, *waits]):
            return call()

    def left_behind(self, result: Any) -> str:
        """What the latest call started, never waited for and did not give to its caller either; or ''."""
        given = {id(item) for item in (result if isinstance(result, (list, tuple)) else (result,))}
        return next((what for key, (_, what) in self._open.items() if key not in given), "")

    def _starting(self, method: Callable[..., Any], *args: Any, what: str, **kwargs: Any) -> Any:
        if self._inside or threading.get_ident() != self._caller:
            return method(*args, **kwargs)
        self._inside = True  # a pool starts threads of its own, and a thread's start waits until it runs
        try:
            result = method(*args, **kwargs)
        finally:
            self._inside = False
        started = result if what == "a task of a pool" else args[0]
        self.processes += what == "a process"
        self._open[id(started)] = (started, what)
        return result

    def _asking(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == self._caller:
            self._open.pop(id(args[0]), None)
        return method(*args, **kwargs)

    def _waiting(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == self._caller and not self._inside:
            self._open.clear()
        return method(*args, **kwargs)
