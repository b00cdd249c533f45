"""Traces of Nsight Systems: the tables that `nsys export --type sqlite` writes, as the events of a Chrome trace.

The schema is NVIDIA's "SQLite Export Schema Reference"; tables are there only where something was traced for them.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.trace.chrome_events import ChromeEvents
from edl_labs.trace.errors import TraceError

MAGIC = b"SQLite format 3\0"
# A process and a thread in one number: 24 bits each, below them the thread (the reference's own formula).
_BITS, _MASK = 24, (1 << 24) - 1
# What `nsys export` writes where a file has no enumerations of its own (its tables ENUM_CUDA_MEMCPY_OPER and
# ENUM_CUDA_MEM_KIND). CUPTI counts memory kinds from 1, these from 0.
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"}
_MEMORIES = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
# By table what is asked of it; columns that older versions lack are empty.
_TABLES = {
    "NVTX_EVENTS": ("start", "end", "globalTid", "text", "textId"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "demangledName", "shortName",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcKind", "dstKind",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": ("start", "end", "globalPid", "deviceId", "streamId", "correlationId", "bytes"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "graphId",
    ),
}  # fmt: skip


# Later versions and other writers append a number to a table's name.
_SUFFIX = re.compile(r"_?[vV]?\d+|_[0-9a-fA-F_-]+")
# What these tables hold is in the others as well, or takes no time of the loop.
_UNREAD = re.compile(
    r"(CUPTI_ACTIVITY_KIND_(SYNCHRONIZATION|OVERHEAD)|COMPOSITE_EVENTS|SCHED_EVENTS|PROFILER_OVERHEAD|DIAGNOSTIC"
    r"|ANALYSIS|GPU_METRICS|PROCESSES|ThreadNames|NIC_|NET_|ENUM_|TARGET_INFO|SAMPLING)"
)


@dataclass(frozen=True)
class _Words:
    """What numbers of a file mean: strings, kinds of copies, kinds of memory."""

    strings: Mapping[int, str]
    copies: Mapping[int, str]
    memories: Mapping[int, str]


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite; OSError where it cannot be read."""
    with path.open("rb") as raw:
        return raw.read(len(MAGIC)) == MAGIC


