"""Points of a roofline: measured operations, placed under their roof, and refused above it with the reason."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError
from edl_labs.roofline._bound import Bound, bound, roof
from edl_labs.roofline.machine_ceilings import DOUBTFUL, Ceiling, Machine
from edl_labs.roofline.sizes import check_rate
from edl_labs.roofline.work import Work
from edl_labs.units import byte_count, byte_rate, flop_rate, percent, seconds
from edl_labs.values import Value

# How far below the truth a busy moment can leave a ceiling that repeats: a neighbour on the same core halves its rate.
_HIDDEN_AT_MOST = 2.0
TOLERANCE = 0.02  # a margin beyond both intervals, so that noise alone gets no point refused


class AboveRoof(EdlError):
    """A point that no code could reach under its assumptions; `reason` names the one that broke."""

    def __init__(self, what: str, *, reason: str, why: str, next: str) -> None:
        super().__init__(what, why=why, next=next)
        self.reason = reason


@dataclass(frozen=True, repr=False)
class Point(Value):
    """One measured operation: its work, seconds with their interval, how often a step runs it, and where it belongs.

    `level` and `pattern` say under which roof it stands: main memory and its fastest access unless named. `device` is
    the name of the device that it was timed on, where known.
    """

    name: str
    work: Work
    time_s: float
    low_s: float = math.nan
    high_s: float = math.nan
    module: str = ""
    calls: int = 1
    level: str | None = None
    pattern: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        check_rate("time_s", self.time_s)
        if math.isnan(self.low_s) or math.isnan(self.high_s):
            object.__setattr__(self, "low_s", self.time_s)
            object.__setattr__(self, "high_s", self.time_s)

    @classmethod
    def of(cls, name: str, work: Work, measurement: Any, **where: Any) -> Point:
        """The point of a `Measurement` (of edl_labs.bench), with its interval and device."""
        stamp = getattr(measurement, "stamp", None)
        found = {"device": getattr(stamp, "device_name", None), **where}
        return cls(name, work, measurement.median_s, measurement.low_s, measurement.high_s, **found)

    @property
    def flop_per_s(self) -> float:
        """FLOPs over seconds: the height of the point."""
        return self.work.total_flops / self.time_s

    @property
    def byte_per_s(self) -> float:
        """Bytes over seconds."""
        return self.work.moved_bytes / self.time_s


@dataclass(frozen=True, repr=False)
class Placed(Value):
    """A point and its bound: how far from light it is, and how much time a step loses there."""

    DERIVED = ("fraction_of_light", "lost_s")

    point: Point
    bound: Bound

    @property
    def fraction_of_light(self) -> float:
        """The bound over the measured time."""
        return self.bound.time_s / self.point.time_s

    @property
    def lost_s(self) -> float:
        """Seconds a step could still win here: over all calls."""
        return max(0.0, self.point.time_s - self.bound.time_s) * self.point.calls

    @property
    def words(self) -> str:
        """Where the point stands, in a sentence."""
        text = f"{self.point.name}: {percent(min(self.fraction_of_light, 1.0), digits=2)} of the speed of light"
        text += (
            f", limited by {self.bound.where}; took {seconds(self.point.time_s)}, of which {seconds(self.bound.time_s)}"
        )
        return f"{text} is the bound"


@checked_arguments()
def place(machine: Machine, point: Point) -> Placed:
    """The point under its roof; AboveRoof where it lies higher by more than both intervals and 2 %."""
    found = bound(machine, point.work, time_s=point.time_s, level=point.level, pattern=point.pattern)
    light_low_s = min(found.low_s, found.light_s) if found.limiter != "latency" else _light_low_s(machine, point)
    if point.high_s < light_low_s / (1 + TOLERANCE):
        raise _above(machine, point, found)
    return Placed(point, found)


@checked_arguments()
def place_all(machine: Machine, points: Iterable[Point]) -> tuple[Placed, ...]:
    """Every point under its roof, the one that loses most time first; AboveRoof at the first that is above it."""
    return tuple(sorted((place(machine, point) for point in points), key=lambda placed: -placed.lost_s))


@checked_arguments()
def you_are_here(placed: Iterable[Placed]) -> str:
    """In words: the points that lose most time, and what limits each."""
    ranked = sorted(placed, key=lambda one: -one.lost_s)
    if not ranked:
        return "nothing has been measured yet"
    lost = sum(one.lost_s for one in ranked)
    where = f"{seconds(lost)} could be gained in total" if lost else "at the speed of light"
    lines = [f"you are here: {where}"]
    return "\n".join([*lines, *(f"  {one.words}" for one in ranked[:5])])


def _light_low_s(machine: Machine, point: Point) -> float:
    """The light's lower end alone: no law of nature sets the latency of a launch."""
    calm = dataclasses.replace(machine, latency_s=0.0)
    return bound(calm, point.work, level=point.level, pattern=point.pattern).low_s


def _above(machine: Machine, point: Point, found: Bound) -> AboveRoof:
    broken = _broken(machine, point, found)
    step = broken.next
    if machine.origin == "measured" and not broken.explained:
        step += f"; {_what_is_in_doubt(machine, point, found)}"
    times = found.light_s / point.time_s
    return AboveRoof(
        f"{point.name} is {times:.3g} times as fast as its roof allows: it took {seconds(point.time_s)}, but "
        f"the shortest possible time is {seconds(found.light_s)}",
        reason=broken.reason,
        why=broken.why,
        next=step,
    )


