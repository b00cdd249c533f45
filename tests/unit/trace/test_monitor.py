"""The always-on mode: what it tells on a clock of its own, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import Monitor
from edl_labs.virtual import VirtualGPU


class Slow:
    """Batches that take a second each of a virtual clock."""

    def __init__(self, gpu: VirtualGPU, wait_s: float) -> None:
        self.gpu, self.wait_s = gpu, wait_s

    def __iter__(self) -> Iterator[int]:
        for number in range(10):
            self.gpu.host_work(self.wait_s)
            yield number


def watched(*, data_s: float, work_s: float, read_s: float = 0.0) -> Any:
    gpu = VirtualGPU("A100-80GB", clock_read_cost_s=0.0)
    monitor = Monitor(clock=gpu.clock)
    with monitor as watch:
        for _ in watch(Slow(gpu, data_s)):
            gpu.host_work(work_s)
            if read_s:
                with watch.read():
                    gpu.host_work(read_s)
    return monitor.report()


def test_shares_are_those_of_the_clock() -> None:
    found = watched(data_s=2e-3, work_s=1e-3, read_s=1e-3)

    assert {"data": 0.5, "reads": 0.25, "rest": 0.25} == pytest.approx(found.shares)
    assert pytest.approx(4e-3) == found.step_s


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ({"data_s": 4e-3, "work_s": 1e-3}, "data-bound"),
        ({"data_s": 1e-4, "work_s": 1e-3, "read_s": 4e-3}, "reads"),
        ({"data_s": 1e-4, "work_s": 1e-3}, "neither"),
    ],
)
def test_the_verdict_follows_the_shares(causes: dict[str, float], words: str) -> None:
    assert words in str(watched(**causes))


def test_reads_are_counted_by_line() -> None:
    import torch

    with Monitor(reads_of=("cpu",)) as watch:
        for number in watch(range(8)):
            torch.tensor(float(number)).item()
    (line,) = watch.report().lines

    assert "test_monitor.py" in line


def test_tensors_are_as_before_when_it_ends() -> None:
    import torch

    before = torch.Tensor.item
    with Monitor():
        assert before is not torch.Tensor.item

    assert before is torch.Tensor.item


def test_a_read_inside_the_loader_counts_once() -> None:
    gpu = VirtualGPU("A100-80GB", clock_read_cost_s=0.0)
    monitor = Monitor(clock=gpu.clock)

    def loader() -> Iterator[int]:
        for number in range(10):
            with monitor.read():
                gpu.host_work(1.0)
            yield number

    for _ in monitor(loader()):
        gpu.host_work(0.25)

    assert {"data": 0.0, "reads": 0.8, "rest": 0.2} == pytest.approx(monitor.report().shares)


def test_a_monitor_entered_twice_is_refused() -> None:
    import torch

    before = torch.Tensor.item
    with Monitor() as watch, pytest.raises(UsageError, match="already watching"):
        watch.__enter__()

    assert before is torch.Tensor.item


def test_too_few_steps_are_told() -> None:
    with pytest.raises(UsageError, match="only 0 steps"):
        Monitor().report()


def test_the_monitor_costs_less_than_a_hundredth_of_a_5_ms_step() -> None:
    # What it adds to a step, over many empty ones: a bound on work, loose by an order of magnitude.
    def per_step_s(batches: Any) -> float:
        begun = time.process_time()
        for _ in batches:
            pass
        return (time.process_time() - begun) / 20_000

    with Monitor() as watch:
        added_s = min(per_step_s(watch(range(20_000))) for _ in range(3)) - per_step_s(range(20_000))

    assert added_s < 0.01 * 5e-3
