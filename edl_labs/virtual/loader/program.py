"""The operations of a recorded loading program, one entry of `OPERATIONS` each: its fields and its replay.

A VirtualWorkers checks what its calls are given, so that most fields may hold anything here.
"""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.program import (
    INDEX,
    MAX_REPLAYED,
    READING,
    Check,
    Entry,
    OperationKind,
    Program,
    anything,
    flag,
    from_case,
)


def _fields(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, anything)


def _fixed(*names: str) -> dict[str, Check]:
    return from_case(_fields(*names))


def _next(vw: Any, entry: Entry) -> Any:
    vw.engine.loaders[entry["loader"]]
    return vw._next(entry["loader"])


def _pages(nbytes: object, vw: Any) -> int:
    return nbytes // vw.machine.page_bytes // 1000 if type(nbytes) is int and 0 < nbytes < 1 << 60 else 0


def _step_charge(vw: Any, entry: Entry) -> int:
    return 1 + abs(entry["threads"]) // 8 if type(entry["threads"]) is int else 1


def _loader_charge(vw: Any, entry: Entry) -> int:
    total = 1
    for batch in entry["batches"] if type(entry["batches"]) is list else ():
        total += 1 + (len(batch) if type(batch) is list else 0)
        reads = [action for action in batch if _is_read(action)] if type(batch) is list else []
        total += sum(_pages(action[3], vw) for action in reads)
        if total > MAX_REPLAYED:
            break
    return total


def _is_read(action: object) -> bool:
    return type(action) is list and len(action) == 4


OPERATIONS: dict[str, OperationKind] = {
    "file": OperationKind(
        {**_fields("name"), **_fixed("bytes", "disk")},
        lambda vw, e: vw.file(e["bytes"], name=e["name"], disk=e["disk"]),
    ),
    "open": OperationKind(_fields("file"), lambda vw, e: vw.open(e["file"])),
    "read": OperationKind(
        _fixed("file", "offset", "bytes"),
        lambda vw, e: vw.read(e["file"], offset=e["offset"], nbytes=e["bytes"]),
        charge=lambda vw, e: 1 + _pages(e["bytes"], vw),
    ),
    "work": OperationKind(
        {**_fields("stage"), **_fixed("duration_s")}, lambda vw, e: vw.work(e["stage"], e["duration_s"])
    ),
    "loader": OperationKind(
        {**_fields("workers", "prefetch"), **_fixed("batches"), "in_order": flag},
        lambda vw, e: vw.loader(e["batches"], workers=e["workers"], prefetch=e["prefetch"], in_order=e["in_order"]),
        charge=_loader_charge,
    ),
    "next": OperationKind({"loader": INDEX, **READING}, _next),
    "step": OperationKind(
        {**_fixed("duration_s", "threads"), "blocking": flag},
        lambda vw, e: vw.step(e["duration_s"], threads=e["threads"], blocking=e["blocking"]),
        charge=_step_charge,
    ),
    "synchronize": OperationKind({}, lambda vw, e: vw.synchronize()),
    "drop_cache": OperationKind({}, lambda vw, e: vw.drop_cache()),
    "resident": OperationKind({**_fields("file"), **READING}, lambda vw, e: vw.resident_bytes(e["file"])),
    "now": OperationKind(READING, lambda vw, e: vw.now_s()),
}
PROGRAM = Program(
    "VirtualWorkers",
    "vw.program",
    OPERATIONS,
    limit="the length of a replay is limited; reading a thousand pages counts as one operation",
)
