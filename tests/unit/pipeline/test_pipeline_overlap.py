"""Overlap on the VirtualGPU and from traces; the pitfalls of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl_labs.errors import UsageError
from edl_labs.pipeline import (
    device_overlap,
    main_dataset,
    overlap_of_timeline,
    overlap_of_trace,
    private_growth_bytes,
    seed_report,
    shared_memory,
    start_cost_s,
    virtual_overlap,
)
from edl_labs.virtual import replay


def test_prefetching_reaches_the_ideal_and_nothing_else_does() -> None:
    settings: dict[str, Any] = {"batches": 40, "load_s": 2e-3, "step_s": 3e-3, "batch_bytes": 20_000_000}
    ideal_s = 2e-3 + 1e-3 + 3e-3 + 39 * 3e-3  # the first batch passes all three, the others wait for the slowest

    def took_s(**more: Any) -> float:
        return virtual_overlap(**settings, **more).timeline.makespan_s

    assert took_s(prefetch=2) < 1.05 * ideal_s
    assert took_s(prefetch=0) > 1.5 * ideal_s
    assert took_s(prefetch=2, pin_memory=False) > 1.05 * took_s(prefetch=2)


def test_the_loop_has_no_races() -> None:
    for prefetch in (0, 1, 3):
        gpu = virtual_overlap(prefetch=prefetch, batches=12)

        assert () == replay(gpu.program, gpu.machine).races


def test_the_trace_says_what_the_timeline_says(tmp_path: Path) -> None:
    line = virtual_overlap(prefetch=2).timeline
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(line.to_chrome_trace()), encoding="utf-8")
    told, known = overlap_of_trace(path), overlap_of_timeline(line)

    assert known.fraction == pytest.approx(told.fraction, rel=1e-6)
    assert known.copy_s == pytest.approx(told.copy_s, rel=1e-6)
    assert 0.5 < told.fraction <= 1


def test_a_kineto_trace_is_read() -> None:
    def event(category: str, name: str, start: float, took: float) -> dict[str, Any]:
        return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": took}

    events = [
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 100, 10),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 100, 50),
        event("kernel", "gemm", 105, 20),
        event("cpu_op", "aten::mm", 0, 500),
        {"ph": "M", "name": "process_name"},
        {"ph": "X", "cat": "kernel", "name": "broken"},
    ]

    assert 0.5 == pytest.approx(overlap_of_trace({"traceEvents": events}).fraction)


@pytest.mark.parametrize(
    "call",
    [
        lambda: overlap_of_trace({"traceEvents": []}),
        lambda: overlap_of_trace({}),
        lambda: overlap_of_trace("/nowhere/trace.json"),
        lambda: virtual_overlap(prefetch=-1),
        lambda: device_overlap("cpu"),
        lambda: start_cost_s("teleport"),
        lambda: seed_report("dice"),
        lambda: shared_memory(-1, workers=1),
    ],
)
def test_misuse_says_what_why_and_next(call: Any) -> None:
    with pytest.raises(UsageError) as error:
        call()

    assert all((error.value.what, error.value.why, error.value.next))


def test_a_generator_made_in_the_data_set_repeats_itself_in_every_worker() -> None:
    shared, worker = seed_report("shared", workers=2), seed_report("worker", workers=2)

    assert (64, 32, 32) == (shared.drawn, shared.different, shared.repeated_next_epoch)
    assert (64, 64, 0) == (worker.drawn, worker.different, worker.repeated_next_epoch)


def test_a_data_set_in_main_works_with_fork_and_not_with_spawn() -> None:
    fork, spawn = main_dataset("fork"), main_dataset("spawn")

    assert (True, False) == (fork.works, spawn.works)
    assert "Numbers" in spawn.message or "Error" in spawn.message


def test_reading_a_list_takes_memory_that_an_array_does_not() -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("private memory can be read on Linux only")
    as_list = private_growth_bytes([str(n) for n in range(200_000)])
    as_array = private_growth_bytes(np.arange(200_000))

    assert as_list > 5_000_000
    assert as_array < 0.5 * as_list


def test_shared_memory_counts_every_batch_that_can_be_out() -> None:
    assert 100 * (4 * 3 + 1) == shared_memory(100, workers=4, prefetch=2).needed_bytes
    assert 0 == shared_memory(100, workers=0).needed_bytes
    assert shared_memory(10**18, workers=2).fits in (False, None)


@pytest.mark.slow
def test_spawning_a_worker_costs_more_than_forking_one() -> None:
    assert start_cost_s("spawn", imports="numpy") > 2 * start_cost_s("fork", imports="numpy")
