"""`Machine`: the ceilings of one device, measured, from its datasheet, or given; each with its interval."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.device import Device
from edl_labs.errors import EdlError, UsageError
from edl_labs.hardware import Accelerator, accelerator, dtype_name
from edl_labs.roofline.sizes import check_rate

SCHEMA = 1
PATTERNS = ("read", "copy", "triad")


@dataclass(frozen=True)
class Ceiling:
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
                f"a ceiling of {self.rate:g} between {self.low:g} and {self.high:g}",
                why="the interval of a value holds it",
                next="give low <= rate <= high",
            )

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the rate."""
        return (self.high - self.low) / 2 / self.rate


@dataclass(frozen=True)
class MemoryLevel:
    """One level of memory: its name, what fits (inf for main memory), and bytes per second by access pattern."""

    name: str
    capacity_bytes: float
    bandwidth: Mapping[str, Ceiling] = field(hash=False)

    def __post_init__(self) -> None:
        unknown = [pattern for pattern in self.bandwidth if pattern not in PATTERNS]
        if unknown or not self.bandwidth:
            raise UsageError(
                f"memory {self.name!r} has rates for {sorted(self.bandwidth) or 'nothing'}",
                why=f"access patterns are {', '.join(PATTERNS)}",
                next="give a Ceiling for at least one of them",
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
                next="name one of these, or none for the highest",
            )
        return found


@dataclass(frozen=True)
class Machine:
    """The roofs of one device. `levels` go from the nearest memory to main memory.

    `matmul` holds the peak of contractions by dtype; `vector` that of other arithmetic where another unit does it (on a
    GPU: the CUDA cores), and is empty where the same unit does both. `units` is how many SMs or cores must be kept
    busy. `latency_s` is what the smallest operation takes.
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

    def __post_init__(self) -> None:
        if not self.levels or not self.matmul:
            raise UsageError(
                f"machine {self.name!r} lacks {'memory' if not self.levels else 'arithmetic'}",
                why="a roofline has a slope and a flat part",
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

    def level(self, name: str) -> MemoryLevel:
        """The memory level with this name."""
        for level in self.levels:
            if level.name.casefold() == str(name).casefold():
                return level
        raise UsageError(
            f"{self.name} has no memory level {name!r}",
            why=f"it has {', '.join(level.name for level in self.levels)}",
            next="name one of these",
        )

    def level_of(self, working_set_bytes: float) -> MemoryLevel:
        """The nearest level that holds so many bytes."""
        return next(level for level in self.levels if working_set_bytes <= level.capacity_bytes or level is self.memory)

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

    def least_s(self, work: Any) -> float:
        """The seconds below which no code does `work`, wherever its operands lie: what a measured time is held against.

        The nearest memory counts, since operands of a repeated call may stay there.
        """
        from edl_labs.roofline._bound import bound

        return bound(self, work, level=self.level_of(work.moved_bytes).name).light_s

    def to_json(self) -> dict[str, Any]:
        """The machine as plain JSON data with a schema number and the environment stamp."""
        data = dataclasses.asdict(self)
        for level in data["levels"]:
            level["capacity_bytes"] = None if math.isinf(level["capacity_bytes"]) else level["capacity_bytes"]
        return {"kind": "machine", "schema": SCHEMA, **data, "sweep": [list(point) for point in self.sweep]}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Machine:
        """The machine that `to_json` wrote; UsageError for anything else."""
        try:
            return cls(**_fields(tree))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                "this is no machine", why=f"{type(error).__name__}: {error}", next="write one with Machine.to_json()"
            ) from error


def _fields(tree: Mapping[str, Any]) -> dict[str, Any]:
    if tree["kind"] != "machine" or tree["schema"] != SCHEMA:
        raise ValueError(f"kind {tree['kind']!r}, schema {tree['schema']!r}")
    known = {name: tree[name] for name in Machine.__dataclass_fields__}
    levels = tuple(
        MemoryLevel(
            level["name"],
            math.inf if level["capacity_bytes"] is None else float(level["capacity_bytes"]),
            _ceilings(level["bandwidth"]),
        )
        for level in tree["levels"]
    )
    roofs = {name: _ceilings(tree[name]) for name in ("matmul", "vector", "links")}
    stamp = None if tree["stamp"] is None else Device.from_dict(tree["stamp"])
    sweep = tuple((str(pattern), float(size), float(rate)) for pattern, size, rate in tree["sweep"])
    return {**known, **roofs, "levels": levels, "stamp": stamp, "sweep": sweep}


def _ceilings(tree: Mapping[str, Any]) -> dict[str, Ceiling]:
    return {str(name): Ceiling(**value) for name, value in tree.items()}
