"""`Timer`: the time of a region, drained at both ends, with nested laps and running means."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from statistics import median
from types import TracebackType
from typing import ParamSpec, TypeVar

from edl_labs.arguments import checked_arguments
from edl_labs.bench.detectors import mistake
from edl_labs.bench.results import Mistake
from edl_labs.bench.timing.reachable_objects import clock_in_use
from edl_labs.clock import Clock, is_asynchronous
from edl_labs.units import percent, seconds
from edl_labs.values import Value

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_KEPT = 1000  # laps kept for the median: a day's training must not fill memory
# So many undrained laps of each name are looked at: each look waits for the device, which the others must not do.
_LOOKS = 3
# The open regions of all timers, in this thread or task alone: what others have open is not around it.
_OPEN: ContextVar[tuple[_Region, ...]] = ContextVar("open regions", default=())


@dataclass(frozen=True, repr=False)
class LapStats(Value):
    """The times of a lap so far: how often it ran, the total, the mean, the first and the last time."""

    name: str
    count: int
    total_s: float
    first_s: float
    last_s: float
    min_s: float
    max_s: float
    running_mean_s: float

    @property
    def mean_s(self) -> float:
        """Seconds per lap over all of them."""
        return self.total_s / self.count if self.count else math.nan


class Timer:
    """Times a region: `with Timer("step") as t: ...`, or as a decorator; the device in use is drained at both ends.

    `t.lap("forward")` times a part, and laps nest: their names become paths, `step/forward`. `t.over(loader)` times how
    long each batch is waited for. `t["forward"]` holds the counts, sums and running mean of a lap. `sync=False`
    leaves out the waiting inside a region that you know to be synchronous; only after the first three laps of each
    name it is looked whether the device was still at work, and most looks count. With `enabled=False` nothing is read
    and nothing waits. One timer serves several threads and asyncio tasks: laps nest in what their own thread or task
    has open (a task's also in what was open where it was made), and laps of one path add up.

    >>> t = Timer("epoch")
    >>> for batch in t.over([1, 2, 3], name="loading"):
    ...     with t.lap("training"):
    ...         _ = batch * 2
    >>> t["loading"].count, t["training"].count
    (3, 3)
    """

    @checked_arguments()
    def __init__(
        self,
        name: str = "region",
        *,
        clock: Clock | None = None,
        enabled: bool = True,
        sync: bool = True,
        smooth: float = 0.1,
    ) -> None:
        self.name, self.enabled, self._smooth = name, enabled, smooth
        self._clock = clock
        self._sync = sync
        self._laps: dict[str, _Lap] = {}
        self._lock = threading.Lock()

    @property
    def clock(self) -> Clock:
        """The clock in use: the accelerator's if this process uses one, unless a different clock was passed."""
        if self._clock is None:
            self._clock = clock_in_use(None)
        return self._clock

    @property
    def elapsed_s(self) -> float:
        """Seconds of the latest whole region; nan before the first has ended."""
        lap = self._laps.get(self.name)
        return lap.last_s if lap is not None else math.nan

    @property
    def laps(self) -> dict[str, LapStats]:
        """Every lap so far, by path."""
        return {path: lap.stats(path) for path, lap in self._laps.items()}

    def __getitem__(self, path: str) -> LapStats:
        """The lap of this name: its whole path, or the end of one."""
        found = [full for full in self._laps if full == path or full.endswith("/" + path)]
        if not found:
            raise KeyError(f"there is no lap {path!r}; the laps are: {', '.join(self._laps) or 'none yet'}")
        return self._laps[min(found, key=len)].stats(min(found, key=len))

    def lap(self, name: str) -> _Region | _Nothing:
        """A context that times a part under this name, inside the laps that are open now."""
        return _Region(self, name) if self.enabled else _NOTHING

    def over(self, batches: Iterable[_T], *, name: str = "loading") -> Iterator[_T]:
        """The same batches; how long each is waited for is a lap. Work issued before is drained first."""
        if not self.enabled:
            yield from batches
            return
        source = iter(batches)
        while True:
            region = _Region(self, name)
            region.__enter__()
            try:
                batch = next(source)
            except StopIteration:
                region.cancel()
                return
            except BaseException:
                region.cancel()
                raise
            region.__exit__(None, None, None)
            yield batch

    def __enter__(self) -> Timer:
        if self.enabled:
            _Region(self, self.name, is_whole=True).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        whole = [region for region in _OPEN.get() if region.timer is self and region.is_whole]
        if whole:
            whole[-1].__exit__(kind, error, trace)

    def __call__(self, fn: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(fn)
        def timed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not self.enabled:
                return fn(*args, **kwargs)
            with self:
                return fn(*args, **kwargs)

        return timed

    @property
    def warnings(self) -> tuple[Mistake, ...]:
        """What is wrong with these times: work still running at an end, a first lap far longer than the others."""
        undrained = [path for path, lap in self._laps.items() if lap.undrained]
        if undrained:
            # Looking at the first laps inside another one has waited in it: that it took longer tells nothing.
            return (mistake("no_sync", f"the device was still working at the end of {undrained[-1]}"),)
        found = {}
        for path, lap in self._laps.items():
            if len(lap.kept) >= 4 and lap.kept[0] > 10 * median(lap.kept[1:]):
                first, others = seconds(lap.kept[0]), seconds(median(lap.kept[1:]))
                found["compile_inside"] = mistake(
                    "compile_inside",
                    f"the first {path} took {first}, and the others took {others}, so the first included compiling, "
                    "loading or tuning",
                )
        return tuple(found.values())

    def __repr__(self) -> str:
        whole = self._laps.get(self.name)
        total = whole.total_s if whole else sum(lap.total_s for path, lap in self._laps.items() if "/" not in path)
        return (
            "\n".join([self._line(path, lap, total) for path, lap in self._laps.items()])
            or f"{self.name}: has not run yet"
        )

    def _line(self, path: str, lap: _Lap, total: float) -> str:
        share = f", {percent(lap.total_s / total, digits=2)}" if total > 0 else ""
        return f"{path}: {seconds(lap.total_s / lap.count)} × {lap.count} = {seconds(lap.total_s)}{share}"

    def _keep(self, path: str, took_s: float, *, drained: bool) -> None:
        with self._lock:
            lap = self._laps.setdefault(path, _Lap())
            lap.add(took_s, smooth=self._smooth)
        if not drained and lap.looks < _LOOKS:
            at_work = _still_working(self.clock, took_s)
            lap.looks += at_work is not None
            lap.at_work += bool(at_work)


class _Lap:
    __slots__ = ("at_work", "count", "first_s", "kept", "last_s", "looks", "max_s", "mean_s", "min_s", "total_s")

    def __init__(self) -> None:
        self.count, self.total_s, self.first_s, self.last_s = 0, 0.0, math.nan, math.nan
        self.min_s, self.max_s, self.mean_s = math.inf, 0.0, math.nan
        self.kept: list[float] = []
        self.at_work, self.looks = 0, 0

    @property
    def undrained(self) -> bool:
        """Whether most looks found the device at work: one alone may have met a busy host."""
        return 2 * self.at_work > self.looks

    def add(self, took_s: float, *, smooth: float) -> None:
        if not self.count:
            self.first_s = self.mean_s = took_s
        self.count += 1
        # The mean of all until there are 1 / smooth laps, then one that follows: a first slow lap is forgotten.
        self.mean_s += max(smooth, 1 / self.count) * (took_s - self.mean_s)
        self.total_s += took_s
        self.last_s = took_s
        self.min_s, self.max_s = min(self.min_s, took_s), max(self.max_s, took_s)
        if len(self.kept) < _KEPT:
            self.kept.append(took_s)

    def stats(self, path: str) -> LapStats:
        return LapStats(path, self.count, self.total_s, self.first_s, self.last_s, self.min_s, self.max_s, self.mean_s)


class _Region:
    __slots__ = ("_drains", "_name", "_path", "_start_s", "is_whole", "timer")

    def __init__(self, timer: Timer, name: str, *, is_whole: bool = False) -> None:
        self.timer, self._name, self.is_whole = timer, name, is_whole

    def __enter__(self) -> _Region:
        timer = self.timer
        clock = timer.clock
        around = _OPEN.get()
        self._path = "/".join([*(region._name for region in around if region.timer is timer), self._name])
        _OPEN.set((*around, self))
        self._drains = timer._sync and is_asynchronous(clock)
        if self._drains:
            clock.synchronize()
        self._start_s = clock.now_s()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        timer = self.timer
        clock = timer.clock
        try:
            if self._drains:
                clock.synchronize()
        finally:
            took_s = clock.now_s() - self._start_s
            self.cancel()
        if kind is None:
            timer._keep(self._path, took_s, drained=self._drains)

    def cancel(self) -> None:
        """Leaves without counting."""
        _OPEN.set(tuple(region for region in _OPEN.get() if region is not self))


class _Nothing:
    __slots__ = ()

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        return None


_NOTHING = _Nothing()


def _still_working(clock: Clock, took_s: float) -> bool | None:
    """Whether a device had work left when an undrained region ended: waiting for it takes over 5 % of the region.

    None where this process uses no device that could be waited for.
    """
    if is_asynchronous(clock):
        start = clock.now_s()
        clock.synchronize()
        return clock.now_s() - start > 0.05 * took_s + 1e-4 * took_s + 2 * clock.read_cost_s + 2e-5
    device = clock_in_use(None)
    if not is_asynchronous(device):
        return None
    start = device.now_s()
    device.synchronize()
    return device.now_s() - start > 0.05 * took_s + 2e-5


__all__ = ["LapStats", "Timer"]
