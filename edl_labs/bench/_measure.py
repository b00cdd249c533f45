"""`measure`: the time of a call, warm, drained, with overhead removed and an interval."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from edl_labs import stats
from edl_labs.arguments import checked_arguments, require_fraction, require_positive
from edl_labs.bench import detectors
from edl_labs.bench.results import ONE_COLD_CALL, ClockFacts, Measurement
from edl_labs.bench.timing.blocks import ArgumentPool, FirstCall, Runner, label
from edl_labs.bench.timing.cache_flush import llc_bytes, make_flush
from edl_labs.bench.timing.cuda_graph import captured
from edl_labs.bench.timing.processor_state import State, Watch, counter_for, moved, undisturbed, watch_for
from edl_labs.bench.timing.reachable_objects import clock_in_use
from edl_labs.bench.timing.warmup import LEAST_BLOCK_S, BlockPlan, Sampler, first_call_note, overrun_note, warm_up
from edl_labs.clock import Clock, is_processor_time
from edl_labs.device import budget_here, stamp_for
from edl_labs.units import counted

MOST_BLOCKS = 4000  # the interval no longer narrows noticeably, and results stay small
# A stretch is long enough to hold its share of timer ticks and of short slow spells, which most single blocks miss.
_STRETCH_S = 4e-3
_STRETCHES = 50  # a short budget is cut into so many, enough for an interval on their median
_MOST_IN_STRETCH = 50  # tens of blocks already average what meets each of them
# Fewer do not make an interval: then the blocks themselves do.
_LEAST_STRETCHES = 8
_LEAST_TIMES = 6  # fewer cannot reach 95 % by order statistics
_EXACT_AFTER = 12  # equal by chance twelve times over is not noise any more
_BLURRED = 1000  # below a thousandth of a block the clock's step is smaller than any noise seen
RESTART_BELOW = 0.25  # of the budget: with less left than a quarter, little could be said of later calls
_END_SHARE = 0.03  # of the budget for what follows the last block: intervals, the stamp, the last looks
# The smallest with which calls of a few microseconds still have an interval; `compare`'s own example has it.
_LEAST_BUDGET_S = 0.02
# A modelled clock may move far more slowly than the real one.
_PATIENCE_S = 3.0


@checked_arguments(fn="Pass the function itself, without its parentheses: measure(f), or measure(lambda: f(x)).")
def measure(
    fn: Callable[..., Any],
    *,
    inputs: tuple[Any, ...] | Callable[[], Any] | None = None,
    budget_s: float = 0.4,
    clock: Clock | None = None,
    cold: bool = False,
    graph: bool = False,
    level: float = 0.95,
    name: str | None = None,
    work: Any = None,
    machine: Any = None,
    detect: bool = True,
    watch: Watch | None = None,
) -> Measurement:
    """The time of one call of `fn`, as a `Measurement`: median, interval, shape, warnings.

    `inputs` are the arguments: a tuple, or a factory whose results are rotated from call to call; without them `fn` is
    called bare and the detectors that look at inputs are off. `clock` is found from what `fn` uses unless given. `cold`
    clears the last-level cache before each call. `graph` captures a CUDA graph and times its replays. `work` and
    `machine` (a bound in seconds, or values with FLOPs and bytes, and peaks) let a time faster than light be refused.
    Warm-up, detectors and everything else happen inside `budget_s`. Raises UsageError, or FunctionFailed when `fn`
    raises.

    >>> m = measure(sum, inputs=([1, 2, 3],), budget_s=0.01)
    >>> m.low_s <= m.median_s <= m.high_s
    True
    """
    budget_s = checked_budget(budget_s)
    require_fraction(level=level)
    clock = clock_in_use(fn, inputs) if clock is None else clock
    wall, begin = time.perf_counter(), clock.now_s()
    detectors.get_ready()
    feed = None if inputs is None else ArgumentPool(inputs, fill_bytes=2 * llc_bytes(clock), fill_s=0.05 * budget_s)
    session = detectors.Detection(fn, feed=feed, clock=clock, enabled=detect, cold=cold, budget_s=budget_s)
    session.before()
    timed, feed = (captured(fn, feed, clock), None) if graph else (fn, feed)
    flush = make_flush(clock) if cold else None
    runner = Runner(timed, clock=clock, name=name or label(fn), feed=feed, before_each=flush)
    run = _Run(runner, begin=begin, budget_s=budget_s, watch=watch_for(clock) if watch is None else watch)
    with _quiet(session.awaits):
        runner.first = None if graph else session.first
        plan, times, stretches = run.all(session.begin)
    session.after(plan=plan, times=times, state=run.state)
    estimate = stats.median_interval(stretches, level=level)
    step = step_s(runner, plan)
    low, high = (estimate.low - step, estimate.high + step) if run.timed > 1 else (0.0, math.inf)
    wall_s = time.perf_counter() - wall if is_processor_time(clock) else clock.now_s() - begin
    return Measurement(
        name=runner.name,
        times_s=tuple(times),
        median_s=estimate.center,
        low_s=max(low, 0.0),
        high_s=high,
        level=level,
        calls=plan.calls,
        warm_calls=plan.warm_calls,
        first_call_s=plan.first_call_s if session.first is None else session.first.took_s,
        empty_s=plan.empty_s,
        steady=plan.steady,
        budget_s=budget_s,
        wall_s=wall_s,
        clock=ClockFacts.of(clock, asynchronous=runner.asynchronous),
        cold=cold,
        graph=graph,
        dropped=run.dropped,
        warnings=session.found(estimate, work=work, machine=machine),
        off=session.off,
        notes=_notes(run, plan, times, wall_s=wall_s),
        stamp=stamp_for(clock),
    )


def step_s(runner: Runner, plan: BlockPlan) -> float:
    """What one step of the clock is worth per call; 0 where a block holds so many steps that noise blurs them."""
    step, block_s = runner.clock.resolution_s, plan.calls * plan.call_s
    return step / plan.calls if block_s < _BLURRED * step else 0.0


def checked_budget(budget_s: float) -> float:
    """The budget as a positive number of seconds, as small as is honest where that is wanted; else UsageError."""
    require_positive(budget_s=budget_s)
    return budget_here(float(budget_s), least_s=_LEAST_BUDGET_S)


class _Run:
    """Warm-up and blocks of one measurement, inside its budget."""

    def __init__(self, runner: Runner, *, begin: float, budget_s: float, watch: Watch | None) -> None:
        self._runner, self._begin, self._budget_s, self._watch = runner, begin, budget_s, watch
        self._switches = counter_for(runner.clock)
        self.dropped = self.interrupted = self.timed = 0
        self._took_s = 0.0
        self.state: State | None = None

    @property
    def resolution_s(self) -> float:
        """The step of the clock in use."""
        return self._runner.clock.resolution_s

    @property
    def first(self) -> FirstCall:
        """The very first call."""
        return self._runner.first_call()

    @property
    def budget_s(self) -> float:
        """Seconds that measuring may take."""
        return self._budget_s

    def all(self, when_warm: Callable[[Runner, BlockPlan], None]) -> tuple[BlockPlan, list[float], list[float]]:
        """The plan, the time per call of each block, and the means over stretches of blocks.

        Where the first call took nearly all of the budget, the budget begins anew after it.
        """
        self._runner.first_call()
        if self._left_s() < RESTART_BELOW * self._budget_s:
            self._begin = self._runner.clock.now_s()
        budget, left = self._budget_s, self._left_s()
        plan = warm_up(
            self._runner,
            budget_s=max(left, 1e-9),
            most_s=0.25 * budget,
            least_s=0.05 * budget,
            block_s=max(LEAST_BLOCK_S, _stretch_s(budget) / 4),
        )
        when_warm(self._runner, plan)
        blocks = self._blocks(plan)
        self.timed = len(blocks)
        if len(blocks) < 2:
            times = [*(max(s, 0.0) for s in plan.seen_s), *(time for _, time in blocks)]
            self.timed = 0 if self.dropped else len(times)
            return plan, times, times
        times = [time_s for _, time_s in blocks]
        stretches: dict[int, list[float]] = {}
        for stretch, time_s in blocks:
            stretches.setdefault(stretch, []).append(time_s)
        return plan, times, list(map(fmean, stretches.values())) if len(stretches) >= _LEAST_STRETCHES else times

    def _left_s(self) -> float:
        return self._budget_s - (self._runner.clock.now_s() - self._begin)

    def _blocks(self, plan: BlockPlan) -> list[tuple[int, float]]:
        """The number of its stretch and the time per call, for each block that no other program interrupted."""
        sampler = Sampler(self._runner, plan)
        blocks: list[tuple[int, float]] = []
        hit: list[bool] = []
        stretch, self._took_s = 0, plan.block_s
        # How many blocks make a stretch is fixed beforehand: to stop by the time that passed would favour long ones.
        size = max(1, min(_MOST_IN_STRETCH, round(_stretch_s(self._budget_s) / max(self._took_s, 1e-12))))
        until = time.perf_counter() + _PATIENCE_S + 3 * self._budget_s
        while len(blocks) < MOST_BLOCKS and self._has_time() and time.perf_counter() < until:
            kept = self._stretch(sampler, size)
            blocks += [(stretch, time) for time, _ in kept]
            hit += [interrupted for _, interrupted in kept]
            stretch += 1
            if len(blocks) >= _EXACT_AFTER and _exact([time for _, time in blocks], self._runner.clock, plan):
                break
            if not sampler.slope:
                sampler.check_empty()
        self.interrupted = sum(hit)
        if self.state is None and self._watch:
            # A call so long, or a machine so busy, that no block was left: its clock can still be told.
            self.state = self._watch.read()
        return undisturbed(blocks, hit)

    def _has_time(self) -> bool:
        # On a busy machine a block takes longer than planned: the last one tells what the next may take.
        return self._left_s() - _END_SHARE * self._budget_s > 1.1 * self._took_s

    def _stretch(self, sampler: Sampler, size: int) -> list[tuple[float, bool]]:
        before = self._watch.read() if self._watch else None
        times: list[tuple[float, bool]] = []
        while not times or (len(times) < size and self._has_time()):
            switches, start = self._switches(), self._runner.clock.now_s()
            time_s = max(sampler.read_s(), 0.0)
            times.append((time_s, self._switches() != switches))
            self._took_s = max(sampler.plan.block_s, self._runner.clock.now_s() - start)
        after = self._watch.read() if self._watch else None
        self.state = after or self.state
        if moved(before, after):
            self.dropped += len(times)
            return []
        return times


def _stretch_s(budget_s: float) -> float:
    return min(_STRETCH_S, budget_s / _STRETCHES)


@contextmanager
def _quiet(awaits: bool) -> Iterator[None]:
    """Without Python's own complaint about each coroutine that is not awaited: the detector has said it once."""
    with warnings.catch_warnings():
        if awaits:
            warnings.filterwarnings("ignore", message=".*was never awaited", category=RuntimeWarning)
        yield


