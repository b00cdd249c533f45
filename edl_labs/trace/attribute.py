"""Where the wall time of each step goes: exclusive shares that sum to one, with intervals and the line to blame."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from edl_labs.trace.blame import Blame, where
from edl_labs.trace.charging import RULE, Piece, charge
from edl_labs.trace.device import Device, device_of
from edl_labs.trace.errors import TraceError
from edl_labs.trace.host import CAUSES, host_of
from edl_labs.trace.table import Trace

_RESAMPLES = 1000
_BLAMED = 5


@dataclass(frozen=True)
class StepShares:
    """One step's wall time, and by cause the seconds of it."""

    start_s: float
    end_s: float
    seconds: Mapping[str, float]

    @property
    def wall_s(self) -> float:
        """How long the step took."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Attribution:
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

    @property
    def dominant(self) -> str:
        """The cause with the largest share."""
        return max(self.shares, key=lambda cause: self.shares[cause])

    @property
    def wall_s(self) -> float:
        """The mean wall time of a step."""
        return sum(step.wall_s for step in self.steps) / len(self.steps)

    def to_json(self) -> dict[str, Any]:
        """The attribution as plain data."""
        return {
            "schema": 1,
            "origin": self.origin,
            "on_device": self.on_device,
            "steps": len(self.steps),
            "wall_s": self.wall_s,
            "dominant": self.dominant,
            "shares": dict(self.shares),
            "level": self.level,
            "intervals": {c: [None if isnan(end) else end for end in ends] for c, ends in self.intervals.items()},
            "blames": {cause: [blame.to_json() for blame in found] for cause, found in self.blames.items()},
        }


def attribute(trace: Trace, *, skip: int = 0, level: float = 0.95, seed: int = 0) -> Attribution:
    """Each step's wall time in exclusive shares that sum to 1, by the rule in `charging.RULE`.

    Steps are those of the trace's marks; one ends when the last device operation that it issued ends, so that work the
    device still owes is counted. `skip` leaves out the first steps: warm-up. The interval is a bootstrap over steps.
    """
    host, device = host_of(trace), device_of(trace)
    bounds, host_steps = step_bounds(trace, device, skip=skip)
    pieces = charge(trace, host, device, bounds=bounds, host_steps=host_steps)
    steps = _steps(pieces, bounds)
    table = np.array([[step.seconds[cause] for cause in CAUSES] for step in steps])
    if not table.sum() > 0:
        raise TraceError(
            "the steps take no time",
            why="every event in them lasts 0 s, so that no cause has a share",
            next="record a loop that does something, with times in the trace",
        )
    shares = table.sum(0) / table.sum()
    return Attribution(
        steps=tuple(steps),
        shares=dict(zip(CAUSES, map(float, shares), strict=True)),
        intervals=_intervals(table, level=level, seed=seed),
        blames=_blames(trace, pieces),
        origin=trace.origin,
        on_device=bool(device.operations),
        level=level,
    )


def step_bounds(trace: Trace, device: Device, *, skip: int = 0) -> tuple[list[float], list[float]]:
    """(bounds, host starts): n + 1 moments with n steps of wall time between them, and when the host began each."""
    steps = trace.steps[skip:]
    if not steps:
        raise TraceError(
            f"no step is left after skipping {skip}", why=f"the trace has {len(trace.steps)} steps", next="skip fewer"
        )
    starts = [start for start, _ in trace.steps]
    ends = [end for _, end in trace.steps]
    for operation in device.operations:
        issued = float(trace.start_s[operation.call]) if operation.call >= 0 else operation.start_s
        step = bisect_right(starts, issued) - 1
        if step >= 0:
            ends[step] = max(ends[step], operation.end_s) if _within(trace, step, issued) else ends[step]
    if not device.operations:
        bounds = [start for start, _ in steps] + [steps[-1][1]]
        return bounds, starts
    # With a device the host may run ahead: a step's wall time ends with the device's work, not with the host's.
    done = _device_ends(trace, device, starts)
    first = max(starts[skip], done[skip - 1]) if skip else starts[0]
    bounds = [first]
    for step in range(skip, len(starts)):
        last = ends[step] if step == len(starts) - 1 else done[step]
        bounds.append(max(bounds[-1], last))
    return bounds, starts


def _within(trace: Trace, step: int, issued_s: float) -> bool:
    # What is issued behind the last step belongs to no step.
    return step < len(trace.steps) - 1 or issued_s <= trace.steps[step][1]


def _device_ends(trace: Trace, device: Device, starts: list[float]) -> list[float]:
    """By step when the last operation that it issued ends; the host's end where it issued none."""
    done: list[float] = [0.0] * len(starts)
    for operation in device.operations:
        issued = float(trace.start_s[operation.call]) if operation.call >= 0 else operation.start_s
        step = bisect_right(starts, issued) - 1
        if step >= 0 and _within(trace, step, issued):
            done[step] = max(done[step], operation.end_s)
    return [found or end for found, (_, end) in zip(done, trace.steps, strict=True)]


def _steps(pieces: list[Piece], bounds: list[float]) -> list[StepShares]:
    sums: list[dict[str, float]] = [dict.fromkeys(CAUSES, 0.0) for _ in bounds[1:]]
    for piece in pieces:
        step = max(bisect_right(bounds, piece.start_s) - 1, 0)
        start_s = piece.start_s
        while step < len(sums) and start_s < piece.end_s:
            stop = min(piece.end_s, bounds[step + 1])
            sums[step][piece.cause] += max(stop - start_s, 0.0)
            start_s, step = max(stop, start_s), step + 1
    made = zip(bounds, bounds[1:], sums, strict=False)
    return [StepShares(start, end, seconds) for start, end, seconds in made if end > start] or [
        StepShares(bounds[0], bounds[-1], sums[0])
    ]


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


def _blames(trace: Trace, pieces: list[Piece]) -> dict[str, tuple[Blame, ...]]:
    sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for piece in pieces:
        sums[piece.cause][piece.event] += piece.end_s - piece.start_s
    found: dict[str, tuple[Blame, ...]] = {}
    for cause in CAUSES:
        by_place: dict[tuple[str, str], float] = defaultdict(float)
        for event, taken_s in sums.get(cause, {}).items():
            by_place[where(trace, event)] += taken_s
        total = sum(by_place.values())
        ranked = sorted(by_place.items(), key=lambda item: -item[1])[:_BLAMED]
        found[cause] = tuple(Blame(line, what, taken_s, taken_s / total) for (line, what), taken_s in ranked if total)
    return found
