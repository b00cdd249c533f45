"""What other threads of this process do beside a call, and how long this one has waited for a processor."""

from __future__ import annotations

import threading
import time
from pathlib import Path

_NAP_S = 1e-3  # a thread with work and a processor computes three times _BUSY_NS in it
_NAPS = 5  # what a thread does now and then stays below _BUSY_NS in so many
# Naps in which a thread only waits for a processor tell nothing: after a fifth of a second of them looking ends.
_MOST_NAPS = 200
# What a worker of a pool does after its last task, to go back to sleep, takes a tenth of this.
_BUSY_NS = 300_000


def computing_threads() -> set[int]:
    """Other Python threads that compute while this one sleeps for a moment, where the system tells (Linux)."""
    if threading.active_count() <= 1:
        return set()
    before = last = _run_ns()
    busy: set[int] = set()
    naps = 0
    for _ in range(_MOST_NAPS):
        time.sleep(_NAP_S)
        now = _run_ns()
        busy = {thread for thread in before.keys() & now.keys() if now[thread] - before[thread] > _BUSY_NS}
        # On a busy machine a thread with work may not have had its turn yet: then nothing has been seen of it.
        starved = any(now[thread] == last.get(thread) and _is_runnable(thread) for thread in now)
        naps += not starved
        if busy or naps >= _NAPS or not (starved or any(now[thread] != before.get(thread) for thread in now)):
            break
        last = now
    return busy


def queued_s() -> float:
    """Seconds that this thread has waited for a processor so far, where the system tells (Linux); else 0."""
    try:
        file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        return int(file.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _run_ns() -> dict[int, int]:
    """How long each other Python thread has run so far."""
    found = {}
    for thread in threading.enumerate():
        if thread is threading.current_thread() or thread.native_id is None:
            continue
        try:
            # The thread's own clock by its number: what /proc says only moves with the kernel's tick, every 4 ms.
            found[thread.native_id] = time.clock_gettime_ns((~thread.native_id << 3) | 6)
        except (OSError, AttributeError):
            continue
    return found


def _is_runnable(thread: int) -> bool:
    try:
        text = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
        return text.rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False


def works_on(started: set[int], already: set[int]) -> str:
    """Why a call has left work behind, or '': threads that compute now and did not before, or are new and alive."""
    running = computing_threads() - already
    fresh = [t for t in threading.enumerate() if t.ident not in started and t is not threading.current_thread()]
    if running:
        return "another thread goes on computing after the call has returned"
    return "the call started a thread that is still alive when it returns" if any(map(_pending, fresh)) else ""


def _pending(thread: threading.Thread) -> bool:
    # Workers of a pool outlive the work that they were given; a thread of the call's own does not.
    return thread.is_alive() and "ThreadPoolExecutor" not in thread.name
