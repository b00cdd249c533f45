"""The operations of a step on a tape, one entry of `OPERATIONS` each: their fields, and what the engine does."""

from __future__ import annotations

from edl_labs.virtual.errors import shown
from edl_labs.virtual.memory.tape.engine import TapeEngine
from edl_labs.virtual.program import INDEX, Check, Entry, OperationKind, Program, flag


def _play(engine: TapeEngine, entry: Entry) -> None:
    getattr(engine, entry["op"])(*(entry[name] for name in OPERATIONS[entry["op"]].required))
    engine.index += 1


def _misfit(engine: TapeEngine, entry: Entry) -> str:
    fits = entry["layer"] < len(engine.tape.layers)
    return "" if fits else f"of layer {shown(entry['layer'])}, which does not exist on the tape"


def _of_layer(**more: Check) -> OperationKind:
    """An operation whose fields are the arguments of the engine's method, in their order."""
    return OperationKind({"layer": INDEX, **more}, _play, misfit=_misfit)


OPERATIONS: dict[str, OperationKind] = {
    "forward": _of_layer(keep=flag),
    "recompute": _of_layer(keep=flag),
    "backward": _of_layer(),
    "drop": _of_layer(keep_output=flag),
    "offload": _of_layer(),
    "fetch": _of_layer(),
}
PROGRAM = Program("VirtualTape", "step.program", OPERATIONS)
