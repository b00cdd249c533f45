"""The detectors of one measurement: they look at a few calls before the timing, and at what the timing left behind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from edl_labs import stats
from edl_labs.bench.detectors.array_values import Denormals, Diverged
from edl_labs.bench.detectors.call_watches import TorchWatch, VirtualWatch, is_compiled
from edl_labs.bench.detectors.changing_calls import AllocatorGrowing, CompileInside, GradientsAccumulate, GraphKept
from edl_labs.bench.detectors.detector import Detector, Look
from edl_labs.bench.detectors.effect_watch import SideEffects
from edl_labs.bench.detectors.inputs_and_results import (
    ConstantInputs,
    GraphUnused,
    LazyResult,
    NothingComputed,
    ResultUnused,
    dispose,
    used_up,
)
from edl_labs.bench.detectors.machine_limits import CacheResident, ClockLow, FasterThanLight, Oversubscribed, excess
from edl_labs.bench.detectors.results_and_state import Remembered, SortedAlready, UsedUp
from edl_labs.bench.detectors.side_effects import (
    Housekeeping,
    Instrumented,
    LoadsCode,
    PageCache,
    Prints,
    SettingsChanged,
    Sleeps,
)
from edl_labs.bench.detectors.waiting import ItemInside, NoSync, OtherStream, SyncEachCall, computing_threads, queued_s
from edl_labs.bench.results import Mistake
from edl_labs.bench.timing.blocks import ArgumentPool, FirstCall, Runner, done_once, failed, label
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import own_functions, reachable, virtual_gpu
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import Clock, HostClock, is_processor_time
from edl_labs.device import stamp_for
from edl_labs.errors import EdlError, UsageError

# In this order they are asked; a row here is all that a new one needs beside its class.
DETECTORS: dict[str, type[Detector]] = {
    one.kind: one
    for one in (
        ConstantInputs,
        LazyResult,
        UsedUp,
        Remembered,
        NothingComputed,
        SortedAlready,
        Denormals,
        Diverged,
        NoSync,
        SyncEachCall,
        ItemInside,
        OtherStream,
        Sleeps,
        Prints,
        Housekeeping,
        LoadsCode,
        Instrumented,
        SettingsChanged,
        ResultUnused,
        GraphUnused,
        CacheResident,
        PageCache,
        CompileInside,
        GraphKept,
        GradientsAccumulate,
        AllocatorGrowing,
        ClockLow,
        Oversubscribed,
        FasterThanLight,
    )
}
KINDS = tuple(DETECTORS)
# Three differences between four calls tell what grows; one more would add little and cost budget.
_CALLS = 4
# Shares of the budget above which looking ends, so that most of it is left for timing.
_SHARE = 0.05  # of a later call
_FIRST_SHARE = 0.25  # of the first one, which may load and compile
_LOOK_SHARE = 0.35  # of all calls that are looked at


def mistake(kind: str, detail: str) -> Mistake:
    """The message of one kind of mistake, with what was seen as its detail.

    >>> mistake("sync_each_call", "its code calls synchronize()").what
    'each call waits for the device'
    """
    return DETECTORS[kind].mistake(detail)


@cache
def get_ready() -> None:
    """Loads, once in a process, what looking at calls and estimating need, so that no block is timed meanwhile."""
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
        self.off: dict[str, str] = {} if enabled else {"all": "detect=False"}
        self.first: FirstCall | None = None
        self._look = Look(fn, feed, clock, cold, budget_s, self.off)
        self._detectors = [one(self._look) for one in DETECTORS.values()] if enabled else []
        self._found: dict[str, Mistake] = {}
        self._took_s = self._queued_s = 0.0  # of the latest call

    @property
    def awaits(self) -> bool:
        """Whether the function returns coroutines that are never awaited."""
        return self._look.awaits

    def before(self) -> None:
        """Looks at the inputs, the code and up to four calls; the first of them is the very first call of `fn`."""
        if not self._detectors:
            return
        look = self._look
        items = look.items = list(reachable(look.fn, look.feed.pool[:1] if look.feed else None))
        look.repeat = self._repeat
        look.effects = SideEffects(own_functions(items))
        gpu, torch = virtual_gpu([*items, look.clock]), sys.modules.get("torch")
        look.virtual = VirtualWatch(gpu) if gpu is not None else None
        look.torch = TorchWatch(torch) if torch is not None and not is_compiled(items) else None
        self._ask(lambda detector: detector.before())
        look.computing = computing_threads()
        finished = self._look_at_calls()
        self._ask(lambda detector: detector.after_calls(self._once, finished=finished))

    def begin(self, runner: Runner, plan: BlockPlan) -> None:
        """Looks once the function is warm, and takes stock before the blocks that count."""
        self._ask(lambda detector: detector.when_warm(runner, plan))

    def after(self, *, plan: BlockPlan, times: list[float], state: State | None) -> None:
        """Looks at what the timed blocks did, and at the clock of the processor."""
        if self._detectors:
            self._check_iterators()
        self._ask(lambda detector: detector.after(plan=plan, blocks=len(times), state=state))

    def found(self, estimate: Any, *, work: Any, machine: Any) -> tuple[Mistake, ...]:
        """The mistakes found, a time faster than light among them when work and machine are known."""
        kind = FasterThanLight.kind
        if work is None:
            self.off.setdefault(kind, "no work= and machine= were given")
        else:
            high = min(estimate.high, 2 * estimate.center)
            self._add(kind, excess(estimate.center, high, work=work, machine=machine))
        return self.so_far

    @property
    def so_far(self) -> tuple[Mistake, ...]:
        """The mistakes found so far."""
        return tuple(self._found.values())

    def _ask(self, question: Callable[[Detector], str]) -> None:
        for detector in self._detectors:
            self._add(detector.kind, question(detector))

    def _add(self, kind: str, detail: str) -> None:
        if detail:
            self._found.setdefault(kind, mistake(kind, detail))

    def _check_iterators(self, sets: int | None = None) -> None:
        feed = self._look.feed
        kind = used_up(feed.pool[:sets]) if feed is not None else ""
        if kind:
            raise UsageError(
                f"an input is an exhausted {kind}",
                why="each call consumes what it reads, so later calls would have nothing to do",
                next="pass the underlying data, such as the list, and create the iterator inside the function",
            )

    def _look_at_calls(self) -> bool:
        """Whether there was time to look at all of them."""
        look, spent_s = self._look, 0.0
        for index in range(_CALLS):
            cause, began = done_once(), look.clock.now_s()
            self._look_at_call()
            # On the processor's own time, what looking takes is not the call's.
            wall_s = self._took_s if is_processor_time(look.clock) else look.clock.now_s() - began
            # Beside busy neighbours a call looks long because it waits for a processor, which is no reason to look
            # away.
            took = max(0.0, wall_s - self._queued_s) if is_processor_time(look.clock) else wall_s
            if index == 0:
                self.first = FirstCall(wall_s, cause())
                self._check_iterators(1)
            look.tensors_alive.append(len(look.torch.survivors()) if look.torch else 0)
            spent_s += took
            # The first call may load and compile; the time of the others says whether there is time to go on.
            too_long = took > look.budget_s * (_FIRST_SHARE if index == 0 else _SHARE)
            if (too_long or spent_s > look.budget_s * _LOOK_SHARE) and index < _CALLS - 1:
                return False
        return True

    def _look_at_call(self) -> None:
        look = self._look
        look.threads = {thread.ident or 0 for thread in threading.enumerate()}
        result = self._guarded(self._watched)
        look.calls += 1
        self._ask(lambda detector: detector.after_call(result))

    def _watched(self) -> Any:
        look = self._look

        def call() -> Any:
            arguments = look.arguments()
            return look.effects.watch(lambda: look.started.watch(lambda: self._timed(arguments)))

        watch = look.torch
        watched = call if watch is None else lambda: watch.watch(call)
        if look.virtual is not None:
            return look.virtual.watch(watched, drain=look.clock.synchronize)
        return watched()

    def _timed(self, arguments: tuple[Any, ...]) -> Any:
        began, queued = self._look.clock.now_s(), queued_s()
        try:
            return self._look.fn(*arguments)
        finally:
            self._took_s, self._queued_s = self._look.clock.now_s() - began, queued_s() - queued

    def _once(self) -> None:
        self._guarded(lambda: dispose(self._look.fn(*self._look.arguments())))

    def _repeat(self) -> Any:
        look = self._look
        arguments = look.feed.pool[0] if look.feed else ()
        result = self._guarded(lambda: look.fn(*arguments))
        dispose(result)
        return result

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except EdlError:
            raise
        except Exception as error:
            raise failed(label(self._look.fn), error) from error
