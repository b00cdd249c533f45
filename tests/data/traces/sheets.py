"""A sheet on which a loop is written down event by event, and the forms in which profilers keep it. Times in µs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.unit.trace.trace_files import SCHEMA


@dataclass(frozen=True)
class Backend:
    """What a profiler calls the calls and copies of one kind of device."""

    name: str
    runtime: str
    launch: str
    graph: str
    copy: str
    sync: str
    alloc: str
    to_host: str
    to_device: str
    collective: str


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            "cuda", "cuda_runtime", "cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaDeviceSynchronize",
            "cudaMalloc", "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        ),
        Backend(
            "rocm", "cuda_runtime", "hipLaunchKernel", "hipGraphLaunch", "hipMemcpyWithStream", "hipDeviceSynchronize",
            "hipMalloc", "Memcpy DtoH (Device -> Host)", "Memcpy HtoD (Host -> Device)",
            "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>) [clone .kd]",
        ),
        Backend(
            "xpu", "xpu_runtime", "urEnqueueKernelLaunch", "zeCommandListImmediateAppendLaunch", "urEnqueueUSMMemcpy",
            "urQueueFinish", "urUSMDeviceAlloc", "Memcpy D2M", "Memcpy M2D", "oneccl_allreduce_large_kernel",
        ),
        Backend(
            "nsys", "cuda_api", "cudaLaunchKernel_v7000", "cudaGraphLaunch_v10000", "cudaMemcpyAsync_v3020",
            "cudaDeviceSynchronize_v3020", "cudaMalloc_v3020", "2 2 0", "1 0 2",
            "ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
        ),
    )
}  # fmt: skip
CPU = Backend("cpu", *[""] * 9)


@dataclass
class Sheet:
    """Events of one process; `at` shifts what is written next."""

    backend: Backend
    at: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    links: int = 0

    def host(self, category: str, name: str, start: float, duration: float, **args: Any) -> None:
        """An event of the main thread."""
        self._add(category, name, start, duration, {"pid": 1, "tid": 1}, args)

    def step(self, number: int, duration: float) -> None:
        """A step's mark at the present place."""
        self.host("user_annotation", f"ProfilerStep#{number}", 0.0, duration)

    def call(self, name: str, start: float, duration: float) -> int:
        """A runtime call; gives its link."""
        self.links += 1
        self.host(self.backend.runtime, name, start, duration, correlation=self.links)
        return self.links

    def work(
        self, name: str, start: float, duration: float, *, link: int, stream: int = 7, device: int = 0, **args: Any
    ) -> None:
        """A kernel."""
        place = {"pid": f"GPU {device}", "tid": stream}
        self._add(
            "kernel", name, start, duration, place, {"correlation": link, "stream": stream, "device": device, **args}
        )

    def copied(self, name: str, start: float, duration: float, *, link: int, moved_bytes: int) -> None:
        """The device's part of a copy."""
        args = {"correlation": link, "stream": 7, "device": 0, "bytes": moved_bytes}
        self._add("gpu_memcpy", name, start, duration, {"pid": "GPU 0", "tid": 7}, args)

    def launch(self, kernel: str, start: float, duration: float, begins: float, lasts: float, **args: Any) -> None:
        """A launch and its kernel."""
        self.work(kernel, begins, lasts, link=self.call(self.backend.launch, start, duration), **args)

    def _add(
        self, category: str, name: str, start: float, duration: float, place: dict[str, Any], args: dict[str, Any]
    ) -> None:
        event = {"ph": "X", "cat": category, "name": name, "ts": self.at + start, "dur": duration}
        self.events.append({**event, **place, "args": args})

    def write(self, folder: Path, name: str) -> Path:
        """The sheet as a file of its profiler."""
        if self.backend.name == "nsys":
            return _nsys(self.events, folder / f"{name}.sqlite")
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": self.events}), encoding="utf-8")
        return path


def steps(
    sheet: Sheet, count: int, period: float, write: Callable[[Sheet], None], *, marked: float | None = None
) -> Sheet:
    """So many equal steps, each begun `period` after the one before; a mark lasts as long unless `marked` says less."""
    for number in range(count):
        sheet.step(number, period if marked is None else marked)
        write(sheet)
        sheet.at += period
    return sheet


def _nsys(events: list[dict[str, Any]], path: Path) -> Path:
    base = sqlite3.connect(path)
    base.executescript(SCHEMA)
    names: dict[str, int] = {}
    for event in events:
        args, start = event["args"], round(event["ts"] * 1000)
        end, link, name = start + round(event["dur"] * 1000), args.get("correlation"), event["name"]
        number = names.setdefault(name, len(names))
        device = (start, end, args.get("device"), args.get("stream"), link, 1 << 24)
        if event["cat"] == "kernel":
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?,?)", (*device, number, number))
        elif event["cat"] == "gpu_memcpy":
            row = (*device, args["bytes"], *map(int, name.split()))
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        elif event["cat"] == "cuda_api":
            row = (start, end, 1 << 24 | 1, link, number, 0)
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?)", row)
        elif event["cat"] == "user_annotation":
            base.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,NULL)", (start, end, name, 1 << 24 | 1))
    base.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in names.items()])
    base.commit()
    base.close()
    return path
