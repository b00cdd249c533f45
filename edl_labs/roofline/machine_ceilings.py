"""`Machine`: the ceilings of one device, measured, from its datasheet, or given; and its card, as rows of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.device import Device
from edl_labs.errors import EdlError, UsageError
from edl_labs.hardware import Accelerator, accelerator, dtype_name
from edl_labs.roofline.sizes import check_rate
from edl_labs.roofline.work import Work
from edl_labs.units import byte_count, byte_rate, flop_rate, percent, seconds
from edl_labs.values import Value, from_tree, read_tree, rebuilt

CUT_SHORT = "working sets"  # the setting that says why a sweep ended before it was far beyond the last cache
DOUBTFUL = 0.15  # beyond this half-width a ceiling was taken at a busy moment: a quiet one repeats within some per cent
PATTERNS = ("read", "copy", "triad")


@dataclass(frozen=True, repr=False)
class Ceiling(Value):
    """A highest rate (FLOP/s or B/s) with its interval; `note` says how it was found."""

    rate: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""

    def __post_init__(self) -> None:
        check_rate("rate", self.rate)
        if math.isnan(self.low) or math.isnan(self.high):
            object.__setattr__(self, "low", self.rate)
            object.__setattr__(self, "high", self.rate)
        if not self.low <= self.rate <= self.high:
            raise UsageError(
                f"a ceiling of {self.rate:g} is not inside its interval from {self.low:g} to {self.high:g}",
                why="the interval must contain the rate",
                next="pass low <= rate <= high",
            )

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the rate."""
        return (self.high - self.low) / 2 / self.rate


@dataclass(frozen=True, repr=False)
class MemoryLevel(Value):
    """One level of memory: its name, what fits (inf for main memory), and bytes per second by access pattern."""

    name: str
    capacity_bytes: float
    bandwidth: Mapping[str, Ceiling] = field(hash=False)

    def __post_init__(self) -> None:
        unknown = [pattern for pattern in self.bandwidth if pattern not in PATTERNS]
        if unknown or not self.bandwidth:
            raise UsageError(
                f"memory {self.name!r} has rates for {sorted(self.bandwidth) or 'nothing'}",
                why=f"the access patterns are {', '.join(PATTERNS)}",
                next="pass a Ceiling for at least one of them",
            )

    @property
    def fastest(self) -> str:
        """The access pattern with the highest rate: only that one is a roof for all code."""
        return max(self.bandwidth, key=lambda pattern: self.bandwidth[pattern].rate)

    def ceiling(self, pattern: str | None = None) -> Ceiling:
        """The rate for 'read', 'copy' or 'triad'; the highest without a pattern."""
        found = self.bandwidth.get(self.fastest if pattern is None else pattern)
        if found is None:
            raise UsageError(
                f"{self.name} has no rate for {pattern!r}",
                why=f"it has {', '.join(self.bandwidth)}",
                next="use one of these, or omit the pattern to get the highest rate",
            )
        return found


