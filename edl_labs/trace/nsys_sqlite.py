"""Traces of Nsight Systems: the tables that `nsys export --type sqlite` writes, as the events of a Chrome trace.

The schema is NVIDIA's "SQLite Export Schema Reference"; tables are there only where something was traced for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from edl_labs.trace.errors import TraceError

MAGIC = b"SQLite format 3\0"
# A process and a thread in one number: 24 bits each, below them the thread (the reference's own formula).
_BITS, _MASK = 24, (1 << 24) - 1
# CUPTI's numbers: CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind.
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_MEMORIES = {1: "Pageable", 2: "Pinned", 3: "Device", 4: "Array", 5: "Managed"}
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


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite; OSError where it cannot be read."""
    with path.open("rb") as raw:
        return raw.read(len(MAGIC)) == MAGIC


def nsys_events(path: Path, take: Callable[[dict[str, Any]], None]) -> None:
    """Hand each range, call, kernel and copy of the file to `take`; TraceError where it is not one of nsys."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            columns = {table: _columns(base, table) for table in _TABLES}
            if not any(columns.values()):
                raise _foreign(path.name, "it has none of the tables of an nsys export")
            names = dict(base.execute("SELECT id, value FROM StringIds")) if _columns(base, "StringIds") else {}
            for table, wanted in _TABLES.items():
                for row in _rows(base, table, wanted, columns[table]):
                    take(_EVENTS[table](row, names))
    except sqlite3.Error as error:
        raise _foreign(path.name, f"SQLite says: {error}") from error


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _rows(base: sqlite3.Connection, table: str, wanted: tuple[str, ...], there: set[str]) -> Iterator[dict[str, Any]]:
    if not {"start", "end"} <= there:
        return
    asked = ", ".join(f'"{name}"' if name in there else "NULL" for name in wanted)
    # A mark of NVTX has no end.
    for row in base.execute(f'SELECT {asked} FROM {table} WHERE "end" IS NOT NULL ORDER BY start'):
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


def _range(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    return {**_event(row, "nvtx", row["text"] or names.get(row["textId"])), **_host(row)}


def _call(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    return {**_event(row, "cuda_api", names.get(row["nameId"])), **_host(row)}


def _kernel(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    return _device(row, "kernel", names.get(row["demangledName"]) or names.get(row["shortName"]))


def _copy(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    ends = " -> ".join(_MEMORIES.get(row[end], "Unknown") for end in ("srcKind", "dstKind"))
    name = f"Memcpy {_COPIES.get(row['copyKind'], 'of another kind')} ({ends})"
    return _device(row, "gpu_memcpy", name, bytes=row["bytes"])


def _fill(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    return _device(row, "gpu_memset", "Memset (Device)", bytes=row["bytes"])


def _graph(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    return _device(row, "kernel", f"CUDA graph {row['graphId']}")


_EVENTS: dict[str, Callable[[dict[str, Any], dict[int, str]], dict[str, Any]]] = {
    "NVTX_EVENTS": _range,
    "CUPTI_ACTIVITY_KIND_RUNTIME": _call,
    "CUPTI_ACTIVITY_KIND_KERNEL": _kernel,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _copy,
    "CUPTI_ACTIVITY_KIND_MEMSET": _fill,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _graph,
}


def _foreign(label: str, why: str) -> TraceError:
    return TraceError(
        f"{label} is not a trace", why=why, next="write it with nsys export --type sqlite from the .nsys-rep file"
    )
