"""Where the wall time of each step goes: exclusive shares that sum to one, with intervals and the line to blame."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, ClassVar, Self

import numpy as np

from edl_labs.arguments import checked_arguments
from edl_labs.presenters import Plottable
from edl_labs.trace.analysed_trace import AnalysedTrace, Blame, Places, TraceLike
from edl_labs.trace.causes import CAUSES, HOLDS, LATE
from edl_labs.trace.device_work import DeviceWork
from edl_labs.trace.host_intervals import HostInterval
from edl_labs.trace.trace_table import KINDS, Trace
from edl_labs.values import Value

RULE = """\
While the device is busy, the time counts as computing, communicating or copying, whatever the host does: waiting for a
busy device is not synchronisation. While the device is idle, the time is charged to what the host does, since that
delays the next operation: waiting for data, allocating, copying, launching (a runtime call and the framework's operator
around it), or code of its own. There is one exception: launches and code may be late because a synchronisation (or a
blocking copy, or a call that frees memory) held the host while the device worked. The idle time is then charged to the
call that held the host, but to no more than the time for which it held the host in this step or the previous one, minus
the idle time that has been charged to it already. A copy of one number to the host is part of the read that waits for
it. If a longer copy holds the host, the time in which the device copies is copying, and the rest of the call is
synchronisation."""

# Profilers round times to a nanosecond: two that touch may be that far apart at either end.
_TOUCH_S = 2e-9
# About the rounding of a sum of times below a second.
_ROUNDING_S = 1e-15


@dataclass
class _Hold:
    """Time for which the host was held while the device was busy, as far as it is not yet charged."""

    event: int
    cause: str
    end_s: float
    left_s: float
    step: int


def charge(analysed: AnalysedTrace, bounds: list[float]) -> list[HostInterval]:
    """Intervals that tile the time from the first of `bounds` to the last, each with its cause and what to blame."""
    host, device, starts = analysed.host, analysed.device, analysed.step_starts
    if not device.operations:
        return host.between(bounds[0], bounds[-1])
    holds = _holds(analysed)
    pieces = list(_busy(device, bounds[0], bounds[-1]))
    queue: list[_Hold] = []
    place = 0
    for gap in device.gaps(bounds[0], bounds[-1]):
        for interval in host.between(*gap):
            while place < len(holds) and holds[place].end_s <= interval.start_s + _TOUCH_S:
                # A wait costs whatever lead the host would have without waits of other causes.
                queue = [hold for hold in queue if hold.cause == holds[place].cause] + [holds[place]]
                place += 1
            pieces += _idle(interval, queue, bisect_right(starts, interval.start_s))
    return sorted(pieces)


def _busy(device: DeviceWork, start_s: float, end_s: float) -> Iterator[HostInterval]:
    for busy in device.busy:
        low, high = max(busy.start_s, start_s), min(busy.end_s, end_s)
        if high > low:
            yield HostInterval(low, high, busy.cause, busy.event)


def _idle(interval: HostInterval, queue: list[_Hold], step: int) -> Iterator[HostInterval]:
    start_s, end_s, cause, event = interval
    if cause not in LATE and cause != "sync":
        _spend(queue, end_s - start_s)
    while cause in LATE and start_s < end_s and queue:
        hold = queue[-1]
        if hold.step < step - 1 or hold.left_s <= 0:
            queue.pop()
            continue
        taken = min(hold.left_s, end_s - start_s)
        hold.left_s -= taken
        # A sum that misses the end by rounding must not leave an empty piece.
        stop = end_s if end_s - start_s - taken < _ROUNDING_S else start_s + taken
        yield HostInterval(start_s, stop, hold.cause, hold.event)
        start_s = stop
    if start_s < end_s:
        yield HostInterval(start_s, end_s, cause, event)


def _spend(queue: list[_Hold], idle_s: float) -> None:
    """Idle time with a cause of its own uses up the lead that the host would have without its waits."""
    for hold in reversed(queue):
        taken = min(hold.left_s, idle_s)
        hold.left_s -= taken
        idle_s -= taken


def _holds(analysed: AnalysedTrace) -> list[_Hold]:
    found = []
    for start_s, end_s, cause, event in analysed.host.intervals:
        if event >= 0 and cause in HOLDS and _waits(analysed.trace, event):
            step = bisect_right(analysed.step_starts, start_s)
            held_s = analysed.device.work_s(start_s, end_s)
            found.append(_Hold(event, _held_by(analysed, event, held_s) or cause, end_s, held_s, step))
    return found


def _held_by(analysed: AnalysedTrace, event: int, held_s: float) -> str | None:
    """What makes the host's later launches late where it waited for a copy: an upload, or a read if it waits longer."""
    blocking = analysed.blocking.get(event)
    if blocking is None:
        return None
    copying_s = float(analysed.trace.end_s[blocking.copy] - analysed.trace.start_s[blocking.copy])
    return "sync" if blocking.is_read and copying_s < held_s / 2 else "copy"


def _waits(trace: Trace, event: int) -> bool:
    """Whether a call waits for the device; of the allocator's calls those do that give memory back."""
    kind = KINDS[trace.kind[event]]
    name = trace.names[trace.name[event]]
    return kind in ("sync", "copy call") or (kind == "alloc" and "Free" in name)


# Customary for percentile intervals, at a few milliseconds.
_RESAMPLES = 1000
# More lines than this are not read in a report.
_BLAMED = 5


@dataclass(frozen=True, repr=False)
class StepShares(Value):
    """One step's wall time, and its seconds by cause."""

    start_s: float
    end_s: float
    seconds: Mapping[str, float]

    @property
    def wall_s(self) -> float:
        """How long the step took."""
        return self.end_s - self.start_s


