"""Shares of wall time: checked against sums that can be done by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import TracedGPU, TraceError, antipatterns, attribute, most_to_gain, read_trace, what_if
from edl_labs.virtual import VirtualGPU
from tests.unit.trace.loops import QUIET, traced

LAUNCH_S = 5e-6


@pytest.mark.parametrize(
    "causes",
    [
        {},
        {"kernel_s": 1e-6},
        {"kernel_s": 1e-5, "reads": 10},
        {"data_s": 3e-3},
        {"host_s": 3e-3},
        {"data_s": 1e-3, "reads": 4},
    ],
)
def test_shares_sum_to_one(causes: dict[str, float]) -> None:
    found = attribute(traced(**causes))

    assert pytest.approx(1.0) == sum(found.shares.values())
    assert all(pytest.approx(step.wall_s) == sum(step.seconds.values()) for step in found.steps)


def test_short_kernels_are_bound_by_their_launches() -> None:
    shares = attribute(traced(kernel_s=1e-6), skip=1).shares

    assert {"compute": 1 / 5, "launch": 4 / 5} == pytest.approx({name: s for name, s in shares.items() if s})


def test_long_kernels_hide_their_launches() -> None:
    assert pytest.approx(1.0) == attribute(traced(kernel_s=1e-4), skip=1).shares["compute"]


def test_waiting_on_a_busy_device_is_compute() -> None:
    assert 0.98 < attribute(traced(kernels=10, kernel_s=1e-3, reads=1), skip=1).shares["compute"]


def test_launches_behind_a_read_are_charged_to_the_read() -> None:
    found = attribute(traced(kernel_s=1e-5, reads=20), skip=1)

    # By kernel: 10 µs of computing, 1.5 µs of copying the number, 5 µs until the next launch has arrived.
    assert pytest.approx(6.5 / 16.5, abs=0.005) == found.shares["sync"]
    assert 0.01 > found.shares["launch"]
    assert "item" in found.blames["sync"][0].what


def test_waiting_for_data_goes_to_the_data() -> None:
    found = attribute(traced(data_s=3e-3), skip=1)

    assert pytest.approx(1 - 20 * 50e-6 / 3.1e-3, abs=0.01) == found.shares["data"]
    assert "loops.py" in found.blames["data"][0].line


def test_a_read_beside_slow_data_does_not_take_the_blame() -> None:
    assert "data" == attribute(traced(data_s=3e-3, reads=2), skip=1).dominant


def test_the_line_of_the_read_is_named() -> None:
    line = attribute(traced(kernel_s=1e-5, reads=20), skip=1).blames["sync"][0].line

    assert line.startswith("loops.py(")
    assert line.endswith(": run")


def test_allocation_and_copies_have_shares_of_their_own() -> None:
    gpu = TracedGPU("A100-80GB", **QUIET)
    source, target = gpu.host_empty(8_000_000), gpu.empty(8_000_000)
    for _ in range(5):
        with gpu.step():
            gpu.copy(target, source)
            gpu.call("cudaMalloc", 5e-4)
            gpu.launch("gemm", duration_s=5e-4)
    shares = attribute(gpu.trace(), skip=1).shares

    # 1 ms of staged copy, 0.5 ms each of allocation and computing.
    assert {"copy": 0.5, "alloc": 0.25, "compute": 0.25} == pytest.approx(
        {name: shares[name] for name in ("copy", "alloc", "compute")}, abs=0.02
    )


def test_steps_that_differ_give_an_interval() -> None:
    gpu = TracedGPU("A100-80GB", **QUIET)
    for number in range(12):
        with gpu.step():
            gpu.data_wait(1e-3 * (1 + number % 3))
            gpu.launch("gemm", duration_s=1e-3)
    found = attribute(gpu.trace(), skip=1)
    low, high = found.intervals["data"]

    assert low < found.shares["data"] < high
    assert high - low < 0.3


def test_skipping_every_step_is_refused() -> None:
    with pytest.raises(TraceError, match="no step is left"):
        attribute(traced(), skip=6)


def test_the_attribution_is_plain_data_with_a_schema() -> None:
    assert 1 == attribute(traced()).to_json()["schema"]


def test_every_question_takes_a_file_where_it_takes_a_trace(tmp_path: Path) -> None:
    gpu = VirtualGPU()
    for _ in range(4):
        gpu.launch("k", duration_s=1e-4)
        gpu.synchronize()
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(gpu.timeline.to_chrome_trace()), encoding="utf-8")
    trace = read_trace(path)

    assert attribute(trace).shares == attribute(path).shares == attribute(str(path)).shares
    assert what_if(trace, "sync") == what_if(path, "sync")
    assert most_to_gain(trace) == most_to_gain(path)
    assert antipatterns(trace) == antipatterns(path)
    with pytest.raises(UsageError, match=r"skip must be 0 or more, got -1"):
        attribute(trace, skip=-1)


def test_generated_code_on_a_cpu_computes() -> None:
    def event(category: str, name: str, start_us: float, taken_us: float) -> dict[str, object]:
        return {"ph": "X", "cat": category, "pid": 1, "tid": 1, "name": name, "ts": start_us, "dur": taken_us}

    events = []
    for step in range(4):
        begin = 1000.0 * step
        events += [
            event("user_annotation", f"ProfilerStep#{step}", begin, 1000),
            event("user_annotation", "## Call CompiledFxGraph f2r6nx7x47re ##", begin + 100, 800),
            event("cpu_op", "aten::mm", begin + 200, 300),
        ]
    shares = attribute(read_trace(events), skip=1).shares

    assert (pytest.approx(0.8), pytest.approx(0.2)) == (shares["compute"], shares["host"])
