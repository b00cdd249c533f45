"""Calls that are not alike: each leaves something behind (graphs, gradients, memory), or compiles anew."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from edl_labs.bench.detectors.call_watches import reserved_bytes
from edl_labs.bench.detectors.detector import TOO_LONG, Detector, Look
from edl_labs.bench.timing.blocks import Runner, compiled_frames
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import compiles
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.units import byte_count, counted

_BATCHES = 3  # what one or two batches leave is chance, a cache or another thread
# Fewer calls would not tell what each one leaves from what the interpreter keeps now and then.
_LEAST_CALLS, _MOST_CALLS = 16, 64
# Of the budget for a batch: four of them take a twentieth, and what looks like growth takes a fifth more; where other
# threads run, it is compared with waiting as long.
_SHARE = 0.05 / 4
_BLOCK_BYTES = 512  # what torch's allocator rounds up to
_LEAST_LEFT = 0.9  # objects a call: one that each call leaves, less what is freed meanwhile of earlier garbage
_PAIRS = 8  # of batches and waits: by chance the batch leaves more in all of them once in 2**8 times


class GraphKept(Detector):
    """Something outside keeps the result with its graph."""

    kind = "graph_kept"
    what = "each call keeps its autograd graph alive"
    why = "{detail}; memory use and the time spent in the allocator grow with each call"
    next = "store only loss.detach() or loss.item(), or run the call under torch.no_grad()"

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        if not finished:
            self.look.off[self.kind] = TOO_LONG
            return ""
        return _kept_text(self.look) if self.look.tensors_kept() and _keeps_graphs(self.look) else ""


class GradientsAccumulate(Detector):
    """Gradients are not cleared before a backward pass."""

    kind = "gradients_accumulate"
    what = "gradients accumulate from call to call"
    why = "{detail}; each backward pass adds to the gradients of the previous one, unlike in a training step"
    next = "set gradients to None first: optimizer.zero_grad(set_to_none=True)"

    def after_call(self, result: Any) -> str:
        piled_up = self.look.torch is not None and self.look.torch.piled_up and self.look.calls > 1
        return "a gradient already existed when the backward pass began" if piled_up else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        if not finished:
            self.look.off[self.kind] = TOO_LONG
        return ""


class AllocatorGrowing(Detector):
    """Each call allocates memory that it does not free."""

    kind = "allocator_growing"
    what = "memory still grows with each call"
    why = "{detail}; a call's time then includes allocating new memory, and the run may run out of memory"
    next = "release what the call stores, or reuse one buffer; clear caches and lists between calls"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._reserved = 0

    def after_call(self, result: Any) -> str:
        growth = self.look.virtual.growth if self.look.virtual else 0
        return f"each call allocates {counted(growth, 'buffer')} more than it frees" if growth > 0 else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        look = self.look
        if not finished:
            look.off[self.kind] = TOO_LONG
            return ""
        if look.tensors_kept():
            return "" if _keeps_graphs(look) else _kept_text(look)
        if look.virtual is not None:
            return ""
        if compiles((look.fn,)):
            look.off[self.kind] = (
                "the function calls the compiler each time, and the compiler stores something for each call"
            )
            return ""
        shortest_s = min(_call_s(look, call) for _ in range(_BATCHES))  # one may have waited for a processor
        calls = int(look.budget_s * _SHARE / max(shortest_s, 1e-7))
        if calls < _LEAST_CALLS:
            look.off[self.kind] = TOO_LONG
            return ""
        objects = grows(call, calls=min(calls, _MOST_CALLS))
        return f"each call leaves {objects:.1f} objects behind" if objects else ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        self._reserved = reserved_bytes(sys.modules.get("torch"))
        return ""

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        grown = reserved_bytes(sys.modules.get("torch")) - self._reserved
        enough = grown > 0 and blocks > 1 and grown > 0.5 * blocks * plan.calls * _BLOCK_BYTES
        return f"the allocator reserved {byte_count(grown)} more during the timing" if enough else ""


def _keeps_graphs(look: Look) -> bool:
    return any(tensor.requires_grad for tensor in (look.torch.survivors() if look.torch else ()))


def _kept_text(look: Look) -> str:
    kept = look.tensors_kept()
    return f"{kept} tensors of each call stay alive" if kept > 1 else "a tensor of each call stays alive"


def _call_s(look: Look, call: Callable[[], object]) -> float:
    # A device is drained before and after: else a call looks as cheap as its launch, and far too many are queued.
    look.clock.synchronize()
    now = look.clock.now_s
    start, began = time.perf_counter(), now()
    call()
    look.clock.synchronize()
    return max(time.perf_counter() - start, now() - began)


def grows(call: Callable[[], object], *, calls: int) -> float:
    """Objects that each call leaves behind, over three batches of `calls`; 0 unless each batch left some.

    Believed only when batches of four times as many calls leave four times as much: what a batch alone leaves does not.
    All threads of a process share one count of objects. Where others run, the call is believed to grow only when eight
    batches in a row leave more than as long a wait does: with noise that is the same with and without calls, at most
    one function in 256 is reported. What a thread keeps that is faster at it than the call hides what the call keeps.
    """
    with _set_aside():
        left = _left_by_each(call, calls=calls)
        if not left:
            return 0.0
        alone = len(sys._current_frames()) == 1
        return min(left, _left_by_each(call, calls=4 * calls) if alone else _left_beyond_waits(call, calls=2 * calls))


@contextmanager
def _set_aside() -> Iterator[None]:
    """While active, garbage is looked for among new objects only.

    A full collection then takes no longer than what the calls made: garbage that a collection in the middle of a call
    has moved to the oldest generation must not count as kept. Who has set objects aside already keeps them there:
    nobody can say afterwards which were whose.
    """
    apart = gc.get_freeze_count() == 0
    if apart:
        gc.freeze()
    try:
        yield
    finally:
        if apart:
            gc.unfreeze()


def _left_by_each(call: Callable[[], object], *, calls: int) -> float:
    """The least that one of the batches behind the first left, for each of its calls."""
    _blocks_added(call, calls=calls)
    return _enough(min(_blocks_added(call, calls=calls) for _ in range(_BATCHES)) / calls)


def _left_beyond_waits(call: Callable[[], object], *, calls: int) -> float:
    """The least by which a batch left more than a wait of its length beside it, for each call."""
    began_s = time.perf_counter()
    _blocks_added(call, calls=calls)
    wait = partial(time.sleep, time.perf_counter() - began_s)
    least = math.inf
    for number in range(_PAIRS):
        # Now the batch comes first, now the wait, so that what others put off during one is not always the other's.
        earlier = _blocks_added(wait, calls=1) if number % 2 else None
        left = _blocks_added(call, calls=calls)
        waited = _blocks_added(wait, calls=1) if earlier is None else earlier
        least = min(least, (left - waited) / calls)
        if least < _LEAST_LEFT:
            return 0.0
    return least


def _enough(left: float) -> float:
    return left if left >= _LEAST_LEFT else 0.0


def _blocks_added(call: Callable[[], object], *, calls: int) -> int:
    """Memory blocks that the interpreter has more after some calls, and after their garbage was collected."""
    before = sys.getallocatedblocks()
    for _ in range(calls):
        call()
    gc.collect()
    return sys.getallocatedblocks() - before


class CompileInside(Detector):
    """torch compiles, or a device loads kernels, in one call after another."""

    kind = "compile_inside"
    what = "compiling or tuning happened while the clock ran"
    why = "{detail}; real runs pay this cost once, not in each call"
    next = "compile before measuring, and pass inputs of a single shape; with a Timer, run the region a few times first"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._first = self._seen = 0

    def before(self) -> str:
        self._first = compiled_frames()
        return "its code calls the compiler each time" if compiles((self.look.fn,)) else ""

    def after_call(self, result: Any) -> str:
        return self.look.virtual.loads if self.look.virtual else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        self._seen = compiled_frames()
        return ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        before, self._seen = self._seen, compiled_frames()
        # Calls so long that none is left to be timed tell by compiling at the first look and in the warm-up again.
        again = plan.call_s > self.look.budget_s / 10 and self._seen > before > self._first
        return "torch.compile compiled in one call after another" if again else ""

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        frames = compiled_frames() - self._seen
        return f"torch.compile compiled {counted(frames, 'time')}" if frames else ""
