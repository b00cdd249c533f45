"""whose_fault where batches come in bursts, after rare stalls or with heavy tails: never the wrong side."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from edl_labs.pipeline import TookTooLong, fault_of_times, main_dataset, whose_fault
from edl_labs.virtual import VirtualWorkers

STEP_S = 5e-3


def of_loader(times: Any, *, step_s: float = STEP_S) -> Any:
    return fault_of_times(list(times), [step_s] * 60, [0.01] * 40, [step_s] * 40)


@pytest.mark.parametrize("workers", [8, 12, 16, 24, 32, 48])
def test_batches_that_come_in_bursts_count_with_the_wait_for_them(workers: int) -> None:
    vw = VirtualWorkers(cores=64)
    batches = [[("sleep", "answer", 0.5)]] * 1000
    found = whose_fault(
        lambda: vw.loader(batches, workers=workers), lambda batch: vw.step(STEP_S), clock=vw.clock, budget_s=1e6
    )

    assert "data-bound" == found.verdict
    assert 0.5 / workers == pytest.approx(found.loader_s, rel=0.1)
    assert found.ratio_low <= 0.5 / workers / STEP_S * 1.01
    assert 0.99 * 0.5 / workers / STEP_S <= found.ratio_high


def test_a_stall_at_every_thirtieth_batch_is_the_loaders() -> None:
    vw = VirtualWorkers()
    batches = [[("sleep", "load", 0.4 if n % 30 == 29 else 1e-3)] for n in range(2000)]
    found = whose_fault(lambda: vw.loader(batches), lambda batch: vw.step(STEP_S), clock=vw.clock, budget_s=1e6)

    assert "data-bound" == found.verdict
    assert (0.4 + 29e-3) / 30 == pytest.approx(found.loader_s, rel=0.1)


@pytest.mark.parametrize("workers", [8, 12, 16, 24])
def test_two_recorded_bursts_suffice(workers: int) -> None:
    found = of_loader([0.5 if (n + 1) % workers == 0 else 0.0 for n in range(60)])

    assert "data-bound" == found.verdict
    assert 0.5 / workers == pytest.approx(found.loader_s, rel=0.05)


@pytest.mark.parametrize("workers", [32, 48])
def test_one_recorded_burst_leaves_it_open(workers: int) -> None:
    found = of_loader([0.5 if (n + 1) % workers == 0 else 0.0 for n in range(60)])

    assert "inconclusive" == found.verdict
    assert found.ratio_low < 0.5 / workers / STEP_S < found.ratio_high


def test_a_single_stall_may_be_the_machines() -> None:
    found = of_loader([STEP_S] * 30 + [0.4] + [STEP_S] * 29)

    assert "inconclusive" == found.verdict
    assert found.ratio_low < 1 < 2 < found.ratio_high


def drawn(name: str, seed: int, count: int = 60) -> tuple[Any, float]:
    """Times with a heavy tail, and the mean that they come from."""
    rng = np.random.default_rng(seed)
    if name == "pareto":
        return rng.pareto(1.3, count) + 1, 1.3 / 0.3
    return rng.lognormal(0, 1.5, count), float(np.exp(1.125))


@pytest.mark.parametrize("name", ["pareto", "lognormal"])
def test_a_heavy_tail_is_left_open_rather_than_put_on_the_wrong_side(name: str) -> None:
    slow, quick = set(), set()
    for seed in range(150):
        times, mean = drawn(name, seed)
        slow.add(of_loader(times, step_s=mean / 2).verdict)
        times, mean = drawn(name, seed)
        quick.add(of_loader(times, step_s=2 * times.mean()).verdict)

    assert {"data-bound", "inconclusive"} >= slow
    assert {"compute-bound", "inconclusive"} >= quick


def test_intervals_hold_the_true_ratio() -> None:
    held = 0
    for seed in range(200):
        times = np.random.default_rng(seed).exponential(1.0, 60)
        found = of_loader(times, step_s=1.0)
        held += found.ratio_low <= 1 <= found.ratio_high

    assert held >= 180


def test_noise_of_ten_per_cent_stays_sharp() -> None:
    widths = []
    for seed in range(50):
        found = of_loader(np.random.default_rng(seed).uniform(0.9, 1.1, 60), step_s=1.0)
        widths.append(found.ratio_high - found.ratio_low)

    assert np.median(widths) < 0.05


def test_a_step_that_hangs_ends_at_the_limit() -> None:
    with pytest.raises(TookTooLong, match="the end of a step") as error:
        whose_fault([1, 2, 3], lambda batch: time.sleep(30), limit_s=0.3)

    assert "run the step alone" in error.value.next


def test_a_main_that_says_nothing_is_an_outcome() -> None:
    found = main_dataset("spawn", limit_s=1e-3)

    assert (False, "it did not finish within 0.001 s") == (found.works, found.message)