def _what_is_in_doubt(machine: Machine, point: Point, found: Bound) -> str:
    """In words, the roof or the count; a remembered card is dropped only where the roof is in doubt."""
    excess = _excess(point, found)
    if excess > _HIDDEN_AT_MOST or _above_datasheet(machine, point):
        return f"the count or the clock is in doubt, by a factor of {excess:.3g}; the saved machine card is kept"
    from edl_labs.roofline._ceilings import forget

    if not forget(machine):
        return "the roof is in doubt as much as the count"
    return "the roof is in doubt: its saved machine card was dropped, and the next ceilings() measures again"


def _excess(point: Point, found: Bound) -> float:
    """How many times faster the point is than the upper end of its roof."""
    return min(found.low_s, found.light_s) / point.high_s


def _above_datasheet(machine: Machine, point: Point) -> bool:
    """Whether the point is faster than the chip could be: then no measured roof was too low."""
    if machine.hardware_key is None:
        return False
    printed = Machine.of(machine.hardware_key)
    work = dataclasses.replace(point.work, moved_bytes=0) if point.work.total_flops else point.work
    if point.work.total_flops and point.work.dtype in printed.matmul:
        return printed.arithmetic_s(work)[0] > point.high_s * (1 + TOLERANCE)
    return printed.memory_bandwidth_byte_per_s * (1 + TOLERANCE) < point.byte_per_s


@dataclass(frozen=True)
class _Broken:
    """Which assumption broke; `explained` where it explains the point, and neither roof nor count is in doubt."""

    reason: str
    why: str
    next: str
    explained: bool = True


def _broken(machine: Machine, point: Point, found: Bound) -> _Broken:
    limit = roof(machine, point.work) if found.compute_s >= found.memory_s else machine.level(found.level).ceiling()
    doubt = limit.half_width
    if point.device is not None and machine.stamp is not None and point.device != machine.name:
        return _Broken(
            "wrong device",
            f"it was timed on {point.device}, but the roof is that of {machine.name}",
            "measure ceilings() on the device that ran it",
        )
    if doubt > DOUBTFUL:
        return _Broken(
            "roof in doubt",
            f"the roof itself is known only to ± {percent(doubt, digits=2)}, because the machine was busy when it was "
            "measured",
            "measure ceilings(refresh=True) on a quiet machine, and place the point again",
            explained=False,
        )
    if found.compute_s >= found.memory_s:
        return _broken_compute(machine, point, found)
    return _broken_memory(machine, point, found)


def _broken_compute(machine: Machine, point: Point, found: Bound) -> _Broken:
    rate, peak = flop_rate(point.flop_per_s), flop_rate(roof(machine, point.work).rate)
    faster = [name for name, top in machine.matmul.items() if top.high * (1 + TOLERANCE) >= point.flop_per_s]
    if "conv" in f"{point.name} {point.work.name}".lower() and found.compute_s < 4 * point.time_s:
        return _Broken(
            "fewer FLOPs",
            f"{rate} of direct arithmetic, above the peak of {peak}: a Winograd-like or FFT algorithm needs fewer "
            "FLOPs "
            "than the formula counts",
            "count the FLOPs of that algorithm, or time a different algorithm",
        )
    if faster:
        return _Broken(
            "wrong dtype",
            f"{rate} is above the {point.work.dtype} peak of {peak}, but possible in {', '.join(faster)}",
            "name the dtype in which it ran (TF32 and autocast change it), or measure the ceilings again",
            explained=_excess(point, found) > _HIDDEN_AT_MOST,
        )
    return _Broken(
        "wrong device",
        f"{rate} is above every ceiling of {machine.name}; its {point.work.dtype} peak is {peak}",
        "measure ceilings(refresh=True) on the device that ran it, drain the device before reading a clock, and check "
        "the FLOPs",
        explained=False,
    )


def _broken_memory(machine: Machine, point: Point, found: Bound) -> _Broken:
    memory = machine.level(found.level)
    slope = memory.ceiling(point.pattern)
    quicker = [p for p, top in memory.bandwidth.items() if _reaches(top, point) and top.rate > slope.rate]
    if point.pattern is not None and quicker:
        return _Broken(
            "read against copy",
            f"{byte_rate(point.byte_per_s)} is above {memory.name}'s {point.pattern} rate of {byte_rate(slope.rate)}, "
            f"but not above its {quicker[0]} rate",
            f"compare it with pattern={quicker[0]!r}, which is what it does",
        )
    hidden = machine.unmeasured_for(point.work.moved_bytes)
    if hidden:
        return _Broken(
            "cache-resident",
            f"its {byte_count(point.work.moved_bytes)} fit in {hidden}, which was not measured here, so repeated calls "
            f"did not reach {found.level}",
            "measure it with cold caches, or use more data than fits in the caches",
        )
    resident = _resident(machine, point, found.level)
    if resident is not None:
        return _Broken(
            "cache-resident",
            f"its {byte_count(point.work.moved_bytes)} fit in {resident}, so repeated calls did not reach "
            f"{found.level}",
            f"place it under that roof with Point(..., level={resident!r}), or measure it with cold caches",
        )
    return _Broken(
        "fewer bytes or wrong device",
        f"{byte_rate(point.byte_per_s)} is above {found.level}'s {byte_rate(slope.rate)} on {machine.name}",
        "count unique bytes (a fused operation moves fewer), drain the device before reading the clock, or measure "
        "ceilings(refresh=True) on the device that ran it",
        explained=False,
    )


def _resident(machine: Machine, point: Point, level: str) -> str | None:
    """The nearest level that holds the operands and is fast enough, where it is nearer than `level`."""
    for memory in machine.levels:
        if memory.name == level:
            return None
        if point.work.moved_bytes <= memory.capacity_bytes and _reaches(memory.ceiling(), point):
            return memory.name
    return None


def _reaches(ceiling: Ceiling, point: Point) -> bool:
    return point.byte_per_s <= ceiling.high * (1 + TOLERANCE)