@dataclass(frozen=True, repr=False)
class Attribution(Value, Plottable):
    """By cause the share of wall time (they sum to 1), its bootstrap interval over steps, and what to blame.

    `intervals` are (nan, nan) with fewer than three steps. `rule` is the rule in words.
    """

    steps: tuple[StepShares, ...]
    shares: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    blames: Mapping[str, tuple[Blame, ...]]
    origin: str
    on_device: bool
    level: float = 0.95
    rule: str = RULE
    DERIVED: ClassVar[tuple[str, ...]] = ("wall_s", "dominant")
    ROWS: ClassVar[str] = "steps"

    @property
    def dominant(self) -> str:
        """The cause with the largest share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def wall_s(self) -> float:
        """The mean wall time of a step."""
        return sum(step.wall_s for step in self.steps) / len(self.steps)

    def to_json(self) -> dict[str, Any]:
        """The attribution as plain data: `steps` is a number, `by_step` holds each; unknown intervals are null."""
        tree = super().to_json()
        intervals = {cause: [None if isnan(end) else end for end in ends] for cause, ends in self.intervals.items()}
        return {**tree, "steps": len(self.steps), "by_step": tree["steps"], "intervals": intervals}

    @classmethod
    def from_fields(cls, tree: Mapping[str, Any]) -> Self:
        intervals = {
            cause: ["nan" if end is None else end for end in ends] for cause, ends in tree["intervals"].items()
        }
        return super().from_fields({**tree, "steps": tree["by_step"], "intervals": intervals})


@checked_arguments()
def attribute(trace: TraceLike, *, skip: int = 0, level: float = 0.95, seed: int = 0) -> Attribution:
    """Each step's wall time in exclusive shares that sum to 1, by the rule in `RULE`.

    Steps are those of the trace's marks; one ends when the last device operation that it issued ends, so that work the
    device still owes is counted. `skip` leaves out the first steps: warm-up. The interval is a bootstrap over steps.
    """
    analysed = AnalysedTrace.of(trace)
    bounds = analysed.lasting_bounds(skip=skip)
    pieces = charge(analysed, bounds)
    steps = _steps(pieces, bounds)
    table = np.array([[step.seconds[cause] for cause in CAUSES] for step in steps])
    shares = table.sum(0) / table.sum()
    return Attribution(
        steps=tuple(steps),
        shares=dict(zip(CAUSES, map(float, shares), strict=True)),
        intervals=_intervals(table, level=level, seed=seed),
        blames=_blames(analysed.places, pieces),
        origin=analysed.trace.origin,
        on_device=bool(analysed.device.operations),
        level=level,
    )


def _steps(pieces: list[HostInterval], bounds: list[float]) -> list[StepShares]:
    sums: list[dict[str, float]] = [dict.fromkeys(CAUSES, 0.0) for _ in bounds[1:]]
    for piece in pieces:
        step = max(bisect_right(bounds, piece.start_s) - 1, 0)
        start_s = piece.start_s
        while step < len(sums) and start_s < piece.end_s:
            stop = min(piece.end_s, bounds[step + 1])
            sums[step][piece.cause] += max(stop - start_s, 0.0)
            start_s, step = max(stop, start_s), step + 1
    made = zip(bounds, bounds[1:], sums, strict=False)
    return [StepShares(start, end, seconds) for start, end, seconds in made if end > start]


def _intervals(table: np.ndarray, *, level: float, seed: int) -> dict[str, tuple[float, float]]:
    """Bootstrap over steps: shares of resampled steps, and the middle `level` of them."""
    if len(table) < 3:
        return dict.fromkeys(CAUSES, (float("nan"), float("nan")))
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(table), size=(_RESAMPLES, len(table)))
    counts = np.apply_along_axis(np.bincount, 1, drawn, minlength=len(table))
    sums = counts @ table
    shares = sums / sums.sum(1, keepdims=True)
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {cause: (float(low[i]), float(high[i])) for i, cause in enumerate(CAUSES)}


def _by_line(places: Places, intervals: list[HostInterval]) -> list[tuple[str, float]]:
    """Intervals without a line of their own, shared out as often as each line was seen in them."""
    taken_s = sum(end_s - start_s for start_s, end_s, _, _ in intervals)
    seen = places.sampled((start_s, end_s) for start_s, end_s, _, _ in intervals)
    return [(line, taken_s * count / seen.total()) for line, count in seen.items()] or [("", taken_s)]


def _blames(places: Places, pieces: list[HostInterval]) -> dict[str, tuple[Blame, ...]]:
    by_event: dict[str, dict[int, list[HostInterval]]] = defaultdict(lambda: defaultdict(list))
    for piece in pieces:
        by_event[piece.cause][piece.event].append(piece)
    found: dict[str, tuple[Blame, ...]] = {}
    for cause in CAUSES:
        by_place: dict[tuple[str, str], float] = defaultdict(float)
        lineless: dict[str, list[HostInterval]] = defaultdict(list)
        for event, intervals in by_event.get(cause, {}).items():
            line, what = places.where(event)
            if line or places.is_on_device(event):
                by_place[line, what] += sum(end_s - start_s for start_s, end_s, _, _ in intervals)
            else:
                lineless[what] += intervals
        for what, intervals in lineless.items():
            for line, taken_s in _by_line(places, intervals):
                by_place[line, what] += taken_s
        total = sum(by_place.values())
        ranked = sorted(by_place.items(), key=lambda item: -item[1])[:_BLAMED]
        found[cause] = tuple(Blame(line, what, taken_s, taken_s / total) for (line, what), taken_s in ranked if total)
    return found
