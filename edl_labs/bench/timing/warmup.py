"""Before timing: run until the time of a call is stable, find how many calls make a block, then read such blocks."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from statistics import median

from edl_labs.bench.timing.blocks import MAX_CALLS, FirstCall, Runner
from edl_labs.clock import Clock
from edl_labs.units import seconds

_STEADY = 0.03  # a fall by less is within the noise of single blocks
LEAST_BLOCK_S = 150e-6  # long against a reading of the clock (0.1 µs), short against a timer tick
_TRIES = 400  # an end, should neither time nor steadiness come
_BLIND_S = 0.5  # real time after which a clock that saw nothing is given up
# A modelled device keeps every operation: what costs it nothing is not queued a million times.
_MOST_QUEUED = 1 << 15
# A call that fits the budget fewer times than this is timed as it comes.
_FEW = 10
# A first call is told apart from twice a later one, where it took a twentieth of the budget.
_COLD, _NOTICED = 2, 0.05
OVERRUN = 1.15  # a promise to users: a measurement that takes longer says so
_HOST_SLOPE_CALLS = 32  # from here on a second, short block costs under a thirtieth of the long one


@dataclass(frozen=True)
class BlockPlan:
    """What a warm-up found: seconds of a call, of an empty block, and the calls that fill a block.

    `turn_s` is a call's share of a block's wall, with what runs before it (clearing a cache).
    """

    calls: int
    call_s: float
    empty_s: float
    first_call_s: float
    warm_calls: int
    steady: bool
    seen_s: tuple[float, ...] = ()
    turn_s: float = 0.0

    @property
    def block_s(self) -> float:
        """What a block takes of the budget."""
        return self.calls * max(self.turn_s, self.call_s)

    def resized(self, calls: int, *, empty_s: float) -> BlockPlan:
        """The same plan with another number of calls in a block, and another cost of an empty one."""
        return replace(self, calls=max(1, min(int(calls), MAX_CALLS)), empty_s=empty_s)


def block_target_s(
    clock: Clock, *, budget_s: float, asynchronous: bool, empty_s: float, least_s: float = LEAST_BLOCK_S
) -> float:
    """How long a block should be: long against the clock's step and cost, short against budget and bursts."""
    cost = max(empty_s, clock.read_cost_s, 0.0)
    wanted = max(least_s, 2000 * clock.resolution_s, (50 if asynchronous else 100) * cost)
    # A coarse clock needs blocks of many steps even if few of them fit the budget.
    return min(wanted, max(budget_s / 40, min(50 * clock.resolution_s, budget_s / 12)))


def empty_block_s(runner: Runner, *, times: int = 7) -> float:
    """What a block costs without a call in it: two readings and, with a device, the wait for nothing."""
    return median(runner.block_s(0) for _ in range(times))


def warm_up(
    runner: Runner, *, budget_s: float, most_s: float, least_s: float, block_s: float = LEAST_BLOCK_S
) -> BlockPlan:
    """Runs blocks of growing size until the time of a call stops falling; stops after `most_s` in any case.

    A first call may load, compile or fill a cache: where it takes much of the budget, a second one is always made, and
    that is what a call takes. Only a first call of half a minute without a sign of such work is left alone.
    """
    now = runner.clock.now_s
    begin = now()
    first = runner.first_call()
    took_s = first.took_s
    plan = BlockPlan(1, took_s, empty_block_s(runner), took_s, 1, False, (took_s,), turn_s=max(took_s, now() - begin))
    if not first.may_be_repeated:
        return plan
    if took_s >= budget_s / _FEW:
        left_s, start = budget_s - (now() - begin), now()
        again = runner.block_s(1)
        plan = replace(plan, call_s=again, warm_calls=2, seen_s=(again,), turn_s=now() - start)
        if again >= left_s / _FEW:
            return plan
        budget_s = left_s - plan.turn_s
        most_s, least_s = min(most_s, budget_s / 4), min(least_s, budget_s / 4)
    target = block_target_s(
        runner.clock, budget_s=budget_s, asynchronous=runner.asynchronous, empty_s=plan.empty_s, least_s=block_s
    )
    return _settled(runner, plan, target, most_s=most_s, least_s=least_s)


