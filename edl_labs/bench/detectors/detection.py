"""One session of the detector: looks at a few calls before the timing, and at what the timing left behind."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from edl_labs import stats
from edl_labs.bench.detectors import host_watch, input_data, residency, speed_limit
from edl_labs.bench.detectors.messages import mistake
from edl_labs.bench.detectors.torch_watch import TorchWatch, compiled_frames, is_compiled, reserved_bytes
from edl_labs.bench.detectors.virtual_watch import VirtualWatch
from edl_labs.bench.results import Mistake
from edl_labs.bench.timing.argument_pool import ArgumentPool
from edl_labs.bench.timing.blocks import Runner, failed, label
from edl_labs.bench.timing.clock_choice import virtual_gpu
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import reachable
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import Clock, HostClock, is_asynchronous, is_processor_time
from edl_labs.device import stamp_for
from edl_labs.errors import EdlError, UsageError
from edl_labs.units import byte_count, si

_CALLS = 4
_SHARE = 0.05
_FIRST_SHARE = 0.25
_LOOK_SHARE = 0.35
_GROWTH_CALLS = 16
_SHORT = "a call is too long for a second look inside this budget"


@cache
def get_ready() -> None:
    """Loads, once in a process, what looking at calls and estimating need, so that no block is timed beside it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        TorchWatch(torch).watch(lambda: torch.zeros(1).add(1))
    stamp_for(HostClock())
    stats.median_interval((1.0, 2.0, 3.0))


