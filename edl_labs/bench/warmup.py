"""Before timing: run until the time of a call is stable, and find how many calls make a block."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from statistics import median

from edl_labs.bench.blocks import MAX_CALLS, Runner
from edl_labs.clock import Clock

_STEADY = 0.03
LEAST_BLOCK_S = 150e-6
_TRIES = 400
_BLIND_S = 0.5
# A modelled device keeps every operation: what costs it nothing is not queued a million times.
_MOST_QUEUED = 1 << 15


@dataclass(frozen=True)
class Plan:
    """What a warm-up found: seconds of a call, of an empty block, and the calls that fill a block."""

    calls: int
    call_s: float
    empty_s: float
    first_call_s: float
    warm_calls: int
    steady: bool
    seen_s: tuple[float, ...] = ()

    def resized(self, calls: int, *, empty_s: float) -> Plan:
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


def warm_up(runner: Runner, *, budget_s: float, most_s: float, least_s: float, block_s: float = LEAST_BLOCK_S) -> Plan:
    """Runs blocks of growing size until the time of a call stops falling; stops after `most_s` in any case."""
    now = runner.clock.now_s
    begin = now()
    first = runner.block_s(1)
    if first >= budget_s / 10:
        return Plan(1, first, 0.0, first, 1, False, (first,))
    empty = empty_block_s(runner)
    target = block_target_s(
        runner.clock, budget_s=budget_s, asynchronous=runner.asynchronous, empty_s=empty, least_s=block_s
    )
    calls, warm, seen, steady = 1, 1, [], False
    most_calls = _MOST_QUEUED if runner.asynchronous else MAX_CALLS
    for _ in range(_TRIES):
        began = time.perf_counter()
        took = runner.block_s(calls)
        warm += calls
        # Real work of half a second of which the clock sees nothing: this clock cannot time it, however many calls.
        most_calls = calls if took <= empty and time.perf_counter() - began > _BLIND_S else most_calls
        if took - empty < target / 2 and calls < most_calls and now() - begin < most_s:
            calls = min(most_calls, _grown(calls, took - empty, target))
            continue
        seen.append(max(took - empty, 0.0) / calls)
        spent = now() - begin
        steady = is_steady(seen)
        if (steady and spent >= least_s) or spent >= most_s or not seen[-1]:
            break
    call_s = median(seen[-3:]) if seen else max(first - empty, 0.0)
    size = fitting(call_s, target) if call_s > 0 else calls
    return Plan(min(size, most_calls), call_s, empty, first, warm, steady, tuple(seen))


def is_steady(seen: list[float]) -> bool:
    """Whether the last three times are no longer falling: none is 3 % faster than the best before them."""
    if len(seen) < 4:
        return False
    best_before = min(seen[:-3])
    return min(seen[-3:]) >= best_before * (1 - _STEADY) and median(seen[-3:]) <= median(seen) * (1 + _STEADY)


def fitting(call_s: float, target_s: float) -> int:
    """How many calls of `call_s` come nearest to `target_s`; at least one."""
    return max(1, min(MAX_CALLS, round(target_s / call_s)))


def _grown(calls: int, took: float, target: float) -> int:
    ratio = target / took if took > 0 else 16.0
    return min(MAX_CALLS, max(calls + 1, math.ceil(calls * min(ratio, 16.0))))
