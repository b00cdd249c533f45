"""Each side of a training loop alone and both together: `whose_fault`, and steps that take a known time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from edl_labs.arguments import checked_arguments, require_amount
from edl_labs.clock import Clock, HostClock
from edl_labs.errors import UsageError
from edl_labs.pipeline._fault_of_times import Fault, fault_of_times
from edl_labs.pipeline._within import alarm, can_alarm, within


@checked_arguments()
def sleeping_step(duration_s: float) -> Callable[[Any], None]:
    """A step on a device that takes no CPU: the caller sleeps for `duration_s`."""
    require_amount(duration_s=duration_s)

    def step(batch: Any) -> None:
        time.sleep(duration_s)

    return step


@checked_arguments()
def busy_step(duration_s: float, *, clock: Callable[[], float] = time.thread_time) -> Callable[[Any], None]:
    """A step on this CPU: it uses `duration_s` of processor time, longer where others want the core."""
    require_amount(duration_s=duration_s)

    def step(batch: Any) -> None:
        end = clock() + duration_s
        while clock() < end:
            pass

    return step


# Of rare stalls a run goes on until it has seen this many, or this many times the batches.
_EVENTS, _LONGER = 6, 10
_OF_STEP = {
    "why": "the step waits for something that never arrives, or its work takes longer than expected",
    "next": "run the step alone on one batch, or increase limit_s",
}


@checked_arguments()
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
    something to iterate over again, or a function that makes one. Where a few long stalls make up the time, runs go on
    for up to ten times the batches. Each run ends after a third of `budget_s`; a batch that does not come within
    `limit_s` is TookTooLong, and so, in the main thread of a Unix process, is a step.
    """
    if batches < 6:
        raise UsageError(
            f"{batches} batches are too few", why="an interval needs at least 6 batches", next="try batches=60"
        )
    clock = HostClock() if clock is None else clock
    make = loader if callable(loader) else _again(loader)
    run = _Run(clock, batches, budget_s / 3, limit_s)
    alone, startup_s, batch = run.loader(make)
    steps = run.step(step, batch)
    waits, works = run.loop(make, step)
    return fault_of_times(alone, steps, waits, works, startup_s=startup_s, band=band, level=level)


def _again(loader: Iterable[Any]) -> Callable[[], Iterable[Any]]:
    if iter(loader) is loader:
        raise UsageError(
            "an iterator can be used only once",
            why="whose_fault() runs the loader twice: alone, and in the loop",
            next="pass the loader itself, or a function that creates the iterator",
        )
    return lambda: loader


def _close(batches: Any) -> None:
    # Workers that are still at work would slow the next run.
    if hasattr(batches, "close"):
        batches.close()


class _Stalls:
    """Times as they come: do a few long ones make up their sum? As many as equal ones would weigh the same."""

    def __init__(self) -> None:
        self.total = self.squares = 0.0

    def add(self, one_s: float) -> None:
        self.total += one_s
        self.squares += one_s * one_s

    @property
    def are_few(self) -> bool:
        return self.total**2 < _EVENTS * self.squares


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
        stalls = _Stalls()
        while self._goes_on(len(times) - 1, stalls) and (len(times) < 2 or last - begin < self.budget_s):
            there, batch = self._next(batches, len(times))
            if not there:
                break
            first = batch if not times else first
            now = self.clock.now_s()
            if times:
                stalls.add(now - last)
            times.append(now - last)
            last = now
        _close(batches)
        if len(times) < 2:
            raise UsageError(
                f"the loader returned only {len(times)} batch" + ("" if len(times) == 1 else "es"),
                why="the measurement needs the time between two batches",
                next="use a data set with more batches",
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
        stalls = _Stalls()
        begin = self.clock.now_s()
        while self._goes_on(len(waits), stalls) and (len(waits) < 6 or self.clock.now_s() - begin < self.budget_s):
            start = self.clock.now_s()
            there, batch = self._next(batches, len(waits))
            if not there:
                break
            waits.append(self.clock.now_s() - start)
            works.append(self._step(step, batch))
            if len(waits) > self.batches // 3:
                stalls.add(waits[-1] + works[-1])
        _close(batches)
        skip = min(len(waits) - 1, max(1, min(len(waits), self.batches) // 3))
        return waits[skip:], works[skip:]

    def _goes_on(self, count: int, stalls: _Stalls) -> bool:
        return count < self.batches or (count < _LONGER * self.batches and stalls.are_few)

    def _step(self, step: Callable[[Any], Any], batch: Any) -> float:
        # Only the thread that may hold a GPU's context runs the step: elsewhere than in the main one without a limit.
        with alarm(self.limit_s, what="the end of a step", **_OF_STEP) if can_alarm() else nullcontext():
            start = self.clock.now_s()
            step(batch)
            self.clock.synchronize()
            return self.clock.now_s() - start

    def _next(self, batches: Any, number: int) -> tuple[bool, Any]:
        nothing = object()
        batch = within(self.limit_s, lambda: next(batches, nothing), what=f"batch {number} of the loader")
        return batch is not nothing, batch