@dataclass(frozen=True, repr=False)
class Machine(Value):
    """The roofs of one device. `levels` go from the nearest memory to main memory.

    `matmul` holds the peak of contractions by dtype; `vector` that of other arithmetic where another unit does it (on a
    GPU: the CUDA cores), and is empty where the same unit does both. `units` is how many SMs or cores must be kept
    busy. `latency_s` is what the smallest operation takes. `unmeasured` are caches (and what they hold, in bytes) whose
    rate is unknown here: no level represents them, and `settings` says why.
    """

    name: str
    levels: tuple[MemoryLevel, ...]
    matmul: Mapping[str, Ceiling] = field(hash=False)
    vector: Mapping[str, Ceiling] = field(default_factory=dict, hash=False)
    units: int = 1
    latency_s: float = 0.0
    links: Mapping[str, Ceiling] = field(default_factory=dict, hash=False)
    origin: str = "given"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    sweep: tuple[tuple[str, float, float], ...] = ()
    hardware_key: str | None = None
    stamp: Device | None = None
    wall_s: float = 0.0
    unmeasured: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.levels or not self.matmul:
            raise UsageError(
                f"machine {self.name!r} lacks {'memory' if not self.levels else 'arithmetic'}",
                why="a roofline needs both a memory and a compute ceiling",
                next="use Machine.simple(name, peak_flop_per_s=..., bandwidth_byte_per_s=...)",
            )

    @classmethod
    def simple(
        cls,
        name: str,
        *,
        peak_flop_per_s: float | Mapping[str, float],
        bandwidth_byte_per_s: float,
        units: int = 1,
        latency_s: float = 0.0,
    ) -> Machine:
        """A machine of one peak (or one for each dtype) and one memory, as on a blackboard.

        >>> Machine.simple("deck [004]", peak_flop_per_s=6e12, bandwidth_byte_per_s=300e9).ridge_flop_per_byte()
        20.0
        """
        peaks = peak_flop_per_s if isinstance(peak_flop_per_s, Mapping) else {"fp32": peak_flop_per_s}
        check_rate("bandwidth_byte_per_s", bandwidth_byte_per_s)
        memory = MemoryLevel("memory", math.inf, {"read": Ceiling(bandwidth_byte_per_s)})
        roofs = {dtype_name(dtype): Ceiling(peak) for dtype, peak in peaks.items()}
        return cls(name, (memory,), roofs, units=units, latency_s=latency_s)

    @classmethod
    @checked_arguments(entry='Name an accelerator, such as Machine.of("H200").')
    def of(cls, entry: str | Accelerator) -> Machine:
        """The machine that the datasheet promises for an accelerator of the hardware table, dense, such as 'H200'."""
        chip = accelerator(entry) if isinstance(entry, str) else entry
        kind = "HBM" if chip.memory_kind.startswith("HBM") else "DRAM"
        memory = MemoryLevel(kind, math.inf, {"read": Ceiling(chip.memory_bandwidth_byte_per_s, note="datasheet")})
        return cls(
            chip.name,
            (memory,),
            {dtype: Ceiling(chip.peak_flop_per_s(dtype), note="datasheet, dense") for dtype in chip.dtypes()},
            {
                dtype: Ceiling(chip.peak_flop_per_s(dtype, unit="cuda"), note="datasheet, CUDA cores")
                for dtype in chip.dtypes(unit="cuda")
            },
            units=chip.sm_count,
            links={"link": Ceiling(chip.link_byte_per_s, note="datasheet, one direction")},
            origin="datasheet",
            hardware_key=chip.key,
        )

    @property
    def memory(self) -> MemoryLevel:
        """Main memory: the level that everything fits in."""
        return self.levels[-1]

    @property
    def memory_bandwidth_byte_per_s(self) -> float:
        """The highest rate of main memory."""
        return self.memory.ceiling().rate

    @property
    def doubt(self) -> float:
        """The largest half-width of all ceilings, relative to its rate; above 0.15 the machine was busy."""
        rates = [*(rate for level in self.levels for rate in level.bandwidth.values())]
        rates += [*self.matmul.values(), *self.vector.values(), *self.links.values()]
        return max(rate.half_width for rate in rates)

    def level(self, name: str) -> MemoryLevel:
        """The memory level with this name."""
        for level in self.levels:
            if level.name.casefold() == str(name).casefold():
                return level
        if str(name) in self.unmeasured:
            raise UsageError(
                f"{name} of {self.name} was not measured",
                why=self.settings.get(str(name), "this machine does not say why"),
                next=f"use one of {', '.join(level.name for level in self.levels)}",
            )
        raise UsageError(
            f"{self.name} has no memory level {name!r}",
            why=f"it has {', '.join(level.name for level in self.levels)}",
            next="use one of these",
        )

    def level_of(self, working_set_bytes: float) -> MemoryLevel:
        """The nearest level that holds so many bytes."""
        return next(level for level in self.levels if working_set_bytes <= level.capacity_bytes or level is self.memory)

    def unmeasured_for(self, working_set_bytes: float) -> str:
        """The nearest unmeasured cache that holds so many bytes, which may be faster than any level here; else ""."""
        holding = [name for name, capacity in self.unmeasured.items() if working_set_bytes <= capacity]
        return min(holding, key=lambda name: self.unmeasured[name], default="")

    def peak(self, dtype: object = "fp32") -> Ceiling:
        """The ceiling of contractions in `dtype`; EdlError where this machine has none."""
        short = dtype_name(dtype)
        if short not in self.matmul:
            raise EdlError(
                f"{self.name} has no ceiling for {short}",
                why=f"it has {', '.join(self.matmul)}",
                next="choose one of these dtypes, or measure this one: ceilings(dtypes=[...])",
            )
        return self.matmul[short]

    def peak_flop_per_s(self, dtype: object = "fp32") -> float:
        """The highest rate of contractions in `dtype`."""
        return self.peak(dtype).rate

    def ridge_flop_per_byte(self, dtype: object = "fp32", *, level: str | None = None) -> float:
        """The intensity from which arithmetic, not the memory level (main memory unless named), is the limit."""
        memory = self.memory if level is None else self.level(level)
        return self.peak_flop_per_s(dtype) / memory.ceiling().rate

    def vector_peak(self, dtype: str) -> Ceiling:
        """The ceiling of arithmetic other than contractions."""
        # TF32 and fp8 are formats of contractions: all else is done in fp32.
        found = self.vector.get(dtype, self.vector.get("fp32"))
        return self.peak(dtype) if found is None else found

    def arithmetic_s(self, work: Work) -> tuple[float, float, float]:
        """Seconds of arithmetic at the ceilings, at their lower and at their upper ends."""
        if not work.total_flops:
            return 0.0, 0.0, 0.0
        if not self.vector:
            return _seconds(work.total_flops, self.peak(work.dtype))
        # Each unit has its own share and works at the same time.
        other = _seconds(work.other_flops, self.vector_peak(work.dtype))
        if not work.contraction_flops:
            return other
        main = _seconds(work.contraction_flops, self.peak(work.dtype))
        return max(main[0], other[0]), max(main[1], other[1]), max(main[2], other[2])

    def least_s(self, work: Work) -> float:
        """The seconds below which no code does `work`, wherever its operands lie: what a measured time is held against.

        The nearest memory counts, since operands of a repeated call may stay there; and the upper end of each ceiling.
        """
        if self.unmeasured_for(work.moved_bytes):
            return self.arithmetic_s(work)[2]
        memory = self.level_of(work.moved_bytes)
        return max(self.arithmetic_s(work)[2], work.moved_bytes / memory.ceiling().high)

    def to_json(self) -> dict[str, Any]:
        """The machine as plain JSON data; main memory's capacity, which is infinite, is null."""
        tree = super().to_json()
        for level in tree["levels"]:
            level["capacity_bytes"] = None if level["capacity_bytes"] == "inf" else level["capacity_bytes"]
        return tree

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Machine:
        """The machine that `to_json` wrote, from its tree or its text; UsageError for anything else."""
        data = read_tree(tree, kind="machine", schema=cls.SCHEMA)
        return rebuilt(lambda: from_tree(cls, {**data, "levels": [*map(_finite, data["levels"])]}), kind="machine")


