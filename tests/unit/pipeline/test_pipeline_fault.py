"""whose_fault on loops whose truth is known: virtual ones with drawn delays, and a real one that hangs."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from edl_labs.errors import UsageError
from edl_labs.pipeline import busy_step, fault_of_times, sleeping_step, whose_fault
from edl_labs.pipeline._within import TookTooLong, within
from edl_labs.virtual import VirtualWorkers


def drop_batch(batch: Any) -> None:
    """A step that takes no time."""


def verdict(load_s: Any, step_s: float, *, workers: int, cores: int = 8, threads: int = 0) -> Any:
    vw = VirtualWorkers(cores=cores)
    batches = [[("cpu", "load", float(load_s(i) if callable(load_s) else load_s))] for i in range(120)]
    return whose_fault(
        lambda: vw.loader(batches, workers=workers),
        lambda batch: vw.step(step_s, threads=threads),
        clock=vw.clock,
        batches=100,
        budget_s=1e6,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_verdict_is_the_truth_of_drawn_delays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workers, step_s = int(rng.integers(1, 6)), float(rng.uniform(1e-3, 2e-2))
    slow, quick = (rng.uniform(1.4, 6), "data-bound"), (rng.uniform(0.1, 0.7), "compute-bound")
    factor, truth = (slow, quick, (1.0, "balanced"))[seed % 3]
    noise = rng.uniform(0.9, 1.1, 200)
    found = verdict(lambda i: step_s * workers * factor * noise[i], step_s, workers=workers)

    assert truth == found.verdict
    assert found.data_share + found.compute_share == pytest.approx(1)
    assert factor == pytest.approx(found.ratio, rel=0.08)
    assert max(factor, 1) == pytest.approx(found.gain_if_loader_free, rel=0.12)
    assert max(1 / factor, 1) == pytest.approx(found.gain_if_step_free, rel=0.12)


def test_without_workers_nothing_overlaps() -> None:
    found = verdict(2e-3, 3e-3, workers=0)

    assert ("compute-bound", 0.0) == (found.verdict, pytest.approx(found.overlap, abs=1e-6))
    assert 0.4 == pytest.approx(found.data_share)
    assert 5 / 3 == pytest.approx(found.gain_if_loader_free)


def test_a_step_that_shares_the_cores_shows_as_interference() -> None:
    apart, shared = (verdict(4e-3, 2e-3, workers=2, cores=2, threads=threads) for threads in (0, 2))

    assert 1 == pytest.approx(apart.interference, abs=0.05)
    assert shared.interference > 1.5


def test_noise_across_a_border_is_inconclusive() -> None:
    times = [0.9, 1.3, 1.6] * 4

    assert "inconclusive" == fault_of_times(times, [1.0] * 12, [0.5] * 12, [1.0] * 12).verdict


def test_a_loop_that_takes_no_time_is_told_as_plain_data() -> None:
    told = fault_of_times([0.0] * 9, [0.0] * 9, [0.0] * 9, [0.0] * 9).to_json()

    assert ("balanced", 1.0, 1.0) == (told["verdict"], told["interference"], told["overlap"])


@pytest.mark.parametrize("where", ["main", "other"])
def test_a_loader_that_hangs_is_named_and_ends_in_time(where: str) -> None:
    class Hangs:
        def __iter__(self) -> Any:
            yield 0
            yield 1
            time.sleep(30)

    caught: list[BaseException] = []

    def run() -> None:
        try:
            whose_fault(Hangs(), drop_batch, limit_s=0.3)
        except BaseException as error:
            caught.append(error)

    if where == "main":
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(10)

    assert [TookTooLong] == [type(error) for error in caught]
    assert "batch 2 of the loader" in str(caught[0])


def test_a_limit_gives_back_values_and_errors_and_nested_limits() -> None:
    assert 3 == within(5, lambda: within(5, lambda: 3, what="inner"), what="outer")
    with pytest.raises(TookTooLong, match="outer"):
        within(0.2, lambda: (within(0.1, lambda: 1, what="inner"), time.sleep(5)), what="outer")
    with pytest.raises(ZeroDivisionError):
        within(1, lambda: 1 / 0, what="x")


@pytest.mark.parametrize(
    "call",
    [
        lambda: whose_fault(iter([1, 2]), drop_batch),
        lambda: whose_fault([], drop_batch),
        lambda: whose_fault([1], drop_batch),
        lambda: whose_fault([1, 2], drop_batch, batches=2),
        lambda: fault_of_times([], [], [], []),
    ],
)
def test_too_little_to_judge_says_what_is_missing(call: Any) -> None:
    with pytest.raises(UsageError) as error:
        call()

    assert error.value.why
    assert error.value.next


def test_a_sleeping_step_takes_no_processor_time_and_a_busy_one_takes_it_all() -> None:
    begin = time.thread_time()
    sleeping_step(0.03)(None)
    slept = time.thread_time() - begin
    busy_step(0.03)(None)

    assert slept < 0.02
    assert time.thread_time() - begin - slept >= 0.03
