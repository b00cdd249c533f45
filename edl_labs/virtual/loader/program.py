"""The operations of a recorded loading program, one entry of `OPERATIONS` each: its fields and its replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from edl_labs.virtual.errors import shown
from edl_labs.virtual.loader.machine import LoaderMachine
from edl_labs.virtual.program import MAX_REPLAYED, Entry, ProgramForm


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


_FORM = ProgramForm(
    "VirtualWorkers",
    "vw.program",
    OPERATIONS,
    limit="a replay has a limit, and reading a thousand pages counts as one operation",
)
done_again = _FORM.done_again


def entries(
    program: object, machine: LoaderMachine, *, max_operations: int = MAX_REPLAYED
) -> Iterator[tuple[int, Entry]]:
    """The operations of a program with their numbers, each checked in its turn; ReplayError for anything else."""
    return _FORM.entries(program, _checked, lambda entry: _charge(entry, machine), at_most=max_operations)


def _checked(index: int, entry: Any) -> Entry:
    name = _FORM.name_of(index, entry)
    fields = OPERATIONS[name].fields
    for extra in entry:
        if type(extra) is not str or extra not in ("op", *fields):
            raise _FORM.malformed(index, f"is a {name} with a field {shown(extra)}, which it does not have")
    for missing in fields:
        if missing not in entry:
            raise _FORM.malformed(index, f"is a {name} without its {missing}")
    for flag in ("in_order", "blocking"):
        if flag in entry and type(entry[flag]) is not bool:
            raise _FORM.malformed(index, f"is a {name} whose {flag} cannot be {shown(entry[flag])}")
    return cast(Entry, entry)


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
