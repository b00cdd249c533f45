"""What can be seen of a call without torch: its code, its result, its threads, its memory."""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import dis
import gc
import io
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from edl_labs import device
from edl_labs.bench.timing.reachable_objects import reachable

_BATCHES = 3
_NAP_S = 1e-3
_NAPS = 5
# Naps in which a thread only waits for a processor tell nothing; beside eight busy programs it waits some 20 of them.
_MOST_NAPS = 200
# What a worker of a pool does after its last task, to go back to sleep, takes a tenth of this.
_BUSY_NS = 300_000
_DROPPED = {"BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "UNARY_NEGATIVE", "BINARY_SLICE"}
_COMPILERS = {("torch", "compile"), ("jit", "script"), ("jit", "trace")}


def lazy(result: Any) -> str:
    """Why `result` is not computed yet, or ''."""
    kind = type(result).__name__
    if isinstance(result, (concurrent.futures.Future, asyncio.Future)):
        return "" if result.done() else f"it returned a {kind} that is not done"
    if isinstance(result, (types.CoroutineType, collections.abc.AsyncIterator)):
        return f"it returned a {kind}, which nobody awaited"
    if isinstance(result, collections.abc.Iterator) and not isinstance(result, io.IOBase):
        return f"it returned a {kind}, which computes when it is read"
    if isinstance(result, (types.FunctionType, types.MethodType)):
        return "it returned a function, which nobody called"
    if str(getattr(result, "device", "")) == "meta":
        return "it returned a tensor on the meta device, which has a shape and no data"
    if hasattr(result, "__dask_graph__") or kind.startswith("Lazy"):
        return f"it returned a {kind}, which computes on demand"
    return ""


def dispose(result: Any) -> bool:
    """Ends a coroutine that nobody awaits, which would warn when it is freed; whether it was one."""
    if not isinstance(result, types.CoroutineType):
        return False
    result.close()
    return True


def drops_a_value(fn: Any) -> str:
    """The operator whose value the code of `fn` drops on a line of its own, or ''."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return ""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "POP_TOP" and before is not None and before.opname in _DROPPED:
            return "its code computes a value and drops it"
        if step.opname != "CACHE":
            before = step
    return ""


def calls_by_name(roots: tuple[Any, ...], name: str) -> bool:
    """Whether code that `roots` can reach calls something called `name` as an attribute."""
    return any(step.argval == name for _, step in _attribute_steps(roots))


def compiles(roots: tuple[Any, ...]) -> bool:
    """Whether code that `roots` can reach calls torch.compile, torch.jit.script or torch.jit.trace."""
    return any((before.argval, step.argval) in _COMPILERS for before, step in _attribute_steps(roots))


def _attribute_steps(roots: tuple[Any, ...]) -> list[tuple[dis.Instruction, dis.Instruction]]:
    found = []
    for item in reachable(*roots):
        if isinstance(item, types.FunctionType) and not _foreign(item):
            found += _steps(item.__code__)
    return found


def _steps(code: types.CodeType) -> list[tuple[dis.Instruction, dis.Instruction]]:
    steps = list(dis.get_instructions(code))
    pairs = [(a, b) for a, b in pairwise(steps) if b.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            pairs += _steps(constant)
    return pairs


def _foreign(fn: types.FunctionType) -> bool:
    # Code of installed packages may synchronise for reasons of its own that the caller cannot take out.
    file = fn.__code__.co_filename
    return "site-packages" in file or file.startswith(sys.base_prefix + os.sep + "lib") or "dist-packages" in file


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


def grows(call: Callable[[], object], *, calls: int) -> float:
    """Objects that each call leaves behind, over three batches of `calls`; 0 unless each batch left some.

    Believed only when batches of four times as many calls leave four times as much: what a batch, or whatever else
    runs in the process, leaves by itself does not.
    """
    left = _left_by_each(call, calls=calls)
    return min(left, _left_by_each(call, calls=4 * calls)) if left else 0.0


def _left_by_each(call: Callable[[], object], *, calls: int) -> float:
    # What is there already is set aside, so that a full collection takes no longer than what the calls made: garbage
    # that a collection in the middle of a call has moved to the oldest generation must not count as kept.
    apart = gc.get_freeze_count() == 0
    if apart:
        gc.freeze()
    try:
        counts = [_blocks_after(call, calls=calls, generation=2 if apart else 1) for _ in range(_BATCHES + 1)]
    finally:
        if apart:
            gc.unfreeze()
    added = [(after - before) / calls for before, after in pairwise(counts)]
    return min(added) if min(added) >= 0.9 else 0.0


def _blocks_after(call: Callable[[], object], *, calls: int, generation: int) -> int:
    """Memory blocks of the interpreter after some calls, and after their garbage was collected."""
    for _ in range(calls):
        call()
    gc.collect(generation)
    return sys.getallocatedblocks()


def allowed_cores() -> float:
    """How many processors this process may use: affinity and the container's quota."""
    cores = float(device.usable_cores())
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return cores if quota == "max" else min(cores, max(1.0, int(quota) / int(period)))
    except (OSError, ValueError):
        return cores
