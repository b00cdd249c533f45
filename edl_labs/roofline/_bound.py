"""The speed of light for one piece of work on one machine, what limits it, and deck [002]'s way to find out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError, UsageError
from edl_labs.roofline.machine_ceilings import Ceiling, Machine, MemoryLevel
from edl_labs.roofline.sizes import check_amount, check_rate, check_sizes
from edl_labs.roofline.work import Work
from edl_labs.units import seconds
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Bound(Value):
    """The least time of a piece of work: the longest of arithmetic, memory and latency, as if they overlapped fully.

    `limiter` is 'compute', 'memory' or 'latency', `level` the memory level that was reckoned with. `light_s` is
    arithmetic and memory alone. `low_s` and `high_s` carry the ceilings' intervals.
    """

    DERIVED = ("fraction_of_light",)

    time_s: float
    limiter: str
    level: str
    compute_s: float
    memory_s: float
    latency_s: float
    low_s: float
    high_s: float
    intensity_flop_per_byte: float
    ridge_flop_per_byte: float
    total_flops: float
    measured_s: float | None = None

    @property
    def light_s(self) -> float:
        """The time of arithmetic or memory, whichever is longer."""
        return max(self.compute_s, self.memory_s)

    @property
    def flop_per_s(self) -> float:
        """The rate at the bound: what a point on the roof shows."""
        return self.total_flops / self.time_s if self.time_s else 0.0

    @property
    def fraction_of_light(self) -> float | None:
        """The bound over the measured time: 1 is the speed of light; None where no time was given."""
        return None if self.measured_s is None else self.time_s / self.measured_s

    @property
    def lost_s(self) -> float | None:
        """What could still be won: the measured time beyond the bound."""
        return None if self.measured_s is None else self.measured_s - self.time_s

    @property
    def where(self) -> str:
        """The limiter in words: 'compute', 'memory (DRAM)', 'latency'."""
        return f"memory ({self.level})" if self.limiter == "memory" else self.limiter

    def __str__(self) -> str:
        text = f"at least {seconds(self.time_s)}, limited by {self.where}"
        if self.fraction_of_light is None:
            return text
        return f"{text}; took {seconds(self.measured_s or 0.0)}, {self.fraction_of_light:.3g} of the speed of light"


@checked_arguments()
def bound(
    machine: Machine,
    work: Work,
    *,
    time_s: float | None = None,
    level: str | None = None,
    pattern: str | None = None,
) -> Bound:
    """The least time of `work` on `machine`, its limiter, and which fraction of the speed of light `time_s` is.

    Operands come from main memory unless `level` names a nearer one, at the rate of the fastest access pattern unless
    `pattern` names one. Where contractions and other arithmetic share a unit their times add up; where each has its own
    (tensor cores, CUDA cores), the longer counts.

    >>> deck = Machine.simple("GPU of 2015", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9)
    >>> found = bound(deck, Work(2 * 512**3, 0, 4 * 4 * 512**2))
    >>> found.limiter, round(found.time_s * 1e6, 2)
    ('compute', 44.74)
    """
    _check_machine_and_work(machine, work)
    if time_s is not None:
        check_rate("time_s", time_s)
    memory = machine.memory if level is None else machine.level(level)
    slope = memory.ceiling(pattern)
    compute = machine.arithmetic_s(work)
    moving = tuple(work.moved_bytes / rate for rate in (slope.rate, slope.low, slope.high))
    times = {"compute": compute[0], "memory": moving[0], "latency": machine.latency_s}
    # Where two are equal, the machine's own limits are named before the host's.
    limiter = max(times, key=lambda name: times[name])
    return Bound(
        time_s=times[limiter],
        limiter=limiter,
        level=memory.name,
        compute_s=compute[0],
        memory_s=moving[0],
        latency_s=machine.latency_s,
        low_s=max(compute[2], moving[2], machine.latency_s),
        high_s=max(compute[1], moving[1], machine.latency_s),
        intensity_flop_per_byte=work.intensity_flop_per_byte,
        ridge_flop_per_byte=_ridge(machine, work, slope),
        total_flops=work.total_flops,
        measured_s=None if time_s is None else float(time_s),
    )


@checked_arguments()
def roof(machine: Machine, work: Work) -> Ceiling:
    """The flat roof over `work`: that of the unit which takes longer, for contractions or for other arithmetic."""
    return _busiest(machine, work)[0]


@dataclass(frozen=True, repr=False)
class LimiterReport(Value):
    """What limits an operation ('compute', 'memory' or 'latency') and the steps that led there, in words."""

    limiter: str
    intensity_flop_per_byte: float
    ridge_flop_per_byte: float
    parallel_items: int | None
    units: int
    steps: tuple[str, ...]
    bound: Bound

    def __str__(self) -> str:
        return "\n".join((*self.steps, f"limited by {self.limiter}"))


@checked_arguments()
def find_limiter(
    machine: Machine,
    work: Work,
    *,
    parallel_items: int | None = None,
    level: str | None = None,
    time_s: float | None = None,
) -> LimiterReport:
    """What limits `work`, by deck [002]'s recipe: the machine's units and FLOP:byte, the work's intensity, parallelism.

    `parallel_items` says into how many independent pieces (output tiles, thread blocks) the work falls; fewer than the
    machine has units leave some idle, and the operation waits rather than computes or moves: latency. So it does where
    the smallest launch takes longer than the work.
    """
    found = bound(machine, work, level=level, time_s=time_s)
    if parallel_items is not None:
        check_sizes(parallel_items=parallel_items)
    ridge, intensity = found.ridge_flop_per_byte, found.intensity_flop_per_byte
    limiter = "compute" if work.total_flops and found.compute_s >= found.memory_s else "memory"
    steps = list(_intensity_steps(machine, work, found))
    if parallel_items is not None:
        enough = parallel_items >= machine.units
        steps.append(
            f"{parallel_items} independent pieces {'keep all units busy' if enough else 'leave some units idle'}"
        )
        limiter = limiter if enough else "latency"
    if found.limiter == "latency":
        limiter = "latency"
        steps.append(
            f"the smallest operation takes {seconds(machine.latency_s)}, and this one {seconds(found.light_s)}"
        )
    return LimiterReport(limiter, intensity, ridge, parallel_items, machine.units, tuple(steps), found)


def _intensity_steps(machine: Machine, work: Work, found: Bound) -> tuple[str, str]:
    has, name = f"{machine.name}: {machine.units} units", work.name or "the work"
    if not work.total_flops:
        return has, f"{name}: no arithmetic, only bytes of {found.level}"
    flops, share = _busiest(machine, work)[1], ""
    if flops < work.total_flops and work.moved_bytes:
        # The other unit works at the same time: its FLOPs do not keep this one busy.
        share = f", {flops / work.moved_bytes:.4g} of them on the unit that takes longest"
    side = "above" if found.compute_s >= found.memory_s else "below"
    return (
        f"{has}, {found.ridge_flop_per_byte:.4g} FLOP per byte of {found.level} in {work.dtype}",
        f"{name}: {found.intensity_flop_per_byte:.4g} FLOP/B{share}, which is {side} that",
    )


def _ridge(machine: Machine, work: Work, slope: Ceiling) -> float:
    """The intensity from which arithmetic limits; 0 where nothing is to be computed and the dtype has no ceiling."""
    if not work.total_flops and work.dtype not in machine.matmul:
        return 0.0
    return roof(machine, work).rate / slope.rate


def _busiest(machine: Machine, work: Work) -> tuple[Ceiling, float]:
    """The ceiling of the unit that takes longest, and the FLOPs it does."""
    if not machine.vector:
        return machine.peak(work.dtype), work.total_flops
    other = machine.vector_peak(work.dtype), work.other_flops
    if not work.contraction_flops:
        return other
    main = machine.peak(work.dtype), work.contraction_flops
    return max(main, other, key=lambda unit: unit[1] / unit[0].rate)


def _check_machine_and_work(machine: Any, work: Any) -> None:
    if not isinstance(machine, Machine):
        raise UsageError(
            f"a {type(machine).__name__} is not a Machine",
            why="a bound needs the ceilings of a machine",
            next="use ceilings(), Machine.of('H200') or Machine.simple(...)",
        )
    if not isinstance(work, Work):
        raise UsageError(
            f"a {type(work).__name__} is not a Work",
            why="a bound needs FLOPs, bytes and a dtype",
            next="use the functions of edl_labs.roofline.work, or Work(contraction_flops, other_flops, moved_bytes, "
            "dtype)",
        )
    if work.unknown_products:
        raise EdlError(
            f"unknown contractions: {', '.join(work.unknown_products[:5])}",
            why="these operators may multiply matrices but were not counted, so the bound would be too low",
            next="add their FLOPs yourself: dataclasses.replace(work, contraction_flops=..., unknown_products=())",
        )


@checked_arguments()
def attainable_flop_per_s(
    machine: Machine, intensity_flop_per_byte: float, *, dtype: object = "fp32", level: str | None = None
) -> float:
    """The roofline itself: the lower of peak and intensity × bandwidth.

    >>> deck = Machine.simple("GPU of 2015", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9)
    >>> attainable_flop_per_s(deck, 0.5) / 1e9, attainable_flop_per_s(deck, 64) / 1e12
    (150.0, 6.0)
    """
    if not math.isinf(intensity_flop_per_byte):
        check_amount("intensity_flop_per_byte", intensity_flop_per_byte)
    memory: MemoryLevel = machine.memory if level is None else machine.level(level)
    return min(machine.peak_flop_per_s(dtype), intensity_flop_per_byte * memory.ceiling().rate)