def _exact(times: list[float], clock: Clock, plan: BlockPlan) -> bool:
    """Whether more blocks would tell nothing new: a device or a model may repeat itself to its clock's step."""
    return not is_processor_time(clock) and max(times) - min(times) <= 2 * clock.resolution_s / max(1, plan.calls - 1)


def _notes(run: _Run, plan: BlockPlan, times: list[float], *, wall_s: float) -> tuple[str, ...]:
    notes = []
    if plan.warm_calls == 1 and len(times) == 1:
        notes.append(f"{ONE_COLD_CALL}: it took too long to be repeated, so its time may include loading or compiling")
    elif run.dropped and not run.timed:
        notes.append("every block was dropped, so the time comes from the warm-up and has no interval")
    elif len(times) < _LEAST_TIMES:
        calls = "one call" if len(times) == 1 else counted(len(times), "call")
        notes.append(f"{calls} filled the budget, so there is no interval; pass a larger budget_s")
    if run.dropped:
        were = "was" if run.dropped == 1 else "were"
        notes.append(
            f"{counted(run.dropped, 'block')} {were} dropped because the device's clock changed or was throttled"
        )
    if run.interrupted > 0.3 * (run.interrupted + len(times)):
        notes.append(f"other programs interrupted {counted(run.interrupted, 'block')}")
    change = stats.drift(times)
    if abs(change) > 0.2:
        word = "slower" if change > 0 else "faster"
        notes.append(
            f"calls got {word} during the measurement, so their time keeps changing and the median is only a snapshot"
        )
    later_s = plan.call_s if plan.warm_calls > 1 else math.inf
    notes.append(first_call_note(run.first, later_s, budget_s=run.budget_s))
    notes.append(overrun_note(wall_s, budget_s=run.budget_s, first_s=run.first.took_s))
    if times and plan.calls * plan.call_s <= 2 * run.resolution_s:
        take = "takes" if plan.calls == 1 else "take"
        notes.append(
            f"{counted(plan.calls, 'call')} {take} less than two steps of this clock, so the time is known only "
            "within bounds"
        )
    return tuple(filter(None, notes))
