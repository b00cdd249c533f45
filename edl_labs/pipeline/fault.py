"""`whose_fault`: does a training loop wait for its data or for its step, and what would fixing either gain?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edl_labs import stats
from edl_labs.clock import Clock, HostClock
from edl_labs.errors import UsageError
from edl_labs.pipeline.limits import within
from edl_labs.units import percent, seconds

VERDICTS = ("data-bound", "compute-bound", "balanced", "inconclusive")
_BLOCKS = 12


@dataclass(frozen=True, repr=False)
class Fault:
    """The verdict on a loop, and what it rests on; times are seconds a batch in the steady state.

    `loader_s` with a mock trainer, `step_s` with a mock loader, `loop_s` together. `ratio` is loader over step, with
    its interval. `data_share` of the loop's wall was spent waiting for data, `compute_share` in the step; they sum to
    1. `gain_if_loader_free` and `gain_if_step_free` are how many times as fast the loop would be.
    """

    verdict: str
    loader_s: float
    step_s: float
    loop_s: float
    ratio: float
    ratio_low: float
    ratio_high: float
    data_share: float
    compute_share: float
    share_low: float
    share_high: float
    gain_if_loader_free: float
    gain_if_step_free: float
    startup_s: float
    batches: int
    band: float

    @property
    def interference(self) -> float:
        """How many times longer the loop takes than its slower side alone: 1 where they overlap and share nothing."""
        return _over(self.loop_s, max(self.loader_s, self.step_s))

    @property
    def overlap(self) -> float:
        """The share of the shorter side that is hidden beneath the longer one, 0 to 1."""
        shorter = min(self.loader_s, self.step_s)
        hidden = self.loader_s + self.step_s - self.loop_s
        return min(1.0, max(0.0, hidden / shorter)) if shorter > 0 else 1.0

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"{self.verdict}: {percent(self.data_share)} of the loop waits for data "
                f"[{percent(self.share_low)}, {percent(self.share_high)}]",
                f"  a batch takes {seconds(self.loop_s)}: the loader alone {seconds(self.loader_s)}, "
                f"the step alone {seconds(self.step_s)} (ratio {self.ratio:.2f} "
                f"[{self.ratio_low:.2f}, {self.ratio_high:.2f}])",
                f"  data for free: {self.gain_if_loader_free:.2f}x as fast; a free step: {self.gain_if_step_free:.2f}x",
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """The verdict and its figures as plain data with a schema number."""
        more = {"interference": self.interference, "overlap": self.overlap}
        return {"kind": "fault", "schema": 1, **asdict(self), **more}


def whose_fault(
    loader: Iterable[Any] | Callable[[], Iterable[Any]],
    step: Callable[[Any], Any],
    *,
    batches: int = 60,
    clock: Clock | None = None,
    budget_s: float = 30.0,
    limit_s: float = 60.0,
    band: float = 0.1,
    level: float = 0.95,
) -> Fault:
    """The `Fault` of a loop that feeds batches of `loader` to `step`, from three runs of up to `batches` batches.

    The loader alone (mock trainer), the step alone on one batch (mock loader), then both; the first batch of each, in
    which workers start, and the first third of the loop, in which the queue runs empty, do not count. `loader` is
    something to iterate over again, or a function that makes one. Each run ends after a third of `budget_s`; a batch
    that does not come within `limit_s` is TookTooLong. The step has no such limit: one that hangs hangs this too.
    """
    if batches < 6:
        raise UsageError(f"{batches} batches", why="an interval needs some", next="give 60")
    clock = HostClock() if clock is None else clock
    make = loader if callable(loader) else _again(loader)
    run = _Run(clock, batches, budget_s / 3, limit_s)
    alone, startup_s, batch = run.loader(make)
    steps = run.step(step, batch)
    waits, works = run.loop(make, step)
    return fault_of_times(alone, steps, waits, works, startup_s=startup_s, band=band, level=level)


def fault_of_times(
    loader_s: Sequence[float],
    step_s: Sequence[float],
    wait_s: Sequence[float],
    work_s: Sequence[float],
    *,
    startup_s: float = 0.0,
    band: float = 0.1,
    level: float = 0.95,
) -> Fault:
    """The `Fault` from recorded times: periods of the loader and of the step alone, waits and steps of the loop.

    Data-bound when the whole interval of loader over step lies above 1 + band, compute-bound when it lies below
    1 / (1 + band), balanced when it lies in between; an interval across a border is inconclusive, unless its centre
    lies in the band: then the two sides cost about the same and it is balanced.

    >>> fault_of_times([3.0] * 9, [1.0] * 9, [2.0] * 9, [1.0] * 9).verdict
    'data-bound'
    """
    loop_s = [wait + work for wait, work in zip(wait_s, work_s, strict=True)]
    if min(len(loader_s), len(step_s), len(loop_s)) == 0:
        raise UsageError("there are no times", why="a verdict rests on some", next="give one or more of each kind")
    load, work, loop = (_period(times, level) for times in (loader_s, step_s, loop_s))
    low, high = _over(load.low, work.high), _over(load.high, work.low)
    ratio = _over(load.center, work.center)
    share = _share(wait_s, loop_s, level)
    return Fault(
        verdict=_verdict(ratio, low, high, band),
        loader_s=load.center,
        step_s=work.center,
        loop_s=loop.center,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        data_share=share.center,
        compute_share=1 - share.center,
        share_low=max(0.0, share.low),
        share_high=min(1.0, share.high),
        gain_if_loader_free=max(1.0, _over(loop.center, work.center)),
        gain_if_step_free=max(1.0, _over(loop.center, load.center)),
        startup_s=startup_s,
        batches=len(loop_s),
        band=band,
    )


def _verdict(ratio: float, low: float, high: float, band: float) -> str:
    if low > 1 + band:
        return "data-bound"
    if high < 1 / (1 + band):
        return "compute-bound"
    return "balanced" if 1 / (1 + band) <= ratio <= 1 + band else "inconclusive"


def _period(times: Sequence[float], level: float) -> stats.Estimate:
    size = _block_size(list(times))
    return _estimate([sum(block) / len(block) for block in _blocks(list(times), size)], level)


def _share(wait_s: Sequence[float], loop_s: Sequence[float], level: float) -> stats.Estimate:
    size = _block_size(list(loop_s))
    blocks = zip(_blocks(list(wait_s), size), _blocks(list(loop_s), size), strict=True)
    parts = _estimate([_over(sum(wait), sum(loop)) if sum(loop) else 0.0 for wait, loop in blocks], level)
    total = sum(loop_s)
    center = sum(wait_s) / total if total else 0.0
    low, high = min(parts.low, center), max(parts.high, center)
    return stats.Estimate(center, low, high, level, parts.n, parts.effective_n)


def _estimate(values: list[float], level: float) -> stats.Estimate:
    estimate = stats.median_interval(values, level=level)
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        return estimate
    # Too few blocks for the level: what was seen, from end to end.
    return stats.Estimate(estimate.center, min(values), max(values), level, estimate.n, estimate.effective_n)


def _block_size(times: list[float]) -> int:
    """How many batches a block holds: workers deliver in bursts, and the steadiest block holds whole bursts."""
    least, most = max(1, len(times) // _BLOCKS), max(1, len(times) // (_BLOCKS // 2))
    return min(range(least, most + 1), key=lambda size: (_spread(_blocks(times, size)), size))


def _spread(blocks: list[list[float]]) -> float:
    means = [sum(block) / len(block) for block in blocks]
    middle = sum(means) / len(means)
    return sum(abs(mean - middle) for mean in means) / len(means)


def _blocks(times: list[float], size: int) -> list[list[float]]:
    blocks = [times[start : start + size] for start in range(0, len(times), size)]
    if len(blocks) > 1 and len(blocks[-1]) < size:
        blocks[-2:] = [blocks[-2] + blocks[-1]]
    return blocks


def _over(above: float, below: float) -> float:
    if below > 0:
        return above / below
    return math.inf if above > 0 else 1.0


def _again(loader: Iterable[Any]) -> Callable[[], Iterable[Any]]:
    if iter(loader) is loader:
        raise UsageError(
            "an iterator can be used once only",
            why="whose_fault runs the loader alone and in the loop",
            next="give the loader itself, or a function that makes the iterator",
        )
    return lambda: loader


def _close(batches: Any) -> None:
    # Workers that are still at work would slow the next run.
    if hasattr(batches, "close"):
        batches.close()


class _Run:
    """Three runs with the same clock, number of batches and limits."""

    def __init__(self, clock: Clock, batches: int, budget_s: float, limit_s: float) -> None:
        self.clock, self.batches, self.budget_s, self.limit_s = clock, batches, budget_s, limit_s

    def loader(self, make: Callable[[], Iterable[Any]]) -> tuple[list[float], float, Any]:
        """Times between batches with a mock trainer, the time to the first one, and that batch."""
        begin = last = self.clock.now_s()
        batches = iter(make())
        times: list[float] = []
        first: Any = None
        while len(times) <= self.batches and (len(times) < 2 or last - begin < self.budget_s):
            there, batch = self._next(batches, len(times))
            if not there:
                break
            first = batch if not times else first
            now = self.clock.now_s()
            times.append(now - last)
            last = now
        _close(batches)
        if len(times) < 2:
            raise UsageError(
                f"the loader gives {len(times)} batches",
                why="the time between two of them is what counts",
                next="give a data set of more batches",
            )
        return times[1:], times[0], first

    def step(self, step: Callable[[Any], Any], batch: Any) -> list[float]:
        """Times of the step on one batch, drained."""
        times: list[float] = []
        begin = self.clock.now_s()
        while len(times) <= self.batches and (len(times) < 2 or self.clock.now_s() - begin < self.budget_s):
            times.append(self._step(step, batch))
        return times[1:]

    def loop(self, make: Callable[[], Iterable[Any]], step: Callable[[Any], Any]) -> tuple[list[float], list[float]]:
        """Waits and steps of the loop itself, after its first third."""
        batches = iter(make())
        waits: list[float] = []
        works: list[float] = []
        begin = self.clock.now_s()
        while len(waits) < self.batches and (len(waits) < 6 or self.clock.now_s() - begin < self.budget_s):
            start = self.clock.now_s()
            there, batch = self._next(batches, len(waits))
            if not there:
                break
            waits.append(self.clock.now_s() - start)
            works.append(self._step(step, batch))
        _close(batches)
        skip = min(len(waits) - 1, max(1, len(waits) // 3))
        return waits[skip:], works[skip:]

    def _step(self, step: Callable[[Any], Any], batch: Any) -> float:
        start = self.clock.now_s()
        step(batch)
        self.clock.synchronize()
        return self.clock.now_s() - start

    def _next(self, batches: Any, number: int) -> tuple[bool, Any]:
        nothing = object()
        batch = within(self.limit_s, lambda: next(batches, nothing), what=f"batch {number} of the loader")
        return batch is not nothing, batch
