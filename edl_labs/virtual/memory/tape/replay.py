"""What a recorded step holds and takes on a tape, worked out again from its operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.units import byte_count, seconds
from edl_labs.values import Value
from edl_labs.virtual.memory.tape.engine import TapeEngine
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer, as_tape
from edl_labs.virtual.memory.tape.program import PROGRAM
from edl_labs.virtual.program import MAX_REPLAYED, Entry
from edl_labs.virtual.quantities import PER_SECOND

RESIDENT = "resident"  # the owner of what is there all the time


@dataclass(frozen=True, repr=False)
class TapeMoment(Value):
    """What is on the device from `time_s` on, after operation `index` of the program has begun or ended."""

    time_s: float
    index: int
    operation: str
    live_bytes: int


@dataclass(frozen=True, repr=False)
class TapeReplay(Value, Plottable):
    """What a step did, from its operations alone.

    `peak` is the moment of the most bytes, `owners` who held them then, the most first. `compute_s` of the makespan are
    passes, `recomputed_s` of these were done again, and `waited_s` the passes waited for copies. `missing` lists passes
    that a whole step has and this program has not.
    """

    DERIVED = ("peak_bytes", "peak_owner")
    OMITTED = ("program",)
    ROWS = "moments"

    peak: TapeMoment
    owners: tuple[tuple[str, int], ...]
    makespan_s: float
    compute_s: float
    recomputed_s: float
    waited_s: float
    copy_out_s: float
    copy_in_s: float
    counts: Mapping[str, int]
    missing: tuple[str, ...]
    moments: tuple[TapeMoment, ...]
    program: tuple[Entry, ...] = field(default=(), repr=False, compare=False)

    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes at any moment."""
        return self.peak.live_bytes

    @property
    def peak_owner(self) -> str:
        """The layer that holds most at the peak."""
        return self.owners[0][0] if self.owners else RESIDENT

    def __str__(self) -> str:
        return (
            f"{byte_count(self.peak_bytes)} at the peak (in {self.peak.operation}), most of it {self.peak_owner}; "
            f"{seconds(self.makespan_s)}, {seconds(self.recomputed_s)} of it recomputed"
        )


def replay_tape(
    program: object, tape: Tape | Mapping[str, Any] | Sequence[TapeLayer], *, max_operations: int = MAX_REPLAYED
) -> TapeReplay:
    """What a recorded step holds and takes on a tape.

    ReplayError where `program` is not one, or does what the layers do not allow: never anything else, whatever it is.
    """
    layers = as_tape(tape)
    engine = TapeEngine(layers)
    counts: Counter[str] = Counter()
    for _, entry, _ in PROGRAM.replayed(engine, program, at_most=max_operations):
        counts[entry["op"]] += 1
    assert isinstance(program, list)
    return _result(engine, [dict(entry) for entry in program], counts)


def _result(engine: TapeEngine, program: list[Entry], counts: Counter[str]) -> TapeReplay:
    moments, owners = _history(engine, program)
    busy = {name: ps / PER_SECOND for name, ps in engine.busy_ps.items()}
    late = [f"forward({i})" for i, one in enumerate(engine.layers) if not one.forward]
    late += [f"backward({i})" for i, one in reversed(list(enumerate(engine.layers))) if not one.backward]
    return TapeReplay(
        peak=max(moments, key=lambda moment: moment.live_bytes),
        owners=owners,
        makespan_s=engine.end_ps / PER_SECOND,
        compute_s=busy["compute"],
        recomputed_s=engine.recomputed_ps / PER_SECOND,
        waited_s=engine.waited_ps / PER_SECOND,
        copy_out_s=busy["copy out"],
        copy_in_s=busy["copy in"],
        counts=dict(counts),
        missing=tuple(late),
        moments=moments,
        program=tuple(program),
    )


def _history(engine: TapeEngine, program: list[Entry]) -> tuple[tuple[TapeMoment, ...], tuple[tuple[str, int], ...]]:
    """The bytes on the device through time, and who holds them at the peak. At one instant, issue order counts."""
    live = most = engine.tape.resident_bytes
    held: Counter[str] = Counter({RESIDENT: live})
    owners = held.copy()
    moments = [TapeMoment(0.0, -1, "the start", live)]
    # Sorting is stable: what one operation does at one instant stays in its order.
    for change in sorted(engine.changes, key=lambda change: (change.time_ps, change.index)):
        live += change.delta
        held[change.owner] += change.delta
        entry = program[change.index]
        moments.append(TapeMoment(change.time_ps / PER_SECOND, change.index, f"{entry['op']}({entry['layer']})", live))
        if live > most:
            most, owners = live, held.copy()
    return tuple(moments), tuple((name, size) for name, size in owners.most_common() if size > 0)


__all__ = ["TapeMoment", "TapeReplay", "replay_tape"]
