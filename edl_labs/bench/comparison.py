"""`Comparison`: how the times of functions relate, with an interval on each ratio and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.bench import show
from edl_labs.bench.values import ClockFacts, Mistake, as_tree, number, read_tree, rebuilt, stamp_from
from edl_labs.device import Device
from edl_labs.errors import UsageError

SCHEMA = 1
VERDICTS = ("faster", "same", "slower", "inconclusive")


@dataclass(frozen=True)
class Side:
    """One function of a comparison: its own time per call, and the calls in a block of it."""

    name: str
    median_s: float
    low_s: float
    high_s: float
    calls: int
    warm_calls: int
    first_call_s: float


@dataclass(frozen=True)
class Row:
    """One ratio: the time of `name` over the time of `against`, from the paired rounds in `log_ratios`."""

    name: str
    against: str
    ratio: float
    low: float
    high: float
    verdict: str
    blocked_ratio: float
    interleaving_changed: bool
    log_ratios: tuple[float, ...]

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the ratio."""
        return (self.high - self.low) / 2 / self.ratio if self.ratio > 0 else math.inf


def sure_level(level: float) -> float:
    """The level at which a difference must hold to be called one: an alarm on identical code is the dearer error.

    >>> round(sure_level(0.95), 4)
    0.999
    """
    return 1 - (1 - level) / 50


def verdict(low: float, high: float, *, band: float, sure: tuple[float, float] | None = None) -> str:
    """What an interval on a ratio of times says: faster or slower by more than `band`, the same within it, or nothing.

    `sure` is the wider interval that a difference has to pass too.

    >>> [verdict(*ends, band=0.005) for ends in ((0.97, 0.99), (0.998, 1.003), (1.01, 1.02), (0.99, 1.01))]
    ['faster', 'same', 'slower', 'inconclusive']
    """
    sure_low, sure_high = sure or (low, high)
    if max(high, sure_high) < 1 / (1 + band):
        return "faster"
    if min(low, sure_low) > 1 + band:
        return "slower"
    if low >= 1 / (1 + band) and high <= 1 + band:
        return "same"
    return "inconclusive"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Functions compared in paired, interleaved rounds: each row is a later function against the first one.

    `ratio`, `low`, `high`, `verdict` are those of the second against the first: below 1 the second is faster. The
    interval is at `level`; 'faster' and 'slower' must hold at 99.9 % (for a level of 95 %), so that identical code
    raises no alarm.
    """

    sides: tuple[Side, ...]
    rows: tuple[Row, ...]
    level: float
    band: float
    rounds: int
    budget_s: float
    wall_s: float
    clock: ClockFacts
    stopped: str
    compared_outputs: str
    dropped: int = 0
    warnings: tuple[Mistake, ...] = ()
    off: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stamp: Device | None = None

    @property
    def ratio(self) -> float:
        """The time of the second over the time of the first."""
        return self.rows[0].ratio

    @property
    def low(self) -> float:
        """The lower end of the interval on that ratio."""
        return self.rows[0].low

    @property
    def high(self) -> float:
        """The upper end of the interval on that ratio."""
        return self.rows[0].high

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the ratio."""
        return self.rows[0].half_width

    @property
    def speedup(self) -> float:
        """How many times faster the second is: the ratio turned over."""
        return 1 / self.ratio

    @property
    def verdict(self) -> str:
        """'faster', 'same', 'slower' or 'inconclusive': the second against the first."""
        return self.rows[0].verdict

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(row.name for row in self.rows)
        raise UsageError(f"no row is called {name!r}", why=f"there are {names}", next="name one of these")

    def __repr__(self) -> str:
        return show.comparison_text(self)

    def _repr_html_(self) -> str:
        return show.comparison_html(self)

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON data with a schema number and the environment stamp."""
        stamp = None if self.stamp is None else self.stamp.to_dict()
        parts = {name: as_tree(getattr(self, name)) for name in self.__dataclass_fields__ if name != "stamp"}
        return {"kind": "comparison", "schema": SCHEMA, **parts, "stamp": as_tree(stamp)}

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Comparison:
        """The comparison that `to_json` wrote, from its tree or its text; UsageError for anything else."""
        data = read_tree(tree, kind="comparison", schema=SCHEMA)
        return rebuilt(lambda: cls(**_fields(data)), kind="comparison")


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sides": tuple(Side(**_floats(side, "median_s", "low_s", "high_s", "first_call_s")) for side in data["sides"]),
        "rows": tuple(_row(row) for row in data["rows"]),
        **{name: number(data[name]) for name in ("level", "band", "budget_s", "wall_s")},
        **{name: int(data[name]) for name in ("rounds", "dropped")},
        **{name: str(data[name]) for name in ("stopped", "compared_outputs")},
        "clock": ClockFacts(**data["clock"]),
        "warnings": tuple(Mistake(**item) for item in data["warnings"]),
        "off": dict(data["off"]),
        "notes": tuple(data["notes"]),
        "stamp": stamp_from(data["stamp"]),
    }


def _row(tree: Mapping[str, Any]) -> Row:
    parts = _floats(tree, "ratio", "low", "high", "blocked_ratio")
    return Row(**{**parts, "log_ratios": tuple(map(number, tree["log_ratios"]))})


def _floats(tree: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**tree, **{name: number(tree[name]) for name in names}}
