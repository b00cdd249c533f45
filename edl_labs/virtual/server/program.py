"""The operations of a served load, one entry of `OPERATIONS` each: the decisions of a policy."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.program import INDEX, READING, Entry, OperationKind, Program, anything

_OF_REQUEST = {"request": INDEX}


def _step(server: Any, entry: Entry) -> float:
    server.step()
    return float(server.now_s)


def _wait(server: Any, entry: Entry) -> float:
    server.wait(entry["until_s"])
    return float(server.now_s)


OPERATIONS: dict[str, OperationKind] = {
    "admit": OperationKind(_OF_REQUEST, lambda server, e: server.admit(e["request"])),
    "allocate": OperationKind(
        {**_OF_REQUEST, "blocks": anything}, lambda server, e: server.allocate(e["request"], e["blocks"])
    ),
    "free": OperationKind(_OF_REQUEST, lambda server, e: server.free(e["request"])),
    "preempt": OperationKind(_OF_REQUEST, lambda server, e: server.preempt(e["request"])),
    "step": OperationKind(READING, _step),
    "wait": OperationKind({"until_s": anything, **READING}, _wait),
}
PROGRAM = Program("VirtualServer", "server.program", OPERATIONS)
