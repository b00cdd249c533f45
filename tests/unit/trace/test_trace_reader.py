"""Reading trace files: every form they come in, and every way they are broken."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl_labs.trace import TraceError, attribute, event_stream, read_trace
from tests.unit.trace.loops import run

KINETO: list[dict[str, Any]] = [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 1, "ts": 1e12, "dur": 100.0},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1e12 + 10, "dur": 30},
    {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1e12 + 12, "dur": 5},
    {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1e12 + 20, "dur": 8,
        "args": {"correlation": 77},
    },
    {
        "ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "pid": 0, "tid": 7, "ts": 1e12 + 40, "dur": 55,
        "args": {"correlation": 77, "stream": 7},
    },
    {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#0", "pid": 0, "tid": 7, "ts": 1e12 + 40, "dur": 55},
    {"ph": "s", "cat": "ac2g", "id": 77, "pid": 1, "tid": 1, "ts": 1e12 + 20},
]  # fmt: skip


def written(folder: Path, events: list[dict[str, Any]] = KINETO, **top: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **top, "traceEvents": events, "traceName": "t"}), encoding="utf-8")
    return path


def test_a_kineto_file_becomes_one_table(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path))

    assert ["step", "operator", "operator", "launch", "kernel"] == [event.kind for event in trace.events()]
    assert "torch.profiler" == trace.origin


def test_kernels_are_joined_to_their_calls(tmp_path: Path) -> None:
    launch, kernel = read_trace(written(tmp_path)).events("launch", "kernel")

    assert (77, 77, 7) == (launch.link, kernel.link, kernel.stream)


def test_self_time_leaves_out_children(tmp_path: Path) -> None:
    totals = read_trace(written(tmp_path)).totals("operator")

    assert pytest.approx(30e-6) == totals["aten::mm"].total_s
    assert pytest.approx(17e-6) == totals["aten::mm"].self_s


@pytest.mark.parametrize("chunk", [7, 64, 1000])
def test_the_size_of_the_chunks_is_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    path = written(tmp_path, deviceProperties=[{"name": "x" * 50}])
    whole = read_trace(path)
    monkeypatch.setattr(event_stream, "_CHUNK", chunk)
    again = read_trace(path)

    assert whole.names == again.names
    assert np.array_equal(whole.start_s, again.start_s)


def test_a_gzipped_file_reads_alike(tmp_path: Path) -> None:
    path = written(tmp_path)
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))

    assert len(read_trace(path)) == len(read_trace(packed))


def test_a_bare_array_may_lack_its_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(KINETO)[:-1], encoding="utf-8")

    assert 5 == len(read_trace(path))


def test_begins_and_ends_make_an_event() -> None:
    events = [
        {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 0},
        {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
    ]

    assert {"outer": 9e-6, "inner": 3e-6} == pytest.approx(
        {event.name: event.duration_s for event in read_trace(events).events()}
    )


def test_nsys_words_are_understood() -> None:
    events = [
        {"ph": "X", "cat": "nvtx", "name": "forward", "pid": "Host 1", "tid": "1", "ts": 0, "dur": 50},
        {
            "ph": "X", "cat": "cuda_api", "name": "cudaLaunchKernel_v7000", "pid": "Host 1", "tid": "1", "ts": 1,
            "dur": 4, "args": {"correlationId": "5"},
        },
        {
            "ph": "X", "cat": "cuda", "name": "[CUDA memcpy Host-to-Device]", "pid": "Device 0", "tid": "7", "ts": 5,
            "dur": 4, "args": {"correlationId": "5"},
        },
    ]  # fmt: skip

    assert ["annotation", "launch", "copy"] == [event.kind for event in read_trace(events).events()]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_file_is_called_truncated(tmp_path: Path, share: float) -> None:
    path = written(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: int(len(text) * share)], encoding="utf-8")

    with pytest.raises(TraceError, match="truncated"):
        read_trace(path)


def test_truncated_compressed_data_are_called_truncated(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": KINETO}).encode())[:-12])

    with pytest.raises(TraceError, match="truncated"):
        read_trace(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"{}",
        b'{"traceEvents": 3}',
        b'{"a": 1}',
        b"[1, 2, 3]",
        b'{"traceEvents": []}',
        b"\xff\xfe\x00",
        b'{"traceEvents": [{"ph": "X", "name": "frame", "cat": "blink", "ts": 1, "dur": 1}]}',
        b'{"traceEvents": [{"ph": "X", "name": 3, "cat": [], "ts": {}, "dur": null}]}',
        b'{"traceEvents": [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "ts": 1e999, "dur": 1}]}',
    ],
)
def test_a_foreign_file_is_refused_with_what_why_next(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)

    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert all((caught.value.what, caught.value.why, caught.value.next))


def test_garbage_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"traceEvents": [' + json.dumps(KINETO[0]) + ", oops, " + json.dumps(KINETO[1]) + "]}")

    with pytest.raises(TraceError):
        read_trace(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot read"):
        read_trace(tmp_path / "nothing.json")


def test_virtual_gpus_own_file_gives_the_same_shares(tmp_path: Path) -> None:
    gpu = run(kernel_s=10e-6, reads=5)
    path = tmp_path / "virtual.json"
    path.write_text(json.dumps(gpu.timeline.to_chrome_trace()), encoding="utf-8")
    foreign, own = attribute(read_trace(path)), attribute(gpu.trace())

    assert "VirtualGPU" == foreign.origin
    assert own.shares["sync"] == pytest.approx(foreign.shares["sync"], abs=0.01)


def marks(*names: str) -> list[dict[str, Any]]:
    """Four steps of 1 ms, marked by each of the names, each within the one before."""
    return [
        {"ph": "X", "cat": "user_annotation", "name": f"{name}{number}", "pid": 1, "tid": 1,
         "ts": 1000.0 * number + 10 * depth, "dur": 1000.0 - 20 * depth}
        for number in range(4) for depth, name in enumerate(names)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "names", [("ProfilerStep#", "iteration "), ("step ", "ProfilerStep#"), ("step ", "iteration ")]
)
def test_a_step_mark_inside_a_step_is_no_step(names: tuple[str, ...]) -> None:
    assert 4 == len(read_trace(marks(*names)).steps)


def kernels(**changes: Any) -> list[dict[str, Any]]:
    """Ten kernels, by turns on the device 0 and 1, each on its stream 7."""
    return [
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": number % 2, "tid": 7, "ts": 10.0 * number, "dur": 5.0,
         "args": {"device": number % 2, "stream": 7}, **changes}
        for number in range(10)
    ]  # fmt: skip


def test_streams_of_two_devices_are_two_lanes() -> None:
    assert 2 == len(set(read_trace(kernels()).stream.tolist()))
