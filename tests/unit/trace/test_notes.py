"""Nothing is dropped in silence: what a trace lacks, or holds unread, stands in the first lines of its report."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from edl_labs.trace import attribute, diagnose, read_trace
from edl_labs.trace.event_kinds import kind_of
from tests.unit.trace.loops import run, traced
from tests.unit.trace.trace_files import launched, nsys

STEP = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "dur": 1000.0}


def steps(*within: dict[str, Any], count: int = 3) -> list[dict[str, Any]]:
    """Steps of 1 ms with these events in each."""
    marks = [{**STEP, "name": f"ProfilerStep#{number}", "ts": 1000.0 * number} for number in range(count)]
    return [
        *marks,
        *(
            {**event, "ts": event["ts"] + 1000.0 * number, "args": _own(event.get("args", {}), number)}
            for number in range(count)
            for event in within
        ),
    ]


def _own(args: dict[str, Any], step: int) -> dict[str, Any]:
    return {**args, "correlation": args["correlation"] + 100 * step} if "correlation" in args else args


def event(category: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    row = {"pid": 0, "tid": 7} if "kernel" in category or "ccp" in category or "op" == category[-2:] else {}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args, **row}


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("xpu_runtime", "urEnqueueKernelLaunch", "launch"),
        ("xpu_runtime", "urEnqueueUSMMemcpy", "copy call"),
        ("xpu_runtime", "urQueueFinish", "sync"),
        ("xpu_runtime", "urEventWait", "sync"),
        ("xpu_runtime", "urEnqueueEventsWait", "runtime"),
        ("xpu_driver", "zeCommandListAppendLaunchKernel", "launch"),
        ("xpu_driver", "zeCommandListAppendMemoryCopy", "copy call"),
        ("xpu_driver", "zeEventHostSynchronize", "sync"),
        ("xpu_runtime", "urUSMDeviceAlloc", "alloc"),
        ("xpu_runtime", "urUSMFree", "alloc"),
        ("mtia_runtime", "runFunction - job_prep_and_submit_for_execution", "launch"),
        ("mtia_runtime", "enqueueCommand memcpyHtoDAsync", "copy call"),
        ("mtia_runtime", "synchronizeStream", "sync"),
        ("mtia_ccp_events", "add-dtype_Float", "kernel"),
        ("mtia_ccp_events", "dma_request", "copy"),
        ("mtia_ccp_events", "event_wait", None),
        ("privateuse1_runtime", "aclrtLaunchKernel", "launch"),
        ("privateuse1_driver", "aclrtSynchronizeStream", "sync"),
        ("privateuse1_runtime", "musaMemcpyAsync", "copy call"),
        ("npu_kernel", "MatMulV2", "kernel"),
        ("hpu_op", "gemm", "kernel"),
        ("collective_comm", "anything", "communication"),
        ("hip_runtime", "hipMemcpyWithStream", "copy call"),
        ("cuda_runtime", "cudaLaunchHostFunc", "runtime"),
        ("cuda_runtime", "cudaFreeAsync_v11020", "alloc"),
        ("cuda_runtime", "cudaStreamWaitEvent", "runtime"),
        ("cuda_driver", "cuGraphLaunch", "launch"),
    ],
)
def test_calls_and_work_of_other_backends_are_read(category: str, name: str, kind: str | None) -> None:
    assert kind == kind_of(category, name)


def test_the_same_loop_reads_the_same_on_another_backend() -> None:
    def loop(runtime: str, launch: str) -> list[dict[str, Any]]:
        return steps(
            event("cpu_op", "aten::mm", 10, 40),
            event(runtime, launch, 15, 30, correlation=1),
            event("kernel", "gemm", 60, 500, correlation=1, device=0, stream=0),
        )

    xpu, cuda = loop("xpu_runtime", "urEnqueueKernelLaunch"), loop("cuda_runtime", "cudaLaunchKernel")

    assert attribute(read_trace(cuda)).shares == attribute(read_trace(xpu)).shares


def test_work_of_an_accelerator_is_computing() -> None:
    events = steps(
        event("mtia_runtime", "launch", 10, 20, correlation=1),
        event("mtia_ccp_events", "gemm", 50, 900, correlation=1),
    )

    assert 0.85 < attribute(read_trace(events)).shares["compute"]


def test_an_unknown_category_is_named_with_its_time() -> None:
    events = steps(event("cpu_op", "aten::mm", 10, 300), event("warp_drive", "jump", 20, 200), count=4)
    found = diagnose(read_trace(events))
    note = found.text().splitlines()[1]

    assert note.startswith('note: 4 events not read: category "warp_drive" (800 µs in total)')
    assert found == type(found).from_json(found.to_json())


def test_what_is_drawn_for_orientation_needs_no_note() -> None:
    events = steps(event("cpu_op", "aten::mm", 10, 300), event("overhead", "Buffer Flush", 20, 200))

    assert () == diagnose(read_trace(events)).notes


def test_times_that_cannot_be_read_and_ends_that_are_missing_are_counted() -> None:
    begun = {"ph": "B", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5}
    ended, sampled = {"ph": "E", "pid": 1, "tid": 2, "ts": 5}, {"ph": "P", "name": "sample", "ts": 5}
    events = steps(event("cpu_op", "aten::mm", 10, 300), {**event("cpu_op", "aten::mm", 10, 300), "dur": "long"})
    notes = "\n".join(diagnose(read_trace([*events, begun, ended, sampled])).notes)

    assert "3 events not read: events without a readable time" in notes
    for label in ("events without an end", "events without a beginning", "asynchronous or sampled events"):
        assert f"1 event not read: {label}" in notes


def test_calls_without_device_events_give_no_verdict() -> None:
    launches = [event("cuda_runtime", "cudaLaunchKernel", 100 + 50 * n, 20, correlation=n) for n in range(4)]
    found = diagnose(read_trace(steps(*launches, event("cpu_op", "aten::mm", 100, 90))))

    assert found.verdict == "host only: device events are missing"
    assert "the trace contains no device event" in found.text().splitlines()[1]
    assert () == found.gains
    assert 0.0 == found.shares["compute"]


def test_copies_alone_are_no_device_either() -> None:
    calls = [event("cuda_runtime", "cudaLaunchKernel", 100 + 50 * n, 20, correlation=n) for n in range(4)]
    copy = event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 700, 4, correlation=9, bytes=8)
    found = diagnose(read_trace(steps(*calls, event("cuda_runtime", "cudaMemcpyAsync", 400, 305, correlation=9), copy)))

    assert "host only: device events are missing" == found.verdict
    assert "contains no kernel" in found.notes[0]


def test_a_few_lost_device_events_are_no_news_and_many_are() -> None:
    few = [one for number in range(10) for one in launched("gemm", number, at=100.0 * number)]

    assert () == diagnose(read_trace(few[:-1])).notes
    assert "5 of 10 calls" in diagnose(read_trace([e for i, e in enumerate(few) if i % 4 != 3])).notes[0]


def test_several_devices_of_one_process_are_named_with_their_time() -> None:
    events = [one for number in range(4) for one in launched("gemm", number, at=200.0 * number, device=number % 2)]
    (note,) = diagnose(read_trace(events)).notes

    assert "2 devices" in note
    assert "device 0 15 %, device 1 15 %" in note


def test_one_rank_of_several_is_named() -> None:
    tree = {"traceEvents": launched("gemm", 1), "distributedInfo": {"rank": 3, "world_size": 8}}

    assert diagnose(read_trace(tree)).notes[0].startswith("this is rank 3 of 8")


def test_a_virtual_gpu_s_trace_needs_no_note() -> None:
    assert () == diagnose(traced(reads=5)).notes


def export(folder: Path, *statements: str) -> Path:
    path = nsys(run(kernel_s=10e-6, reads=1).trace(), folder / "run.sqlite")
    base = sqlite3.connect(path)
    for statement in statements:
        base.execute(statement)
    base.commit()
    base.close()
    return path


def copies(path: Path) -> set[str]:
    return {copy.name for copy in read_trace(path).events("copy")}


def test_kinds_of_memory_are_those_of_the_file(tmp_path: Path) -> None:
    path = export(
        tmp_path,
        "CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT)",
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable')",
        "INSERT INTO ENUM_CUDA_MEM_KIND VALUES (2, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed')",
        "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER, name TEXT, label TEXT)",
        "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (2, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device')",
    )

    assert copies(path) == {"Memcpy HtoD (Managed -> Pageable)"}


def test_without_an_enumeration_kinds_are_those_of_nsys(tmp_path: Path) -> None:
    assert copies(export(tmp_path)) == {"Memcpy DtoH (Device -> Pinned)"}


@pytest.mark.parametrize("suffix", ["2", "_V2", "_3f2a"])
def test_a_table_whose_name_ends_with_a_number_is_read(tmp_path: Path, suffix: str) -> None:
    old = "CUPTI_ACTIVITY_KIND_KERNEL"
    path = export(tmp_path, f"ALTER TABLE {old} RENAME TO {old}{suffix}")
    plain = nsys(run(kernel_s=10e-6, reads=1).trace(), tmp_path / "plain.sqlite")

    assert len(read_trace(plain).select("kernel")) == len(read_trace(path).select("kernel"))


def test_a_table_that_is_not_read_is_named(tmp_path: Path) -> None:
    path = export(
        tmp_path,
        "CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER)",
        "INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (0, 2000000)",
    )

    assert "1 event not read: table MPI_COLLECTIVES_EVENTS (2 ms in total)" in diagnose(path).notes[0]