def _finite(level: Mapping[str, Any]) -> dict[str, Any]:
    return {**level, "capacity_bytes": math.inf if level["capacity_bytes"] is None else level["capacity_bytes"]}


def _seconds(flops: float, ceiling: Ceiling) -> tuple[float, float, float]:
    return flops / ceiling.rate, flops / ceiling.low, flops / ceiling.high


@dataclass(frozen=True, repr=False)
class CardRow(Value):
    """One ceiling in words: measured with its interval, the datasheet's value, the share of it, how it was found."""

    name: str
    measured: str
    datasheet: str
    share: str
    note: str


def card(machine: Machine) -> tuple[CardRow, ...]:
    """Every ceiling of `machine` next to its datasheet (a dash where there is none), then ridge points and latency."""
    chip = accelerator(machine.hardware_key) if machine.hardware_key else None
    return (*_memory(machine, chip), *_products(machine, chip), *_links(machine, chip), *_ridges(machine))


def _memory(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    rows = [
        CardRow(f"{name}, {byte_count(size)}", "not measured", "–", "–", machine.settings.get(name, "–"))
        for name, size in machine.unmeasured.items()
    ]
    for level in machine.levels:
        size = "" if level is machine.memory else f", {byte_count(level.capacity_bytes)}"
        printed = chip.memory_bandwidth_byte_per_s if chip and level is machine.memory else None
        for pattern, ceiling in level.bandwidth.items():
            cut = machine.settings.get(CUT_SHORT, "") if level is machine.memory else ""
            row = _row(f"{level.name} {pattern}{size}", ceiling, printed, byte_rate)
            rows.append(replace(row, note="; ".join(filter(None, (row.note, cut)))))
    return rows


def _products(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    return [
        _row(f"{dtype} products", ceiling, _peak(chip, dtype), flop_rate) for dtype, ceiling in machine.matmul.items()
    ]


def _links(machine: Machine, chip: Accelerator | None) -> list[CardRow]:
    printed = chip.link_byte_per_s if chip else None
    return [_row(name, ceiling, printed, byte_rate) for name, ceiling in machine.links.items()]


def _ridges(machine: Machine) -> list[CardRow]:
    rows = []
    for dtype in machine.matmul:
        ridge = machine.ridge_flop_per_byte(dtype)
        rows.append(CardRow(f"ridge {dtype}", f"{ridge:.3g} FLOP/B", "–", "–", f"over {machine.memory.name}"))
    if machine.latency_s:
        rows.append(CardRow("smallest operation", seconds(machine.latency_s), "–", "–", "one of many in a row"))
    return rows


def _row(name: str, ceiling: Ceiling, printed: float | None, say: Any) -> CardRow:
    doubt = f" ± {percent(ceiling.half_width, digits=2)}" if ceiling.half_width else ""
    if ceiling.half_width > 1:
        doubt = " (disturbed)"  # a width beyond the rate itself says nothing that a reader could use
    share = "–" if printed is None else percent(ceiling.rate / printed)
    return CardRow(name, f"{say(ceiling.rate)}{doubt}", "–" if printed is None else say(printed), share, ceiling.note)


def _peak(chip: Accelerator | None, dtype: str) -> float | None:
    return chip.peak_flop_per_s(dtype) if chip is not None and dtype in chip.dtypes() else None
