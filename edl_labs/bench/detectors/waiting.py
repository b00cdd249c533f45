"""Waiting at the wrong place: not at all, in each call, or not for threads and streams that still run."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from edl_labs.bench.detectors.detector import Detector, Look
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import calls_by_name
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import is_asynchronous

_NAP_S = 1e-3  # a thread with work and a processor computes three times _BUSY_NS in it
_NAPS = 5  # what a thread does now and then stays below _BUSY_NS in so many
# Naps in which a thread only waits for a processor tell nothing: after a fifth of a second of them looking ends.
_MOST_NAPS = 200
# What a worker of a pool does after its last task, to go back to sleep, takes a tenth of this.
_BUSY_NS = 300_000
# What wakes now and then (a kernel's heartbeat, a progress bar) has a smaller share of the time; work has it at thirty
# others that want the same processor.
_BUSY_SHARE = 0.03


class NoSync(Detector):
    """The clock is read while the device still works."""

    kind = "no_sync"
    what = "the work was not finished when the clock was read"
    why = "the call only queues work on a device and returns; {detail}"
    next = "omit clock=, so that the device's own clock is used, or pass one whose synchronize() waits for the device"

    def after_call(self, result: Any) -> str:
        look = self.look
        pending = look.torch.pending() if look.torch and not is_asynchronous(look.clock) else ""
        return pending or (look.virtual.undrained if look.virtual else "")


class SyncEachCall(Detector):
    """The function itself waits for the device."""

    kind = "sync_each_call"
    what = "each call waits for the device"
    why = "{detail}; the device is idle while the host prepares the next call, although real code would overlap the two"
    next = "remove the synchronisation from the function; the harness waits at both ends of a block"

    def before(self) -> str:
        seen = self.look.virtual is None and calls_by_name((self.look.fn,), "synchronize")
        return "its code calls synchronize()" if seen else ""

    def after_call(self, result: Any) -> str:
        look = self.look
        waits = next(iter(look.torch.waits), "") if look.torch else ""
        return waits or (look.virtual.waits if look.virtual else "")


class ItemInside(Detector):
    """The function reads a value back from the device."""

    kind = "item_inside"
    what = "each call reads a value back: {detail}"
    why = "the host must wait until the device has computed it, so that launches no longer run ahead of the work"
    next = "keep the result on the device inside the function, and read it once, after the timing"

    def after_call(self, result: Any) -> str:
        look = self.look
        reads = next(iter(look.torch.reads), "") if look.torch else ""
        return reads or (look.virtual.reads if look.virtual else "")


class OtherStream(Detector):
    """A thread or a stream works on after the call, and nothing waits for it."""

    kind = "other_stream"
    what = "work goes on after the call, and the caller does not wait for it"
    why = "{detail}; this work overlaps with the next call and with the timing itself"
    next = "wait for it inside the function: current_stream().wait_stream(side), thread.join(), future.result()"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._threads: set[int] = set()

    def after_call(self, result: Any) -> str:
        look = self.look
        # What the first call leaves running may serve all calls, as a compiler's threads or a pool do.
        if look.calls == 1:
            self._threads = {thread.ident or 0 for thread in threading.enumerate()}
            threads = ""
        else:
            left = look.started.left_behind(result)
            seen = works_on(look.threads, look.computing)
            threads = seen or (f"the call starts {left} and returns without waiting for it" if left else "")
        return threads or self._stream() or (look.virtual.apart if look.virtual else "")

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        # Calls too long for a second look are looked at here.
        return works_on(self._threads, self.look.computing) if self.look.calls == 1 else ""

    def _stream(self) -> str:
        watch = self.look.torch
        apart = watch is not None and len(watch.streams) > 1 and not watch.joined
        return "kernels ran on a second stream, and the current stream does not wait for it" if apart else ""


def computing_threads() -> set[int]:
    """Other Python threads that compute while this one sleeps for a moment, where the system tells (Linux)."""
    if threading.active_count() <= 1:
        return set()
    # Only the last naps count: on a busy machine looking takes long, and what wakes now and then adds up.
    looks = deque([(time.monotonic_ns(), _run_ns())], maxlen=_NAPS + 1)
    busy: set[int] = set()
    naps = 0
    for _ in range(_MOST_NAPS):
        time.sleep(_NAP_S)
        last = looks[-1][1]
        looks.append((time.monotonic_ns(), _run_ns()))
        (began_ns, before), (ends_ns, now) = looks[0], looks[-1]
        ran = {thread: now[thread] - before[thread] for thread in before.keys() & now.keys()}
        least_ns = max(_BUSY_NS, _BUSY_SHARE * (ends_ns - began_ns))
        busy = {thread for thread, ran_ns in ran.items() if ran_ns > least_ns}
        # On a busy machine a thread with work may not have had its turn yet: then nothing has been seen of it.
        starved = any(now[thread] == last.get(thread) and _is_runnable(thread) for thread in now)
        naps += not starved
        if busy or naps >= _NAPS or not (starved or any(now[thread] != before.get(thread) for thread in now)):
            break
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
    if threading.active_count() <= 1:
        return ""
    running = computing_threads() - already
    # A thread of somebody else's that woke up just then is quiet at the next look; work that was left behind goes on.
    running &= computing_threads() if running else set()
    fresh = [t for t in threading.enumerate() if t.ident not in started and t is not threading.current_thread()]
    if running:
        return "another thread is still computing after the call has returned"
    return "the call started a thread that is still alive when it returns" if any(map(_pending, fresh)) else ""


def _pending(thread: threading.Thread) -> bool:
    # Workers of a pool outlive the work that they were given; a thread of the call's own does not.
    return thread.is_alive() and "ThreadPoolExecutor" not in thread.name
