"""The operations of a recorded loading program, one entry of `OPERATIONS` each: its fields and its replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from edl_labs.virtual.errors import ReplayError, shown
from edl_labs.virtual.loader.loader_machine import LoaderMachine

# A program of this many operations replays in seconds, which a judge waits for.
MAX_REPLAYED = 300_000
Entry = dict[str, Any]


@dataclass(frozen=True)
class LoadingKind:
    """One kind of operation: the fields that it has, and how a VirtualWorkers does it again, with what it returns."""

    fields: tuple[str, ...]
    play: Callable[[Any, Entry], Any]


def _next(vw: Any, entry: Entry) -> Any:
    index = entry["loader"]
    if type(index) is not int or index < 0:
        raise LookupError
    vw.engine.loaders[index]
    return vw._next(index)


OPERATIONS: dict[str, LoadingKind] = {
    "file": LoadingKind(("name", "bytes", "disk"), lambda vw, e: vw.file(e["bytes"], name=e["name"], disk=e["disk"])),
    "open": LoadingKind(("file",), lambda vw, e: vw.open(e["file"])),
    "read": LoadingKind(
        ("file", "offset", "bytes"), lambda vw, e: vw.read(e["file"], offset=e["offset"], nbytes=e["bytes"])
    ),
    "work": LoadingKind(("stage", "duration_s"), lambda vw, e: vw.work(e["stage"], e["duration_s"])),
    "loader": LoadingKind(
        ("workers", "prefetch", "in_order", "batches"),
        lambda vw, e: vw.loader(e["batches"], workers=e["workers"], prefetch=e["prefetch"], in_order=e["in_order"]),
    ),
    "next": LoadingKind(("loader", "value"), _next),
    "step": LoadingKind(
        ("duration_s", "threads", "blocking"),
        lambda vw, e: vw.step(e["duration_s"], threads=e["threads"], blocking=e["blocking"]),
    ),
    "synchronize": LoadingKind((), lambda vw, e: vw.synchronize()),
    "drop_cache": LoadingKind((), lambda vw, e: vw.drop_cache()),
    "resident": LoadingKind(("file", "value"), lambda vw, e: vw.resident_bytes(e["file"])),
    "now": LoadingKind(("value",), lambda vw, e: vw.now_s()),
}


def entries(
    program: object, machine: LoaderMachine, *, max_operations: int = MAX_REPLAYED
) -> Iterator[tuple[int, Entry]]:
    """The operations of a program with their numbers, each checked in its turn; ReplayError for anything else."""
    if type(program) is not list:
        raise ReplayError(
            f"a program is a list of operations, not a {type(program).__name__}",
            why="it was not recorded by a VirtualWorkers",
            next="return vw.program",
        )
    left = max_operations
    for index, raw in enumerate(program):
        entry = _checked(index, raw)
        left -= _charge(entry, machine)
        if left < 0:
            raise ReplayError(
                f"the program has more than {max_operations:,} operations",
                why="a replay has a limit, and reading a thousand pages counts as one operation",
                next="measure with fewer calls",
            )
        yield index, entry


def malformed(index: int, problem: str) -> ReplayError:
    """The error for an entry that is not an operation."""
    return ReplayError(
        f"operation {index} of the program {problem}",
        why="only what a VirtualWorkers recorded can be replayed",
        next="return vw.program as it is, without editing it",
    )


def _checked(index: int, entry: object) -> Entry:
    if type(entry) is not dict:
        raise malformed(index, f"is {shown(entry)}, not a dict with its fields")
    name = entry.get("op")
    if type(name) is not str or name not in OPERATIONS:
        raise malformed(index, f"has the name {shown(name)}, which no operation has")
    wanted = {"op", *OPERATIONS[name].fields}
    for extra in entry:
        if type(extra) is not str or extra not in wanted:
            raise malformed(index, f"is a {name} with a field {shown(extra)}, which it does not have")
    for missing in OPERATIONS[name].fields:
        if missing not in entry:
            raise malformed(index, f"is a {name} without its {missing}")
    for flag in ("in_order", "blocking"):
        if flag in entry and type(entry[flag]) is not bool:
            raise malformed(index, f"is a {name} whose {flag} cannot be {shown(entry[flag])}")
    return entry


def _charge(entry: Entry, machine: LoaderMachine) -> int:
    if entry["op"] == "read":
        return 1 + _pages(entry["bytes"], machine)
    if entry["op"] == "step" and type(entry["threads"]) is int:
        return 1 + abs(entry["threads"]) // 8
    if entry["op"] != "loader" or type(entry["batches"]) is not list:
        return 1
    total = 1
    for batch in entry["batches"]:
        total += 1 + (len(batch) if type(batch) is list else 0)
        reads = [action for action in batch if _is_read(action)] if type(batch) is list else []
        total += sum(_pages(action[3], machine) for action in reads)
        if total > MAX_REPLAYED:
            break
    return total


def _is_read(action: object) -> bool:
    return type(action) is list and len(action) == 4


def _pages(nbytes: object, machine: LoaderMachine) -> int:
    return nbytes // machine.page_bytes // 1000 if type(nbytes) is int and 0 < nbytes < 1 << 60 else 0
