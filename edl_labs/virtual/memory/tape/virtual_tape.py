"""VirtualTape: a training step, layer by layer, recorded as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.memory.tape.engine import TapeEngine
from edl_labs.virtual.memory.tape.machine import Tape, TapeLayer, as_tape
from edl_labs.virtual.memory.tape.program import OPERATIONS
from edl_labs.virtual.memory.tape.replay import TapeReplay, replay_tape
from edl_labs.virtual.program import Entry


class VirtualTape:
    """A training step on a tape: passes, drops and copies, recorded as plain data and refused where they cannot be.

    Passes run one after the other. A copy starts when what was issued before it has been computed and its engine is
    free; it overlaps later passes, which wait for what they read.

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
        """Run a layer; `keep` its activations for its backward pass, or only its output."""
        self._do({"op": "forward", "layer": layer, "keep": keep})

    def recompute(self, layer: int, *, keep: bool = True) -> None:
        """Run a layer again, whose inputs must be there."""
        self._do({"op": "recompute", "layer": layer, "keep": keep})

    def backward(self, layer: int) -> None:
        """The backward pass of a layer: it needs its activations, its inputs and the gradient, and frees the layer."""
        self._do({"op": "backward", "layer": layer})

    def drop(self, layer: int, *, keep_output: bool = False) -> None:
        """Free what is held of a layer, including its output unless `keep_output`."""
        self._do({"op": "drop", "layer": layer, "keep_output": keep_output})

    def offload(self, layer: int) -> None:
        """Copy what is held of a layer to the host, during the passes that follow."""
        self._do({"op": "offload", "layer": layer})

    def fetch(self, layer: int) -> None:
        """Copy a layer back from the host, during the passes that follow."""
        self._do({"op": "fetch", "layer": layer})

    @property
    def program(self) -> list[Entry]:
        """Everything issued, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._program]

    def replay(self) -> TapeReplay:
        """What the step did so far."""
        return replay_tape(self.program, self.tape)

    def _do(self, entry: Entry) -> None:
        wrong = _wrong_field(self._engine, entry)
        if wrong:
            raise VirtualMemoryError(
                f"{entry['op']} of layer {shown(entry['layer'])} is not possible",
                why=wrong,
                next=f"use a layer from 0 to {len(self.tape.layers) - 1}, and True or False for what to keep",
            )
        OPERATIONS[entry["op"]].play(self._engine, entry)
        self._program.append(entry)


def _wrong_field(engine: TapeEngine, entry: Entry) -> str:
    kind, layer = OPERATIONS[entry["op"]], entry["layer"]
    wrong = kind.wrong(entry)
    if "layer" in wrong or kind.misfit(engine, entry):
        return f"there is no layer {shown(layer)}"
    return f"{wrong[0]} is {shown(entry[wrong[0]])}, not True or False" if wrong else ""
