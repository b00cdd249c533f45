"""feed when samples hang, workers die or errors look like deaths: who is named, how soon, and what is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from typing import Any

import pytest
from odd_data import Odd

from edl_labs.pipeline import TookTooLong, WorkerDied, feed
from edl_labs.pipeline._within import within
from tests.sampling import few


def raising(error: Exception) -> Any:
    def deed() -> None:
        raise error

    return deed


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_worker_that_dies_is_noticed_long_before_the_limit(ahead: bool) -> None:
    begin = time.monotonic()
    with pytest.raises(WorkerDied, match="sample 13") as error:
        list(feed(Odd(die), batch_size=4, workers=2, limit_s=100, ahead=ahead))

    assert time.monotonic() - begin < 30
    assert "SIGKILL" in error.value.why


@pytest.mark.parametrize("ahead", few([False, True], quick=1))
def test_a_worker_that_dies_does_not_interrupt_the_step(ahead: bool) -> None:
    source = feed(Odd(lambda: (time.sleep(0.3), die())), batch_size=4, workers=1, collate=list, limit_s=60, ahead=ahead)
    for _ in range(3):
        next(source)
        time.sleep(0.6)
    with pytest.raises(WorkerDied, match="sample 13"):
        next(source)

    assert [] == multiprocessing.active_children()


def test_workers_start_in_the_thread_that_asks() -> None:
    found = []
    context = multiprocessing.get_context("fork")
    start = context.Process.start

    def noted(self: Any) -> None:
        found.append(threading.current_thread())
        start(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context.Process, "start", noted)
        list(feed(Odd(lambda: None), batch_size=4, workers=2, ahead=True, limit_s=20))

    assert [threading.main_thread()] * 2 == found


@pytest.mark.parametrize("ahead", few([False, True], quick=1))
def test_closing_does_not_wait_for_samples_that_hang(ahead: bool) -> None:
    threads = threading.active_count()
    source = feed(Odd(lambda: time.sleep(300)), batch_size=1, workers=2, limit_s=200, ahead=ahead)
    for _ in range(12):
        next(source)
    time.sleep(0.5)
    begin = time.monotonic()
    source.close()

    assert time.monotonic() - begin < 30
    assert ([], threads) == (multiprocessing.active_children(), threading.active_count())


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", [EOFError("no data left"), ConnectionResetError("peer"), FileNotFoundError("gone")])
def test_an_error_that_looks_like_a_death_is_the_samples_own(error: Exception, workers: int, ahead: bool) -> None:
    with pytest.raises(type(error)) as caught:
        list(feed(Odd(raising(error)), batch_size=4, workers=workers, limit_s=20, ahead=ahead))

    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "this happened in sample 13" in told


@pytest.mark.parametrize("workers", [0, 1])
def test_a_samples_own_limit_keeps_its_words(workers: int) -> None:
    own = Odd(lambda: within(0.05, lambda: time.sleep(20), what="the answer of the store"))
    with pytest.raises(TookTooLong, match="the answer of the store"):
        list(feed(own, batch_size=4, workers=workers, limit_s=20))


@pytest.mark.parametrize("ahead", few([False, True], quick=1))
def test_without_workers_a_sample_that_hangs_is_named(ahead: bool) -> None:
    with pytest.raises(TookTooLong, match="sample 13"):
        list(feed(Odd(lambda: time.sleep(20)), batch_size=4, workers=0, limit_s=0.3, ahead=ahead))


def test_a_sample_that_tries_again_after_any_exception_ends_at_the_limit() -> None:
    def stubborn() -> None:
        for _ in range(3):
            try:
                time.sleep(30)
            except Exception:
                continue

    with pytest.raises(TookTooLong, match="sample 13"):
        list(feed(Odd(stubborn), batch_size=4, workers=0, limit_s=0.3))


def bus_error(batch: list[int]) -> list[int]:
    if 13 in batch:
        os.kill(os.getpid(), signal.SIGBUS)
    return batch


def hang(batch: list[int]) -> list[int]:
    if 13 in batch:
        time.sleep(100)
    return batch


@pytest.mark.parametrize("workers", [1, 2])
def test_a_death_between_samples_names_those_of_the_batch(workers: int) -> None:
    with pytest.raises(WorkerDied) as error:
        list(feed(Odd(lambda: None), batch_size=4, workers=workers, collate=bus_error, limit_s=20))

    assert (12, 13, 14, 15) == error.value.samples
    assert "/dev/shm" in error.value.why


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collate_that_hangs_names_the_samples_of_the_batch(workers: int) -> None:
    batches = [[3], [0, 13, 5], [1]]
    with pytest.raises(TookTooLong, match=r"sample 0, 5, 13\n"):
        list(feed(Odd(lambda: None), batches=batches, workers=workers, collate=hang, limit_s=0.5))
