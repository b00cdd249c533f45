"""Traces of a VirtualGPU written as other profilers write them: what is read back must tell the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from edl_labs.trace import Trace, TraceEvent

HOST = {"launch": "cudaLaunchKernel", "copy call": "cudaMemcpyAsync", "sync": "cudaStreamSynchronize"}
SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
  globalTid INTEGER, textId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
"""


def kineto(trace: Trace, *, pid: int, device: int, name: str = "") -> list[dict[str, Any]]:
    """The events of a trace as torch.profiler writes them, of one process and its device; kernels can be renamed."""
    return [_complete(event, pid, device, name) for event in trace.events()]


def _complete(event: TraceEvent, pid: int, device: int, name: str) -> dict[str, Any]:
    made = {
        "ph": "X",
        "ts": event.start_s * 1e6,
        "dur": event.duration_s * 1e6,
        "name": HOST.get(event.kind, event.name),
    }
    args = {"correlation": event.link} if event.link >= 0 else {}
    if event.kind in ("kernel", "copy"):
        word = name or event.name if event.kind == "kernel" else _copy_name(event)
        cat = "kernel" if event.kind == "kernel" else "gpu_memcpy"
        more = {"device": device, "stream": event.stream, "bytes": event.moved_bytes}
        return {**made, "name": word, "cat": cat, "pid": device, "tid": event.stream, "args": {**args, **more}}
    cat = "cuda_runtime" if event.kind in HOST or event.kind == "alloc" else "user_annotation"
    return {**made, "cat": cat, "pid": pid, "tid": pid, "args": args}


def _copy_name(event: TraceEvent) -> str:
    return "Memcpy DtoH (Device -> Pinned)" if event.name == "item" else "Memcpy HtoD (Pageable -> Device)"


def nsys(trace: Trace, path: Path, *, pids: tuple[int, ...] = (4711,)) -> Path:
    """The trace as an export of nsys to SQLite, once for each process, all with the same correlation ids."""
    base = sqlite3.connect(path)
    base.executescript(SCHEMA)
    names: dict[str, int] = {}
    for number, pid in enumerate(pids):
        for event in trace.events():
            _insert(base, event, pid << 24, number, names)
    base.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in names.items()])
    # A mark, which has no end.
    base.execute("INSERT INTO NVTX_EVENTS VALUES (5, NULL, 34, 'a mark', 0, NULL)")
    base.commit()
    base.close()
    return path


def _insert(base: sqlite3.Connection, event: TraceEvent, process: int, device: int, names: dict[str, int]) -> None:
    start, end = round(event.start_s * 1e9), round(event.end_s * 1e9)
    name = names.setdefault(HOST.get(event.kind, event.name), len(names))
    place = (start, end, device, event.stream, event.link, process)
    if event.kind == "kernel":
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)", (*place, name, name))
    elif event.kind == "copy":
        kinds = (2, 2, 1) if event.name == "item" else (1, 0, 2)
        row = (*place, event.moved_bytes, *kinds)
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?,?)", row)
    elif event.kind in HOST or event.kind == "alloc":
        row = (start, end, process + 1, event.link, name, 0)
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?)", row)
    elif event.kind in ("step", "annotation"):
        # Ranges that torch pushes carry their text, those of registered strings a number.
        text, number = (event.name, None) if event.kind == "step" else (None, names.setdefault(event.name, len(names)))
        base.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,?)", (start, end, text, process + 1, number))


def launched(kernel: str, link: int, *, at: float = 0.0, pid: int = 1, device: int = 0, **args: Any) -> list[Any]:
    """A launch of 5 µs at `at`, and 20 µs later its kernel of 50 µs, as torch.profiler writes them."""
    call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid, "ts": at, "dur": 5.0}
    work = {"cat": "kernel", "name": kernel, "pid": f"GPU {device}", "tid": 7, "ts": at + 20, "dur": 50.0}
    return [
        {"ph": "X", **call, "args": {"correlation": link}},
        {"ph": "X", **work, "args": {"correlation": link, "device": device, "stream": 7, **args}},
    ]
