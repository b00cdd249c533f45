"""The operations of an allocator's program, one entry of `OPERATIONS` each: their fields, and what the engine does."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory.allocator.engine import AllocatorEngine
from edl_labs.virtual.program import INDEX, Entry, OperationKind, Program, whole
from edl_labs.virtual.quantities import MAX_BYTES

MOST_STREAMS = 1 << 62  # a stream's number may be its address, as in torch's snapshots
_NUMBER, _STREAM = {"number": INDEX}, {"stream": whole(MOST_STREAMS)}


def _malloc(engine: AllocatorEngine, entry: Entry) -> bool:
    if entry["number"] in engine.blocks:
        raise VirtualMemoryError(
            "two allocations have the same number",
            why="the first of them is still in use",
            next="free the first one before you use its number again",
        )
    return engine.malloc(entry["number"], entry["bytes"], entry["stream"], entry.get("segment_at"))


def _play(engine: AllocatorEngine, entry: Entry) -> Any:
    return getattr(engine, entry["op"])(*(entry[name] for name in OPERATIONS[entry["op"]].required))


OPERATIONS: dict[str, OperationKind] = {
    # Whether it fits is None where nobody said so, as in torch's snapshots.
    "malloc": OperationKind(
        {**_NUMBER, "bytes": whole(MAX_BYTES, 1), **_STREAM, "value": lambda fits: fits is None or type(fits) is bool},
        _malloc,
        optional={"segment_at": whole(1 << 63)},
        compares=lambda entry: entry["value"] is not None,
    ),
    "free": OperationKind(_NUMBER, _play),
    "record_stream": OperationKind({**_NUMBER, **_STREAM}, _play),
    "finish": OperationKind(_STREAM, _play),
    "empty_cache": OperationKind({}, _play),
}
PROGRAM = Program("VirtualAllocator", "allocator.program", OPERATIONS)
