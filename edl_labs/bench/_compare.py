"""`compare`: how the times of functions relate, from paired, interleaved rounds in random order."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from edl_labs import stats
from edl_labs.arguments import checked_arguments, require_fraction
from edl_labs.bench._measure import RESTART_BELOW, checked_budget, step_s
from edl_labs.bench.detectors import Detection, get_ready
from edl_labs.bench.equal_outputs import compare_outputs
from edl_labs.bench.results import (
    ONE_COLD_CALL,
    ClockFacts,
    Comparison,
    Mistake,
    RatioRow,
    Side,
    decision_confidence,
    verdict,
)
from edl_labs.bench.timing.blocks import ArgumentPool, Runner
from edl_labs.bench.timing.paired_rounds import OneAfterAnother, Rounds, blocked_order
from edl_labs.bench.timing.processor_state import Watch, watch_for
from edl_labs.bench.timing.reachable_objects import clock_in_use
from edl_labs.bench.timing.warmup import (
    BlockPlan,
    Sampler,
    block_target_s,
    first_call_note,
    fitting,
    overrun_note,
    warm_up,
)
from edl_labs.clock import Clock, is_processor_time
from edl_labs.device import stamp_for
from edl_labs.errors import UsageError
from edl_labs.units import counted, seconds

_WARM_SHARE = 0.2  # a fifth of the budget to warm up leaves four fifths to the rounds
_EQUAL_CALLS_UP_TO = 1.5  # warm-ups of alike functions differ by up to this; equal blocks make their swap fair
# A timer tick (1 to 4 ms apart) falls into every block, so that sides of other lengths meet it too.
_LONG_BLOCK_S = 4e-3
_FAR_APART = 4  # no noise of a warm-up makes alike functions differ so much
_FEWEST = 6  # rounds that an interval at 95 % needs
# Neighbours and bursts make a call some times as long, seldom ten times: what differs by more needs no round.
_ROUGH = 10
_LOOKS = 5  # the least of five seldom all fall into a burst
_DRIFT_NOTED = 0.2  # a processor's clock seldom moves times by more: what does is told in words


@checked_arguments(candidates='Pass functions by name: compare({"eager": f, "compiled": g}).')
def compare(
    candidates: Mapping[str, Callable[..., Any]],
    *,
    budget_s: float = 0.4,
    band: float = 0.005,
    precision: float | None = None,
    inputs: tuple[Any, ...] | Callable[[], Any] | None = None,
    clock: Clock | None = None,
    equal: Any = None,
    level: float = 0.95,
    seed: int | None = None,
    detect: bool = False,
    watch: Watch | None = None,
) -> Comparison:
    """How the time of each later function relates to the first one's, as a `Comparison` with a verdict.

    Rounds run each function twice at mirrored places (A B B A) in an order drawn anew each time, so that drift and
    bursts hit all alike; the interval on each ratio is exact under that randomisation for sides of about equal cost.
    Sides that differ by over a tenth, or vary on their own, are compared by sums over rounds. It stops at `budget_s`,
    or once the sizes of deviations promise a half-width of `precision` (a quarter of the band unless given): these the
    random order does not influence, so that stopping early costs no coverage. `band` is the relative difference that
    is as good as none. Outputs are compared before times: `equal` may be a function of two results, or False.
    `seed` fixes the order.

    >>> c = compare({"a": lambda: sum(range(50)), "b": lambda: sum(range(50))}, budget_s=0.02)
    >>> c.low <= c.ratio <= c.high and c.verdict in ("faster", "same", "slower", "inconclusive")
    True
    """
    budget_s = checked_budget(budget_s)
    _check(candidates, band=band, precision=precision, level=level)
    clock = clock_in_use(list(candidates.values()), inputs) if clock is None else clock
    wall, started = time.perf_counter(), clock.now_s()
    begin = started
    get_ready()
    feed = None if inputs is None else ArgumentPool(inputs, fill_s=0.05 * budget_s)
    runners = [Runner(fn, clock=clock, name=name, feed=feed) for name, fn in candidates.items()]
    warnings, off = _look(runners, feed=feed, budget_s=budget_s, enabled=detect)
    compared = compare_outputs({runner.name: runner.once for runner in runners}, equal)
    for runner in runners:
        runner.first_call()
    if budget_s - (clock.now_s() - begin) < RESTART_BELOW * budget_s:
        begin = clock.now_s()
    plans = _plans(runners, begin=begin, budget_s=budget_s)
    samplers = [Sampler(runner, plan) for runner, plan in zip(runners, plans, strict=True)]
    goal = 0.25 * band if precision is None else precision
    rounds = Rounds(samplers, rng=random.Random(seed), watch=watch_for(clock) if watch is None else watch)
    stopped = rounds.run(until_s=begin + budget_s, goal=goal, level=level)
    blocked = blocked_order(samplers, until_s=begin + budget_s, spent_s=rounds.spent_s)
    rows = tuple(_row(rounds, blocked, index, band=band, level=level) for index in range(1, len(runners)))
    wall_s = time.perf_counter() - wall if is_processor_time(clock) else clock.now_s() - started
    return Comparison(
        sides=tuple(
            _side(plan, runner, rounds.calm_times(i))
            for i, (plan, runner) in enumerate(zip(plans, runners, strict=True))
        ),
        rows=rows,
        level=level,
        band=band,
        rounds=rounds.count,
        budget_s=budget_s,
        wall_s=wall_s,
        clock=ClockFacts.of(clock, asynchronous=runners[0].asynchronous),
        stopped=stopped,
        compared_outputs=compared,
        dropped=rounds.dropped,
        warnings=warnings,
        off=off,
        notes=(*_first_notes(rounds, budget_s=budget_s, wall_s=wall_s), *_notes(rows, rounds)),
        stamp=stamp_for(clock),
    )


def _check(candidates: Mapping[str, Callable[..., Any]], *, band: float, precision: float | None, level: float) -> None:
    require_fraction(level=level)
    if len(candidates) < 2:
        raise UsageError(
            f"compare() needs at least two functions, got {len(candidates)}.",
            why="compare() returns the ratio of two times.",
            next='Pass functions by name: compare({"eager": f, "compiled": g}).',
        )
    for name, value in (("band", band), ("precision", precision)):
        if value is not None and not 0 <= value < 1:
            raise UsageError(
                f"{name} must be 0 or more and below 1, got {value!r}.",
                why="It is a relative difference: 0.005 means 0.5 %.",
                next=f"Pass {name}={value / 100:g} for {value:g} %." if value >= 1 else f"Pass {name}=0.005.",
            )


def _look(
    runners: list[Runner], *, feed: ArgumentPool | None, budget_s: float, enabled: bool
) -> tuple[tuple[Mistake, ...], dict[str, str]]:
    """Mistakes in the functions, when asked for: looking takes calls, which belong to the budget of the comparison."""
    found: dict[tuple[str, str], Mistake] = {}
    off: dict[str, str] = {} if enabled else {"all": "detect=False"}
    for runner in runners if enabled else ():
        session = Detection(
            runner.fn, feed=feed, clock=runner.clock, enabled=True, cold=False, budget_s=budget_s / len(runners)
        )
        session.before()
        runner.first = session.first
        off |= session.off
        for item in session.so_far:
            named = Mistake(item.kind, f"{runner.name}: {item.what}", item.why, item.next)
            found[runner.name, item.kind] = named
    return tuple(found.values()), off


def _plans(runners: list[Runner], *, begin: float, budget_s: float) -> list[BlockPlan]:
    """A plan for each side; sides of about the same cost get equal numbers of calls, so that a swap is fair."""
    now = runners[0].clock.now_s
    plans = []
    for runner in runners:
        left = budget_s - (now() - begin)
        most = _WARM_SHARE * budget_s / len(runners)
        plans.append(warm_up(runner, budget_s=max(left, 1e-9), most_s=most, least_s=0.2 * most))
    times = _times_s(runners, plans, left_s=budget_s - (now() - begin))
    # One cost of an empty block for all: it is the clock's, and an error that only one side has would look like a
    # ratio.
    empty = min(plan.empty_s for plan in plans)
    target = block_target_s(
        runners[0].clock, budget_s=budget_s / len(runners), asynchronous=runners[0].asynchronous, empty_s=empty
    )
    if max(times) <= _EQUAL_CALLS_UP_TO * min(times):
        calls = fitting(math.sqrt(max(times) * min(times)), target, asynchronous=runners[0].asynchronous)
        return [plan.resized(calls, empty_s=empty) for plan in plans]
    # Blocks of about one length, so that the same noise meets all: as long as the longest call, up to some ticks.
    target = max(target, min(max(times), _LONG_BLOCK_S, budget_s / (40 * len(runners))))
    sizes = [fitting(call_s, target, asynchronous=runners[0].asynchronous) for call_s in times]
    return [plan.resized(calls, empty_s=empty) for plan, calls in zip(plans, sizes, strict=True)]


def _times_s(runners: list[Runner], plans: list[BlockPlan], *, left_s: float) -> list[float]:
    """A call of each side. Where the warm-ups say that sides differ a little, a look in turn tells noise from truth."""
    times = [max(plan.call_s, 1e-12) for plan in plans]
    cost_s = _LOOKS * sum(plan.block_s for plan in plans)
    if max(times) <= _EQUAL_CALLS_UP_TO * min(times) or max(times) > _FAR_APART * min(times) or cost_s > left_s / 10:
        return times
    looks = [
        [runner.block_s(p.calls) - p.empty_s for runner, p in zip(runners, plans, strict=True)] for _ in range(_LOOKS)
    ]
    return [max(min(side) / plan.calls, 1e-12) for side, plan in zip(zip(*looks, strict=True), plans, strict=True)]


def _row(rounds: Rounds, blocked: OneAfterAnother, index: int, *, band: float, level: float) -> RatioRow:
    estimate, sure = (
        found.map(_exp)
        for found in stats.sign_flip_intervals(rounds.log_ratios(index), levels=(level, decision_confidence(level)))
    )
    blur = sum(_blur(rounds.samplers[i]) for i in (0, index))
    low, high = _blurred(estimate, blur)
    ratio = estimate.center if math.isfinite(estimate.center) else rounds.rough_ratio(index)
    sure_ends = _blurred(sure, blur)
    if _tells_roughly(rounds, index):
        low, high = sure_ends = ratio / _ROUGH, ratio * _ROUGH
    names = [sampler.runner.name for sampler in rounds.samplers]
    return RatioRow(
        name=names[index],
        against=names[0],
        ratio=ratio,
        low=low,
        high=high,
        verdict=verdict(low, high, band=band, sure=sure_ends),
        blocked_ratio=blocked.ratio(index),
        interleaving_changed=blocked.disagrees(index, ratio=ratio, half_width=(high - low) / 2),
        log_ratios=tuple(rounds.log_ratios(index)),
    )


def _tells_roughly(rounds: Rounds, index: int) -> bool:
    """Whether too few rounds fitted for an interval, and one warm call of each already tells them apart."""
    sides = [rounds.samplers[i] for i in (0, index)]
    short_s, long_s = sorted(side.plan.call_s for side in sides)
    blind_s = max(step_s(side.runner, side.plan) for side in sides)
    warm = min(side.plan.warm_calls for side in sides) > 1
    return rounds.count < _FEWEST and warm and long_s > _ROUGH * max(short_s, blind_s, 1e-12)


def _blur(sampler: Sampler) -> float:
    """What one step of the clock is worth relative to a block; 1 where it cannot tell a block from none."""
    plan = sampler.plan
    step = step_s(sampler.runner, plan)
    return step / plan.call_s if plan.call_s > step else (1.0 if step else 0.0)


def _blurred(estimate: stats.Estimate, blur: float) -> tuple[float, float]:
    return estimate.low * (1 - min(blur, 1.0)), estimate.high * (1 + blur) if blur < 1 else math.inf


def _exp(value: float) -> float:
    return math.inf if value > 700 else math.exp(value)


def _side(plan: BlockPlan, runner: Runner, times: list[float]) -> Side:
    estimate = stats.median_interval(times)
    center = estimate.center if times else plan.call_s
    return Side(
        runner.name, center, max(estimate.low, 0.0), estimate.high, plan.calls, plan.warm_calls, plan.first_call_s
    )


def _first_notes(rounds: Rounds, *, budget_s: float, wall_s: float) -> tuple[str, ...]:
    """What the first calls did, and whether the budget was kept."""
    notes = []
    for runner, plan in ((sampler.runner, sampler.plan) for sampler in rounds.samplers):
        if plan.warm_calls == 1:
            notes.append(
                f"{runner.name}: {ONE_COLD_CALL}: it took {seconds(plan.call_s)}, which is too long to call it again"
            )
        else:
            notes.append(first_call_note(runner.first, plan.call_s, budget_s=budget_s, name=runner.name))
    first_s = sum(sampler.runner.first_call().took_s for sampler in rounds.samplers)
    return tuple(filter(None, [*notes, overrun_note(wall_s, budget_s=budget_s, first_s=first_s)]))


def _notes(rows: tuple[RatioRow, ...], rounds: Rounds) -> tuple[str, ...]:
    notes = []
    changes = [stats.drift(rounds.calm_times(i)) for i in range(len(rounds.times))]
    names = [sampler.runner.name for sampler in rounds.samplers]
    for name, change in zip(names, changes, strict=True):
        # What changes all sides alike is the machine.
        if abs(change) > _DRIFT_NOTED and max(changes) - min(changes) > _DRIFT_NOTED:
            word = "slower" if change > 0 else "faster"
            notes.append(f"calls of {name} got {word} during the measurement, so the ratio keeps changing")
    for index, row in enumerate(rows, 1):
        if rounds.varies(index):
            notes.append(f"{row.name} or {row.against} varies from call to call: the ratio compares their mean times")
        elif rounds.unexplained(index):
            notes.append(
                f"all calls of {row.name} together took {rounds.total_ratio(index):.3g} times as long as those of "
                f"{row.against}: a few calls took far longer than the rest; a larger budget_s will show which "
                "function they belong to"
            )
        elif row.interleaving_changed and max(map(abs, changes)) <= _DRIFT_NOTED:
            notes.append(
                f"interleaving changed the result: measured separately, {row.name} takes {row.blocked_ratio:.3g} times "
                f"as long as {row.against}, but interleaved {row.ratio:.3g} times; they affect each other (cache, "
                "memory, buffers)"
            )
    if rounds.interrupted > 0.3 * rounds.count:
        notes.append(f"other programs interrupted {rounds.interrupted} of {rounds.count} rounds")
    far = [row.name for index, row in enumerate(rows, 1) if _tells_roughly(rounds, index)]
    if far:
        notes.append(
            f"{counted(rounds.count, 'round')} fitted into the budget: the ratio of {', '.join(far)} comes from the "
            "warm-up calls, "
            f"which were not interleaved, so its interval spans a factor of {_ROUGH}"
        )
    elif rounds.count < _FEWEST:
        notes.append(
            f"only {counted(rounds.count, 'round')} fitted into the budget, so the interval is wide; pass a larger "
            "budget_s"
        )
    if rounds.dropped:
        were = "was" if rounds.dropped == 1 else "were"
        notes.append(
            f"{counted(rounds.dropped, 'round')} {were} dropped because the device's clock changed or was throttled"
        )
    return tuple(notes)
