"""Processor time and waiting are told apart, and the loader's model lets only the first compete for cores."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from edl_labs.errors import UsageError
from edl_labs.pipeline import (
    LoaderModel,
    Stage,
    fit_contention,
    measure_contention,
    measure_ladder,
    measure_waiting,
    sharing_rate,
)
from edl_labs.pipeline.processor_time import Meter, TimeSplit, split
from edl_labs.virtual import VirtualWorkers

CORES = 2


class Scripted:
    """Three clocks that move as a call says: on a core, in the queue for one, elsewhere."""

    def __init__(self, *, core_s: float, queued_s: float, waited_s: float) -> None:
        self.parts, self.calls = (core_s, queued_s, waited_s), 0

    def work(self) -> None:
        self.calls += 1

    def read(self) -> Meter:
        core_s, queued_s, waited_s = (self.calls * part for part in self.parts)
        return Meter(core_s + queued_s + waited_s, core_s, queued_s)


@pytest.mark.parametrize("waited_s", [0.0, 1e-3, 9e-3])
@pytest.mark.parametrize("queued_s", [0.0, 5e-3])
def test_a_calls_time_is_split_exactly_whatever_other_programs_do(waited_s: float, queued_s: float) -> None:
    script = Scripted(core_s=1e-3, queued_s=queued_s, waited_s=waited_s)
    found = measure_waiting(script.work, seconds=0.1, read=script.read)

    assert (1e-3, queued_s, waited_s) == pytest.approx((found.core_s, found.queued_s, found.waited_s), abs=1e-12)
    # The share is of the time that the call takes with a core of its own.
    assert waited_s / (1e-3 + waited_s) == pytest.approx(found.waited_share)
    assert (queued_s + waited_s) / (1e-3 + queued_s + waited_s) == pytest.approx(found.off_core_share)


def test_work_in_several_threads_waits_for_nothing() -> None:
    assert (0.0, 0.0) == (TimeSplit(1.0, 1.9, 0.0).waited_s, TimeSplit(1.0, 1.9, 0.0).waited_share)
    assert 0.0 == split(Meter(1, 1, 5), Meter(1, 1, 2)).queued_s
    # Who never gave its core up has waited for nothing, whatever took the core away.
    assert 0.0 == split(Meter(0, 0, 0, 7), Meter(1.0, 0.1, 0.2, 7)).waited_s
    assert 0.7 == pytest.approx(split(Meter(0, 0, 0, 7), Meter(1.0, 0.1, 0.2, 8)).waited_s)
    with pytest.raises(UsageError):
        measure_waiting(lambda: None, seconds=0)


def test_sleeping_is_waiting_and_counting_is_not() -> None:
    asleep = measure_waiting(lambda: time.sleep(2e-3), seconds=0.1)
    busy = measure_waiting(lambda: sum(range(20_000)), seconds=0.1)

    assert busy.waited_share < asleep.waited_share
    # However long a sleeper waits for a core afterwards, what it slept is told.
    assert asleep.waited_s > 1.5e-3
    slept = measure_contention(lambda: time.sleep(2e-3), processes=(2,), seconds=0.15, rounds=1)
    assert slept.waited_share > 0.5


def test_a_ladder_says_which_stage_waits() -> None:
    stages = [Stage("fetch", lambda n: time.sleep(2e-3) or n), Stage("work", lambda n: sum(range(20_000)))]
    fetch, work = measure_ladder(stages, range(4), budget_s=0.06).rungs

    assert work.waited_s / work.alone_s < fetch.waited_s / fetch.alone_s <= 1


def simulated(workers: int, *, core_s: float, waited_s: float, main_s: float = 0.0, pieces: int = 16) -> float:
    """Batches a second of a loader whose workers alternate drawn waits and work, on virtual time."""
    draw = random.Random(workers)

    def batch() -> list[Any]:
        parts: list[Any] = []
        for _ in range(pieces):
            parts.append(("sleep", "network", waited_s / pieces * draw.lognormvariate(-0.125, 0.5)))
            parts.append(("cpu", "work", core_s / pieces * draw.uniform(0.5, 1.5)))
        return parts

    vw, count = VirtualWorkers(cores=CORES, collect_s=main_s), 300
    for _ in vw.loader([batch() for _ in range(count)], workers=workers, prefetch=2):
        pass
    return count / vw.now_s()


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize(
    ("core_s", "waited_s", "main_s"),
    [(2e-3, 48e-3, 0.0), (10e-3, 40e-3, 1e-3), (16e-3, 16e-3, 0.0), (20e-3, 6e-3, 1e-3)],
)
def test_the_prediction_agrees_with_simulated_workers_that_wait(
    workers: int, core_s: float, waited_s: float, main_s: float
) -> None:
    alone = fit_contention({1: 1.0}, cores=CORES)
    model = LoaderModel(16, core_s + waited_s, main_s=main_s, contention=alone, waited_s=waited_s)
    found = 16 * simulated(workers, core_s=core_s, waited_s=waited_s, main_s=main_s)

    assert found == pytest.approx(model.sample_per_s(workers), rel=0.1)


def test_six_workers_that_wait_three_milliseconds_a_sample_are_not_held_to_two_cores() -> None:
    alone = fit_contention({1: 1.0}, cores=CORES)
    waiting = LoaderModel(16, 16 * 3.1e-3, contention=alone, waited_s=16 * 3e-3)
    working = LoaderModel(16, 16 * 3.1e-3, contention=alone)

    assert 6 / 3.1e-3 == pytest.approx(waiting.sample_per_s(6), rel=0.02)
    assert 2 / 3.1e-3 == pytest.approx(working.sample_per_s(6))
    assert ("workers", "cores") == (waiting.limit(6), working.limit(6))


def test_the_waiting_that_contention_measured_counts_without_being_asked_for() -> None:
    contention = fit_contention({1: 1.0}, cores=CORES, waited_share=3.0 / 3.1)
    model = LoaderModel(16, 16 * 3.1e-3, contention=contention)

    assert pytest.approx(16 * 3e-3) == model.waited_s
    assert pytest.approx(6 / 3.1e-3, rel=0.02) == model.sample_per_s(6)
    assert model == LoaderModel.from_json(model.to_json())
    assert 2 / 3.1e-3 == pytest.approx(LoaderModel(16, 16 * 3.1e-3, contention=contention, waited_s=0).sample_per_s(6))


def test_the_model_without_waiting_is_what_it_was() -> None:
    contention = fit_contention({1: 100.0, 2: 182.0}, cores=CORES)
    for workers in (0, 1, 2, 5):
        model = LoaderModel(8, 10e-3, 1e-3, 5e-4, 3e-3, step_on_cpu=True, contention=contention)

        assert min(model.bounds(workers).values()) == model.sample_per_s(workers)


@pytest.mark.parametrize(("workers", "cores"), [(1, 1), (3, 2), (8, 4)])
def test_workers_that_share_cores_stay_below_both_asymptotes_and_reach_them(workers: int, cores: int) -> None:
    for core_s, waited_s in ((1e-3, 1e-2), (1e-2, 1e-3), (5e-3, 5e-3)):
        rate = sharing_rate(workers, cores, core_s=core_s, waited_s=waited_s)

        assert 0.5 < rate / min(workers / (core_s + waited_s), cores / core_s) <= 1 + 1e-12
    assert min(workers, cores) / 1e-3 == pytest.approx(sharing_rate(workers, cores, core_s=1e-3, waited_s=0.0))
    assert min(workers, cores) / 1e-3 == pytest.approx(
        sharing_rate(workers, cores, core_s=1e-3, waited_s=1e-12), rel=1e-6
    )
    assert workers / 1e-3 == pytest.approx(sharing_rate(workers, cores, core_s=0.0, waited_s=1e-3))


@pytest.mark.parametrize("waited_share", [0.0, 0.5, 0.99])
def test_contention_of_work_that_waits_does_not_grow_out_of_noise(waited_share: float) -> None:
    found = fit_contention({1: 10.0, 2: 20 / 1.1}, cores=2, waited_share=waited_share)

    assert (pytest.approx(0.1), waited_share) == (found.sigma, found.waited_share)


@pytest.mark.parametrize("waited_s", [-1e-3, 2e-3, float("nan")])
def test_waiting_is_a_part_of_a_workers_time(waited_s: float) -> None:
    with pytest.raises(UsageError, match="waited_s"):
        LoaderModel(8, 1e-3, waited_s=waited_s)
