"""The pitfalls of workers: seeds, start methods, memory that grows, and /dev/shm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl_labs.errors import UsageError
from edl_labs.pipeline import (
    main_dataset,
    private_growth_bytes,
    seed_report,
    shared_memory,
    start_cost_s,
)


@pytest.mark.parametrize(
    "call",
    [
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
