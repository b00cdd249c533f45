"""VirtualTape and its replay: a step as a program of plain data, and what it holds and takes, worked out again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from edl_labs.presenters import Drawn
from edl_labs.units import byte_count, seconds
from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.memory.tape.engine import FIELDS, TapeEngine, play
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer, as_tape
from edl_labs.virtual.program import MAX_REPLAYED, Entry, ProgramForm
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
class TapeReplay(Value, Drawn):
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
        """The most bytes at any moment."""
        return self.peak.live_bytes

    @property
    def peak_owner(self) -> str:
        """Who held most at the peak."""
        return self.owners[0][0] if self.owners else RESIDENT

    def __str__(self) -> str:
        return (
            f"{byte_count(self.peak_bytes)} at the peak, at {self.peak.operation}, most of it {self.peak_owner}; "
            f"{seconds(self.makespan_s)}, {seconds(self.recomputed_s)} of it recomputed"
        )


class VirtualTape:
    """A training step on a tape: passes, drops and copies, recorded as plain data and refused where they cannot be.

    Passes run one after the other. A copy starts when what was issued before it has been computed and its engine is
    free; it runs beside later passes, which wait for what they read.

    >>> step = VirtualTape(Tape.chain(2, activation_bytes=2, output_bytes=1, forward_s=1.0, backward_s=2.0))
    >>> step.forward(0, keep=False); step.forward(1, keep=True); step.backward(1)
    >>> step.recompute(0); step.backward(0)
    >>> replayed = step.replay()
    >>> replayed.peak_bytes, replayed.peak.operation, replayed.makespan_s
    (3, 'forward(1)', 7.0)
    """

    def __init__(self, tape: Tape | Mapping[str, Any] | Sequence[TapeLayer]) -> None:
        self.tape = as_tape(tape)
        self._engine = TapeEngine(self.tape)
        self._program: list[Entry] = []

    def forward(self, layer: int, *, keep: bool) -> None:
        """Run a layer; `keep` its activations for its backward pass, or its output alone."""
        self._do({"op": "forward", "layer": layer, "keep": keep})

    def recompute(self, layer: int, *, keep: bool = True) -> None:
        """Run a layer again, whose inputs must be there."""
        self._do({"op": "recompute", "layer": layer, "keep": keep})

    def backward(self, layer: int) -> None:
        """The backward pass of a layer: needs its activations, its inputs and the gradient; frees the layer."""
        self._do({"op": "backward", "layer": layer})

    def drop(self, layer: int, *, keep_output: bool = False) -> None:
        """Let go of what is held of a layer, of its output too unless `keep_output`."""
        self._do({"op": "drop", "layer": layer, "keep_output": keep_output})

    def offload(self, layer: int) -> None:
        """Copy what is held of a layer to the host, beside the passes that follow."""
        self._do({"op": "offload", "layer": layer})

    def fetch(self, layer: int) -> None:
        """Copy a layer back from the host, beside the passes that follow."""
        self._do({"op": "fetch", "layer": layer})

    @property
    def program(self) -> list[Entry]:
        """Everything issued, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._program]

    def replay(self) -> TapeReplay:
        """What the step did so far."""
        return replay_tape(self.program, self.tape)

    def _do(self, entry: Entry) -> None:
        wrong = _wrong_field(entry, self.tape)
        if wrong:
            raise VirtualMemoryError(
                f"{entry['op']} of {shown(entry['layer'])} cannot be",
                why=wrong,
                next=f"layers are 0 to {len(self.tape.layers) - 1}, and what to keep is True or False",
            )
        play(self._engine, entry)
        self._program.append(entry)


_FORM = ProgramForm("VirtualTape", "step.program", FIELDS)


def replay_tape(
    program: object, tape: Tape | Mapping[str, Any] | Sequence[TapeLayer], *, max_operations: int = MAX_REPLAYED
) -> TapeReplay:
    """What a recorded step holds and takes on a tape.

    ReplayError where `program` is not one, or does what the layers do not allow: never anything else, whatever it is.
    """
    layers = as_tape(tape)
    engine = TapeEngine(layers)
    counts: Counter[str] = Counter()
    for index, entry in _FORM.entries(
        program, lambda i, e: _checked(i, e, layers), lambda _: 1, at_most=max_operations
    ):
        _FORM.done_again(lambda entry: play(engine, entry), index, entry)
        counts[entry["op"]] += 1
    assert isinstance(program, list)
    return _result(engine, [dict(entry) for entry in program], counts)


def _checked(index: int, entry: Any, tape: Tape) -> Entry:
    name = _FORM.name_of(index, entry)
    wanted = {"op", "layer", *FIELDS[name]}
    for extra in entry:
        if type(extra) is not str or extra not in wanted:
            raise _FORM.malformed(index, f"is a {name} with a field {shown(extra)}, which it does not have")
    for missing in sorted(wanted - set(entry)):
        raise _FORM.malformed(index, f"is a {name} without its {missing}")
    wrong = _wrong_field(entry, tape)
    if wrong:
        raise _FORM.malformed(index, f"is a {name}, but {wrong}")
    return cast(Entry, entry)


def _wrong_field(entry: Entry, tape: Tape) -> str:
    if type(entry["layer"]) is not int or not 0 <= entry["layer"] < len(tape.layers):
        return f"there is no layer {shown(entry['layer'])}"
    odd = [name for name in FIELDS[entry["op"]] if type(entry[name]) is not bool]
    return f"{odd[0]} is {shown(entry[odd[0]])}, not True or False" if odd else ""


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


__all__ = ["TapeMoment", "TapeReplay", "VirtualTape", "replay_tape"]