def nsys_events(path: Path, events: ChromeEvents) -> None:
    """Hand each range, call, kernel and copy of the file to `events`, and which tables were not read.

    TraceError where the file is not one of nsys.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            read = {table: form for table in tables if (form := _form(table))}
            if not read:
                shown = ", ".join(tables[:5]) or "none"
                raise _foreign(path.name, f"it does not have the tables of an nsys export; its tables are: {shown}")
            words = _words(base, tables)
            for table, form in read.items():
                for row in _rows(base, table, _TABLES[form]):
                    events.take(_EVENTS[form](row, words))
            for table in tables:
                if table not in read:
                    _note_unread(base, table, events)
    except sqlite3.Error as error:
        raise _foreign(path.name, f"SQLite says: {error}") from error


def _form(table: str) -> str | None:
    """The table of the schema that a table is, whatever number its name ends with."""
    for known in _TABLES:
        if table == known or (table.startswith(known) and _SUFFIX.fullmatch(table, len(known))):
            return known
    return None


def _words(base: sqlite3.Connection, tables: list[str]) -> _Words:
    strings = dict(base.execute("SELECT id, value FROM StringIds")) if "StringIds" in tables else {}
    copies, memories = (_enumeration(base, name, tables) for name in ("ENUM_CUDA_MEMCPY_OPER", "ENUM_CUDA_MEM_KIND"))
    named = {number: _direction(word) for number, word in copies.items()}
    kinds = {number: word.rpartition("_")[2].capitalize() for number, word in memories.items()}
    return _Words(strings, named or _COPIES, kinds or _MEMORIES)


def _enumeration(base: sqlite3.Connection, table: str, tables: list[str]) -> dict[int, str]:
    """By number the name that the file itself gives it; empty where it has no such table."""
    there = _columns(base, table) if table in tables else set()
    column = next((name for name in ("name", "label") if name in there), "")
    return {int(n): str(word) for n, word in base.execute(f"SELECT id, {column} FROM {table}")} if column else {}


def _direction(word: str) -> str:
    """'HtoD' from 'CUDA_MEMCPY_KIND_HTOD', 'CUDA_MEMCPY_KIND_UVM_HTOD' or 'Host-to-Device'."""
    ends = re.search(r"([HDPA])[a-z]*[-_ ]?to[-_ ]?([HDPA])[a-z]*$", word, re.IGNORECASE)
    return f"{ends[1].upper()}to{ends[2].upper()}" if ends else word


def _note_unread(base: sqlite3.Connection, table: str, events: ChromeEvents) -> None:
    """Note the rows of a table that was not read and their seconds, where it has any that take time."""
    if _UNREAD.match(table) or not {"start", "end"} <= _columns(base, table):
        return
    rows, taken = base.execute(f'SELECT COUNT(*), SUM("end" - start) FROM "{table}"').fetchone()
    if rows:
        events.leave_out(f"table {table}", count=int(rows), taken_s=float(taken or 0) / 1e9)


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f'PRAGMA table_info("{table}")')}


def _rows(base: sqlite3.Connection, table: str, wanted: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    there = _columns(base, table)
    if not {"start", "end"} <= there:
        return
    asked = ", ".join(f'"{name}"' if name in there else "NULL" for name in wanted)
    # A mark of NVTX has no end.
    for row in base.execute(f'SELECT {asked} FROM "{table}" WHERE "end" IS NOT NULL ORDER BY start'):
        yield dict(zip(wanted, row, strict=True))


def _event(row: dict[str, Any], category: str, name: Any, **args: Any) -> dict[str, Any]:
    # Nanoseconds from the beginning of the session: microseconds, the format's unit, keep them exact for weeks.
    return {
        "ph": "X",
        "cat": category,
        "name": str(name or "unnamed"),
        "ts": row["start"] / 1000,
        "dur": (row["end"] - row["start"]) / 1000,
        "args": {"correlation": row.get("correlationId"), **args},
    }


def _host(row: dict[str, Any]) -> dict[str, Any]:
    number = row["globalTid"] or 0
    return {"pid": number >> _BITS & _MASK, "tid": number & _MASK}


def _device(row: dict[str, Any], category: str, name: Any, **args: Any) -> dict[str, Any]:
    stream, device = row["streamId"], row["deviceId"]
    event = _event(row, category, name, stream=stream, device=device, **args)
    return {**event, "pid": (row["globalPid"] or 0) >> _BITS & _MASK, "tid": f"GPU {device} stream {stream}"}


def _range(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    return {**_event(row, "nvtx", row["text"] or words.strings.get(row["textId"])), **_host(row)}


def _call(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    return {**_event(row, "cuda_api", words.strings.get(row["nameId"])), **_host(row)}


def _kernel(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    return _device(row, "kernel", words.strings.get(row["demangledName"]) or words.strings.get(row["shortName"]))


def _copy(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    ends = " -> ".join(words.memories.get(row[end], "Unknown") for end in ("srcKind", "dstKind"))
    name = f"Memcpy {words.copies.get(row['copyKind'], 'of another kind')} ({ends})"
    return _device(row, "gpu_memcpy", name, bytes=row["bytes"])


def _fill(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    return _device(row, "gpu_memset", "Memset (Device)", bytes=row["bytes"])


def _graph(row: dict[str, Any], words: _Words) -> dict[str, Any]:
    return _device(row, "kernel", f"CUDA graph {row['graphId']}")


_EVENTS: dict[str, Callable[[dict[str, Any], _Words], dict[str, Any]]] = {
    "NVTX_EVENTS": _range,
    "CUPTI_ACTIVITY_KIND_RUNTIME": _call,
    "CUPTI_ACTIVITY_KIND_KERNEL": _kernel,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _copy,
    "CUPTI_ACTIVITY_KIND_MEMSET": _fill,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _graph,
}


def _foreign(label: str, why: str) -> TraceError:
    return TraceError(
        f"{label} is not a trace",
        why=why,
        next="create the trace from the .nsys-rep file with nsys export --type sqlite",
    )