class Detection:
    """Looks for mistakes around one measurement of `fn`; `found` lists them, `off` says what was not looked for."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        feed: ArgumentPool | None,
        clock: Clock,
        enabled: bool,
        cold: bool,
        budget_s: float,
    ) -> None:
        self._fn, self._feed, self._clock, self._cold, self._budget_s = fn, feed, clock, cold, budget_s
        self._on = enabled
        self._found: dict[str, Mistake] = {}
        self.off: dict[str, str] = {} if enabled else {"all": "detect=False"}
        self.first_call_s: float | None = None
        self._calls = 0
        self._torch: TorchWatch | None = None
        self._virtual: VirtualWatch | None = None
        self._first_frames = self._frames = self._reserved = 0
        self._computing: set[int] = set()
        self.awaits = False

    def before(self) -> None:
        """Looks at the inputs, the code and up to four calls; the first of them is the very first call of `fn`."""
        if not self._on:
            return
        items = list(reachable(self._fn, self._feed.pool[:1] if self._feed else None))
        gpu = virtual_gpu([*items, self._clock])
        torch = sys.modules.get("torch")
        self._virtual = VirtualWatch(gpu) if gpu is not None else None
        self._torch = TorchWatch(torch) if torch is not None and not is_compiled(items) else None
        self._look_at_inputs()
        self._look_at_code()
        self._look_at_machine(torch)
        self._computing = host_watch.computing_threads()
        self._first_frames = compiled_frames(sys.modules)
        self._look_at_calls()
        self._frames = compiled_frames(sys.modules)

    def begin(self, runner: Runner, plan: BlockPlan) -> None:
        """Looks at the cache once the function is warm, and takes stock before the blocks that count."""
        if not self._on:
            return
        self._look_at_cache(runner, plan)
        frames = compiled_frames(sys.modules)
        # Calls so long that none is left to be timed tell by compiling at the first look and in the warm-up again.
        if plan.call_s > self._budget_s / 10 and frames > self._frames > self._first_frames:
            self._add("compile_inside", "torch.compile compiled in one call after another")
        self._frames, self._reserved = frames, reserved_bytes(sys.modules.get("torch"))

    def after(self, *, plan: BlockPlan, times: list[float], state: State | None) -> None:
        """Looks at what the timed blocks did: compiling, growing; and at the clock of the processor."""
        if not self._on:
            return
        self._check_iterators()
        torch = sys.modules.get("torch")
        frames = compiled_frames(sys.modules) - self._frames
        if frames:
            self._add("compile_inside", f"torch.compile compiled {frames} times")
        grown = reserved_bytes(torch) - self._reserved
        if grown > 0 and len(times) > 1 and grown > 0.5 * len(times) * plan.calls * 512:
            self._add("allocator_growing", f"the allocator fetched {byte_count(grown)} more while it was timed")
        if state is not None and state.nominal_hz and state.hz < 0.9 * state.nominal_hz:
            self._add("clock_low", f"{si(state.hz, 'Hz')} instead of {si(state.nominal_hz, 'Hz')}")
        elif state is None:
            self.off["clock_low"] = "the clock of this processor cannot be read here"

    def found(self, estimate: Any, *, work: Any, machine: Any, plan: BlockPlan) -> tuple[Mistake, ...]:
        """The mistakes found, a time faster than light among them when work and machine are known."""
        if work is None:
            self.off.setdefault("faster_than_light", "no work= and machine= were given")
        else:
            why = speed_limit.excess(
                estimate.center, min(estimate.high, 2 * estimate.center), work=work, machine=machine
            )
            if why:
                self._add("faster_than_light", why)
        return self.so_far

    @property
    def so_far(self) -> tuple[Mistake, ...]:
        """The mistakes found until now."""
        return tuple(self._found.values())

    def _add(self, kind: str, detail: str) -> None:
        if detail:
            self._found.setdefault(kind, mistake(kind, detail))

    def _look_at_inputs(self) -> None:
        if self._feed is None:
            self.off["constant_inputs"] = "no inputs= were given"
            if self._virtual is None:
                self.off["cache_resident"] = "no inputs= were given"
            return
        self._add("constant_inputs", input_data.constant(self._feed))

    def _check_iterators(self, sets: int | None = None) -> None:
        kind = input_data.used_up(self._feed.pool[:sets]) if self._feed is not None else ""
        if kind:
            raise UsageError(
                f"an input is a {kind}, and nothing is left in it",
                why="a call takes out what it reads, and later calls are timed with nothing to do",
                next="give what it is made from, such as the list, and make the iterator inside the function",
            )

    def _look_at_code(self) -> None:
        roots = (self._fn,)
        if host_watch.calls_by_name(roots, "synchronize") and self._virtual is None:
            self._add("sync_each_call", "its code calls synchronize()")
        if host_watch.compiles(roots):
            self._add("compile_inside", "its code calls the compiler each time")

    def _look_at_machine(self, torch: Any) -> None:
        cores = host_watch.allowed_cores()
        threads = int(torch.get_num_threads()) if torch is not None else 0
        if threads > cores:
            self._add("oversubscribed", f"torch uses {threads} threads on {cores:g} usable processors")

    def _look_at_calls(self) -> None:
        alive: list[int] = []
        spent_s = 0.0
        for index in range(_CALLS):
            began, queued = self._clock.now_s(), host_watch.queued_s()
            self._look_at_call(first=index == 0)
            wall_s = self._clock.now_s() - began
            # Beside busy neighbours a call looks long because it waits for a processor, which is no reason to look
            # away.
            took = max(0.0, wall_s - (host_watch.queued_s() - queued)) if is_processor_time(self._clock) else wall_s
            if index == 0:
                self.first_call_s = wall_s
                self._check_iterators(1)
            alive.append(len(self._torch.survivors()) if self._torch else 0)
            spent_s += took
            # The first call may load and compile; the time of the others says whether there is time to go on.
            too_long = took > self._budget_s * (_FIRST_SHARE if index == 0 else _SHARE)
            if (too_long or spent_s > self._budget_s * _LOOK_SHARE) and index < _CALLS - 1:
                self.off.update(dict.fromkeys(("graph_kept", "gradients_accumulate", "allocator_growing"), _SHORT))
                return
        self._look_at_growth(alive)

    def _look_at_call(self, *, first: bool) -> None:
        started = {thread.ident or 0 for thread in threading.enumerate()}
        try:
            result = self._watched()
        except EdlError:
            raise
        except Exception as error:
            raise failed(label(self._fn), error) from error
        self._calls += 1
        self._add("lazy_result", host_watch.lazy(result))
        self.awaits = host_watch.dispose(result) or self.awaits
        if threading.active_count() > 1:
            self._add("other_stream", host_watch.works_on(started, self._computing))
        if result is None:
            self._add("result_unused", host_watch.drops_a_value(self._fn))
        self._look_at_torch(result, first=first)
        self._look_at_virtual()

    def _watched(self) -> Any:
        def call() -> Any:
            return self._fn(*(self._feed.next() if self._feed else ()))

        watched = call if self._torch is None else lambda: self._torch.watch(call)  # type: ignore[union-attr]
        if self._virtual is not None:
            return self._virtual.watch(watched, drain=self._clock.synchronize)
        return watched()

    def _look_at_torch(self, result: Any, *, first: bool) -> None:
        eye = self._torch
        if eye is None:
            return
        self._add("sync_each_call", next(iter(eye.waits), ""))
        self._add("item_inside", next(iter(dict.fromkeys(eye.reads)), ""))
        if eye.piled_up and not first:
            self._add("gradients_accumulate", "a gradient was already there when the backward pass began")
        pure = eye.computed and not (eye.changed or eye.backward or eye.reads)
        if result is None and pure and not eye.survivors():
            self._add("result_unused", "tensors were computed, and dropped at once")
        if len(eye.streams) > 1 and not eye.joined:
            self._add("other_stream", "kernels ran on a second stream, and the current stream does not wait for it")
        if not is_asynchronous(self._clock):
            self._add("no_sync", eye.pending())

    def _look_at_virtual(self) -> None:
        eye = self._virtual
        if eye is None:
            return
        self._add("no_sync", eye.undrained)
        self._add("sync_each_call", eye.waits)
        self._add("item_inside", eye.reads)
        self._add("other_stream", eye.apart)
        self._add("compile_inside", eye.loads)
        if eye.growth > 0:
            self._add("allocator_growing", f"each call makes {eye.growth} buffers more than it frees")

    def _look_at_growth(self, alive: list[int]) -> None:
        steps = [after - before for before, after in pairwise(alive[1:])]
        if steps and min(steps) > 0:
            kept = self._torch.survivors() if self._torch else []
            graphs = any(tensor.requires_grad for tensor in kept)
            self._add("graph_kept" if graphs else "allocator_growing", f"{steps[-1]} tensors of each call stay alive")
            return
        if self._virtual is not None:
            return
        call_s = self._quick_call_s()
        calls = int(self._budget_s * _SHARE / 4 / max(call_s, 1e-7))
        if calls < _GROWTH_CALLS:
            self.off["allocator_growing"] = _SHORT
            return
        objects = host_watch.grows(self._once, calls=min(calls, 64))
        if objects:
            self._add("allocator_growing", f"each call leaves {objects:.1f} objects behind")

    def _quick_call_s(self) -> float:
        # A device is drained before and after: else a call looks as cheap as its launch, and far too many are queued.
        self._clock.synchronize()
        now = self._clock.now_s
        start, began = time.perf_counter(), now()
        self._once()
        self._clock.synchronize()
        return max(time.perf_counter() - start, now() - began)

    def _once(self) -> None:
        try:
            host_watch.dispose(self._fn(*(self._feed.next() if self._feed else ())))
        except EdlError:
            raise
        except Exception as error:
            raise failed(label(self._fn), error) from error

    def _look_at_cache(self, runner: Runner, plan: BlockPlan) -> None:
        if self._cold or plan.call_s > self._budget_s / 40:
            return
        if self._virtual is not None and is_asynchronous(self._clock):
            call_bytes = pool_bytes = self._virtual.moved_bytes
        elif self._feed is None:
            return
        else:
            call_bytes, pool_bytes = self._feed.nbytes, self._feed.nbytes * len(self._feed.pool)
        why = residency.resident(runner, plan, call_bytes=call_bytes, pool_bytes=pool_bytes, budget_s=self._budget_s)
        if why is None:
            self.off["cache_resident"] = "clearing the cache takes longer than this budget allows"
        else:
            self._add("cache_resident", why)
