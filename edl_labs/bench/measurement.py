"""`Measurement`: the time of a call with its doubt, its shape, its warnings and where it was taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs import stats
from edl_labs.bench import show
from edl_labs.bench.values import ClockFacts, Mistake, as_tree, number, read_tree, rebuilt, stamp_from
from edl_labs.device import Device

SCHEMA = 1


@dataclass(frozen=True, repr=False)
class Measurement:
    """Seconds per call of one function: the median over stretches of blocks, its interval, and how it was found.

    `times_s` holds one time per call for each block. A stretch is some 4 ms of blocks and counts as their mean: what
    meets every stretch of work (timer ticks, short slow spells) is part of the time, what is rare is not. `warnings`
    are the mistakes that were detected, `off` the detectors that had nothing to look at, each with the reason.
    `float(m)` is the median in seconds.
    """

    name: str
    times_s: tuple[float, ...]
    median_s: float
    low_s: float
    high_s: float
    level: float
    calls: int
    warm_calls: int
    first_call_s: float
    empty_s: float
    steady: bool
    budget_s: float
    wall_s: float
    clock: ClockFacts
    cold: bool = False
    graph: bool = False
    dropped: int = 0
    warnings: tuple[Mistake, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stamp: Device | None = None

    @property
    def blocks(self) -> int:
        """How many blocks were kept: the replicates behind the interval."""
        return len(self.times_s)

    @property
    def half_width(self) -> float:
        """Half the interval relative to the median; inf where there is none."""
        return (self.high_s - self.low_s) / 2 / self.median_s if self.median_s > 0 else math.inf

    @property
    def shape(self) -> stats.Shape:
        """What the distribution of the blocks looks like."""
        return stats.shape(self.times_s)

    @property
    def drift(self) -> float:
        """Relative change from the first third of the blocks to the last."""
        return stats.drift(self.times_s)

    def __float__(self) -> float:
        return self.median_s

    def __repr__(self) -> str:
        return show.measurement_text(self)

    def _repr_html_(self) -> str:
        return show.measurement_html(self)

    def to_json(self) -> dict[str, Any]:
        """The measurement as plain JSON data with a schema number and the environment stamp."""
        stamp = None if self.stamp is None else self.stamp.to_dict()
        parts = {name: as_tree(getattr(self, name)) for name in self.__dataclass_fields__ if name != "stamp"}
        return {"kind": "measurement", "schema": SCHEMA, **parts, "stamp": as_tree(stamp)}

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Measurement:
        """The measurement that `to_json` wrote, from its tree or its text; UsageError for anything else."""
        data = read_tree(tree, kind="measurement", schema=SCHEMA)
        return rebuilt(lambda: cls(**_fields(data)), kind="measurement")


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    floats = ("median_s", "low_s", "high_s", "level", "first_call_s", "empty_s", "budget_s", "wall_s")
    whole = ("calls", "warm_calls", "dropped")
    plain = ("name", "steady", "cold", "graph")
    return {
        **{name: data[name] for name in plain},
        **{name: int(data[name]) for name in whole},
        **{name: number(data[name]) for name in floats},
        "times_s": tuple(map(number, data["times_s"])),
        "clock": ClockFacts(**data["clock"]),
        "warnings": tuple(Mistake(**item) for item in data["warnings"]),
        "off": dict(data["off"]),
        "notes": tuple(data["notes"]),
        "stamp": stamp_from(data["stamp"]),
    }
