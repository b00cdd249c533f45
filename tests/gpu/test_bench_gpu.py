"""The harness on this machine's GPU: against the profiler's kernel times, cold against warm, graphs, events."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest
import torch

from edl_labs.bench import compare, measure
from edl_labs.clock import AcceleratorClock, EventClock, HostClock

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


@pytest.fixture
def matrix():
    return torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)


def test_the_time_of_a_matmul_is_that_of_its_kernel_and_the_gap_before_the_next(matrix):
    from harness_rows import kernel_s

    pairs = [(measure(lambda: matrix @ matrix).median_s, kernel_s(lambda: matrix @ matrix)) for _ in range(5)]
    measured_s, alone_s = map(median, zip(*pairs, strict=True))

    assert 0.98 * alone_s <= measured_s <= 1.02 * alone_s + 1e-6  # a H200 leaves 0.4 to 1.4 µs between two kernels


def test_events_and_the_drained_host_clock_agree(matrix):
    c = [measure(lambda: matrix @ matrix, clock=clock).median_s for clock in (EventClock.of(), AcceleratorClock())]

    assert c[0] == pytest.approx(c[1], rel=0.03)


def test_the_clock_of_the_device_in_use_is_found(matrix):
    assert "cuda" in measure(lambda: matrix + 1).clock.name


def test_a_host_clock_beside_the_device_gives_its_time_or_a_warning(matrix):
    by_host = measure(lambda: matrix @ matrix, clock=HostClock())
    true_s = measure(lambda: matrix @ matrix, clock=EventClock.of()).median_s

    assert by_host.median_s == pytest.approx(true_s, rel=0.1) or "no_sync" in [w.kind for w in by_host.warnings]


def test_reading_a_value_and_synchronising_are_told(matrix):
    def waits():
        y = matrix @ matrix
        torch.cuda.synchronize()
        return y

    assert "sync_each_call" in [w.kind for w in measure(waits).warnings]
    assert "item_inside" in [w.kind for w in measure(lambda: (matrix @ matrix).sum().item()).warnings]


def test_a_cold_cache_is_slower_for_what_fits_in_it():
    x = torch.randn(1 << 20, device="cuda")

    assert measure(lambda: x + 1, cold=True).median_s > 1.05 * measure(lambda: x + 1).median_s


def test_a_graph_takes_the_launches_of_small_kernels_out():
    x = torch.randn(64, device="cuda")

    def many():
        y = x
        for _ in range(20):
            y = y + 1
        return y

    assert measure(many, graph=True).median_s < measure(many).median_s


def test_identical_work_is_not_called_different(matrix):
    assert compare({"a": lambda: matrix @ matrix, "b": lambda: matrix @ matrix}).verdict in ("same", "inconclusive")
