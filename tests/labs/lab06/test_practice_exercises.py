"""lab06's practice: answers by hand, and what its draws ask for."""

from __future__ import annotations

from collections import Counter

import pytest

from edl_labs.exercises.lab06_memory.small_batches import ANSWERS


@pytest.mark.parametrize("seed", [1, 2])
def test_each_answer_is_asked_for_equally_often(exercises, solution, seed):
    cases = exercises["same_or_not"].draw_cases(seed)

    assert Counter(dict.fromkeys(ANSWERS, 5)) == Counter(solution["what_differs"](case) for case in cases)


def test_signs_by_hand(solution):
    """16 examples of 1 ms each; a pass never takes less than 32 ms, so that the device is half full."""
    job = {
        "batch": 16,
        "parts": 4,
        "example_s": 1e-3,
        "least_s": 32e-3,
        "reduce_s": 96e-3,
        "update_s": 0.0,
        "fixed_bytes": 100,
        "example_bytes": 10,
        "memory_bytes": 740,
        "kept_share": 0.25,
        "flush_s": 1e-6,
        "copy_byte_per_s": 120 / 32e-3,
    }
    # One step: 96 ms of passes and 96 ms of all-reduce for 16 examples, 12 ms each, in 260 bytes.
    assert (12e-3, 260) == pytest.approx(solution["cost"](job, 16))
    found = {
        name: solution["effect"](name, job)
        for name in ("split", "accumulate", "checkpoint", "checkpoint and grow", "offload", "empty_cache")
    }

    assert {
        "split": ("-", "+"),
        "accumulate": ("+", "0"),
        "checkpoint": ("-", "+"),
        # 256 examples: 4 * 256 ms of passes and 96 ms, 4.4 ms an example; 740 bytes.
        "checkpoint and grow": ("+", "-"),
        "offload": ("0", "+"),
        "empty_cache": ("0", "0"),
    } == found


@pytest.mark.slow  # every plan of every case is played
@pytest.mark.parametrize("seed", [1, 2])
def test_practice_asks_for_plans_of_every_kind(exercises, solution, seed):
    """Some best plans copy, some run again, one keeps everything; each fits."""
    kinds = set()
    for case in exercises["offload_or_recompute"].draw_cases(seed):
        step = _step(case)
        solution["do_step"](step, case["budget_bytes"])
        found = step.replay()
        kinds.add((bool(found.counts.get("offload")), bool(found.counts.get("recompute"))))

        assert () == found.missing
        assert found.peak_bytes <= case["budget_bytes"]
    assert {(True, False), (False, True), (False, False)} <= kinds


def _step(case):
    from edl_labs.virtual.memory import Tape, TapeLayer, VirtualTape

    layers = tuple(TapeLayer(**layer) for layer in case["layers"])
    return VirtualTape(Tape(layers, copy_byte_per_s=case["copy_byte_per_s"]))