def _settled(runner: Runner, plan: BlockPlan, target: float, *, most_s: float, least_s: float) -> BlockPlan:
    now, empty = runner.clock.now_s, plan.empty_s
    begin = now()
    calls, warm, seen, steady = 1, plan.warm_calls, [], False
    most_calls = _MOST_QUEUED if runner.asynchronous else MAX_CALLS
    turn_s = 0.0
    # Where something runs before each call, a block of many would be made of that.
    grows = runner.before_each is None
    for _ in range(_TRIES):
        began, start = time.perf_counter(), now()
        took = runner.block_s(calls)
        turn_s = (now() - start) / calls
        warm += calls
        # Real work of half a second of which the clock sees nothing: this clock cannot time it, however many calls.
        most_calls = calls if took <= empty and time.perf_counter() - began > _BLIND_S else most_calls
        if grows and took - empty < target / 2 and calls < most_calls and now() - begin < most_s:
            calls = min(most_calls, _grown(calls, took - empty, target))
            continue
        seen.append(max(took - empty, 0.0) / calls)
        spent = now() - begin
        steady = is_steady(seen)
        if (steady and spent >= least_s) or spent >= most_s or not seen[-1]:
            break
    call_s = median(seen[-3:]) if seen else max(plan.call_s - empty, 0.0)
    turn_s = call_s if grows else max(call_s, turn_s)
    size = fitting(turn_s, target, asynchronous=runner.asynchronous and grows) if turn_s > 0 else calls
    return BlockPlan(
        min(size, most_calls), call_s, empty, plan.first_call_s, warm, steady, seen_s=tuple(seen), turn_s=turn_s
    )


def first_call_note(first: FirstCall | None, later_s: float, *, budget_s: float, name: str = "") -> str:
    """What set the first call apart from the later ones, where that took a noticeable part of the budget; else ''."""
    if first is None or first.took_s < max(_COLD * later_s, _NOTICED * budget_s):
        return ""
    why = first.cause or "it was loading, tuning or filling caches"
    of = f" of {name}" if name else ""
    return (
        f"the first call{of} took {seconds(first.took_s)}, and a later one {seconds(later_s)}: {why}, which "
        "happens only once"
    )


def overrun_note(wall_s: float, *, budget_s: float, first_s: float) -> str:
    """A note that measuring took longer than the budget, and why, or ''."""
    if wall_s <= OVERRUN * budget_s:
        return ""
    long = first_s > (OVERRUN - 1) * budget_s
    why = f"the first call took {seconds(first_s)}" if long else "other programs kept the machine busy"
    return f"measuring took {seconds(wall_s)} instead of the budgeted {seconds(budget_s)}: {why}"


def is_steady(seen: list[float]) -> bool:
    """Whether the last three times are no longer falling: none is 3 % faster than the best before them."""
    if len(seen) < 4:
        return False
    best_before = min(seen[:-3])
    return min(seen[-3:]) >= best_before * (1 - _STEADY) and median(seen[-3:]) <= median(seen) * (1 + _STEADY)


def fitting(call_s: float, target_s: float, *, asynchronous: bool = False) -> int:
    """How many calls of `call_s` come nearest to `target_s`; at least one.

    With a device at least two, where that is not far longer: the slope between one call and more is what leaves the
    latency of a launch out.
    """
    least = 2 if asynchronous and call_s <= _FEW * target_s else 1
    return max(least, min(MAX_CALLS, round(target_s / call_s)))


def _grown(calls: int, took: float, target: float) -> int:
    ratio = target / took if took > 0 else 16.0
    return min(MAX_CALLS, max(calls + 1, math.ceil(calls * min(ratio, 16.0))))


class Sampler:
    """Draws times per call of one runner, in blocks of a plan's size.

    Many calls: the slope between a block of one call and a block of k, which removes everything that a block costs once
    (readings, the wait for the device, the latency of the first launch). Few calls: the cost of an empty block is
    taken off.
    """

    def __init__(self, runner: Runner, plan: BlockPlan) -> None:
        self.runner, self.plan = runner, plan
        self._empty_s = plan.empty_s
        self.slope = plan.calls >= (2 if runner.asynchronous else _HOST_SLOPE_CALLS) and runner.before_each is None

    def read_s(self) -> float:
        """Seconds per call, from one block."""
        calls = self.plan.calls
        if self.slope:
            short = self.runner.block_s(1)
            return (self.runner.block_s(calls) - short) / (calls - 1)
        return (self.runner.block_s(calls) - calls_cost(self.runner, calls, self._empty_s)) / calls

    def settle(self) -> None:
        """One untimed call after another function has run, where that is cheap compared with the block."""
        if self.plan.calls >= 4:
            self.runner.block_s(1)

    def check_empty(self) -> None:
        """Measures the cost of an empty block again: the state of the machine may have changed it."""
        self._empty_s = median(self.runner.block_s(0) for _ in range(5))


def calls_cost(runner: Runner, calls: int, empty_s: float) -> float:
    """What to take off a block of `calls`: the empty block, once, or once a call where each call is timed alone."""
    return empty_s * (calls if runner.before_each is not None else 1)
