"""What measuring gives: `Measurement`, the time of a call with its doubt, and `Comparison`, how times relate."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from edl_labs import stats
from edl_labs.clock import Clock
from edl_labs.device import Device
from edl_labs.errors import EdlError, UsageError
from edl_labs.presenters import Plottable, present
from edl_labs.units import counted, percent, ratio_text, seconds, time_text
from edl_labs.values import Value

ONE_COLD_CALL = "one call, cold"
# A half-width of 2 % is where two digits stop being sure.
_NOISY = 0.02
# A median that moved by 5 % is no longer one number to a reader.
_DRIFT_TOLD = 0.05


@dataclass(frozen=True)
class Mistake:
    """A mistake in how something is timed: what it is, why it matters, what to do next. `kind` is for programs."""

    kind: str
    what: str
    why: str
    next: str

    def __str__(self) -> str:
        return str(EdlError(self.what, why=self.why, next=self.next))


@dataclass(frozen=True)
class ClockFacts:
    """Which clock was used, and how far it can be trusted."""

    name: str
    resolution_s: float
    read_cost_s: float
    trust: str

    @classmethod
    def of(cls, clock: Clock, *, asynchronous: bool) -> ClockFacts:
        """The facts that a clock states about itself."""
        waits = (
            "waits for its device at both ends of a block" if asynchronous else "measures only the processor's own work"
        )
        return cls(str(clock.name), float(clock.resolution_s), float(clock.read_cost_s), waits)


@dataclass(frozen=True, repr=False)
class Measurement(Value, Plottable):
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
        """The number of blocks that were kept, from which the interval is computed."""
        return len(self.times_s)

    @property
    def half_width(self) -> float:
        """Half the interval relative to the median; inf without an interval."""
        return (self.high_s - self.low_s) / 2 / self.median_s if self.median_s > 0 else math.inf

    @property
    def shape(self) -> stats.Shape:
        """What the distribution of the blocks looks like."""
        return stats.shape(self.times_s)

    @property
    def drift(self) -> float:
        """Relative change from the first third of the blocks to the last."""
        return stats.drift(self.times_s)

    @property
    def is_cold_call(self) -> bool:
        """Whether the only call was the very first one, whose time may include one-time work."""
        return self.blocks == 1 and self.warm_calls == 1

    def __float__(self) -> float:
        if self.is_cold_call:
            warnings.warn(f"{self.name}: {ONE_COLD_CALL}, so this is not the time of a warm call", stacklevel=2)
        return self.median_s

    def __repr__(self) -> str:
        return measurement_text(self)

    def _repr_html_(self) -> str:
        return str(present("html", self))


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
class RatioRow:
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


def decision_confidence(level: float) -> float:
    """The level at which a difference must hold to be called one: an alarm on identical code is the dearer error.

    >>> round(decision_confidence(0.95), 4)
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
class Comparison(Value, Plottable):
    """Functions compared in paired, interleaved rounds: each row is a later function against the first one.

    `ratio`, `low`, `high`, `verdict` are those of the second against the first: below 1 the second is faster. The
    interval is at `level`; 'faster' and 'slower' must hold at 99.9 % (for a level of 95 %), so that identical code
    raises no alarm.
    """

    sides: tuple[Side, ...]
    rows: tuple[RatioRow, ...]
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
        """How many times faster the second is: the inverse of the ratio."""
        return 1 / self.ratio

    @property
    def verdict(self) -> str:
        """'faster', 'same', 'slower' or 'inconclusive': the second against the first."""
        return self.rows[0].verdict

    def __getitem__(self, name: str) -> RatioRow:
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(row.name for row in self.rows)
        raise UsageError(f"there is no row {name!r}", why=f"the rows are {names}", next="use one of these names")

    def __repr__(self) -> str:
        return comparison_text(self)

    def _repr_html_(self) -> str:
        return str(present("html", self))


def condition(m: Measurement) -> str:
    """What a reader should know about the number, in a few words: '' or '(noisy: clock moved)'."""
    words = [ONE_COLD_CALL] if m.is_cold_call else []
    if m.dropped:
        words.append("clock moved")
    shape = m.shape
    if len(shape.modes) == 2:
        words.append(f"bimodal: {seconds(shape.modes[0])} and {seconds(shape.modes[1])}")
    elif shape.words != "steady":
        words.append(shape.words)
    if abs(m.drift) > max(_DRIFT_TOLD, 2 * m.half_width):
        words.append(f"drifted by {'+' if m.drift > 0 else '−'}{percent(abs(m.drift), digits=2)}")
    if not m.steady and not m.is_cold_call:
        words.append("not steady after the warm-up")
    if m.half_width > _NOISY and math.isfinite(m.half_width):
        return f"(noisy: {', '.join(words)})" if words else "(noisy)"
    return f"({', '.join(words)})" if words else ""


def measurement_line(m: Measurement) -> str:
    """One line: name, time, doubt, condition."""
    return " ".join(filter(None, [f"{m.name}: {time_text(m.median_s, m.half_width)}", condition(m)]))


def measurement_text(m: Measurement) -> str:
    """The measurement as text, its warnings below it."""
    blocks = f"{counted(m.blocks, 'block')} of {counted(m.calls, 'call')}"
    how = f"  {blocks} on the {m.clock.name} clock, after {counted(m.warm_calls, 'warm-up call')}"
    extra = [word for word, on in (("caches cleared", m.cold), ("replayed as a graph", m.graph)) if on]
    lines = [measurement_line(m), ", ".join([how, *extra])]
    return "\n".join([*lines, *(f"  note: {note}" for note in m.notes), *map(_mistake_text, m.warnings)])


def comparison_text(c: Comparison) -> str:
    """The comparison as text: a line per function, then a line per ratio."""
    width = max(len(side.name) for side in c.sides)
    lines = [f"{side.name:<{width}}  {side_time(side)}" for side in c.sides]
    lines += [_row_text(row, c) for row in c.rows]
    how = f"  {counted(c.rounds, 'paired round')}, stopped: {c.stopped}; outputs {c.compared_outputs}"
    return "\n".join([*lines, how, *(f"  note: {note}" for note in c.notes), *map(_mistake_text, c.warnings)])


def _row_text(row: RatioRow, c: Comparison) -> str:
    words = {
        "faster": f"{row.name} is faster than {row.against}",
        "slower": f"{row.name} is slower than {row.against}",
        "same": f"{row.name} takes the same time as {row.against} within {percent(c.band)}",
        "inconclusive": f"{row.name} against {row.against}: inconclusive within {percent(c.band)}",
    }[row.verdict]
    return f"{words}: time ratio {ratio_text(row.ratio, row.low, row.high)}"


def side_time(side: Side) -> str:
    half = (side.high_s - side.low_s) / 2 / side.median_s if side.median_s > 0 else math.inf
    return time_text(side.median_s, half)


def _mistake_text(mistake: Mistake) -> str:
    return "  warning: " + str(mistake).replace("\n", "\n  ")
