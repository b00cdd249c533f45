"""The diagnosis against loops whose shares are known from the machine."""

from __future__ import annotations

import pytest

from edl_labs.trace import VirtualLoop, attribute
from tests.data.loops import drawn_spec, labelled_loops, true_shares
from tests.data.loops.labelled import STEPS
from tests.unit.trace.loops import held_then_busy


@pytest.mark.parametrize("cause", ["compute", "copy", "launch", "sync", "data", "alloc", "host"])
@pytest.mark.parametrize("seed", [101, 202])
def test_single_causes_have_their_true_shares(cause: str, seed: int) -> None:
    loop = drawn_spec(seed, causes=(cause,)).loop()
    true, found = true_shares(loop, steps=6), attribute(loop.record(6), skip=1).shares

    assert true == pytest.approx(found, abs=0.05)


def test_truth_sums_to_one() -> None:
    assert pytest.approx(1.0) == sum(true_shares(drawn_spec(7).loop(), steps=5).values())


@pytest.mark.parametrize("skip", [0, 1])
def test_truth_and_attribution_begin_and_end_alike(skip: int) -> None:
    loop = VirtualLoop(held_then_busy)
    true = true_shares(loop, steps=4, skip=skip)

    assert true == pytest.approx(attribute(loop.record(4), skip=skip).shares, abs=1e-3)


@pytest.mark.slow
def test_the_corpus_is_diagnosed() -> None:
    loops = list(labelled_loops())
    found = [attribute(item.loop.record(STEPS), skip=1) for item in loops]
    right = sum(item.dominant == answer.dominant for item, answer in zip(loops, found, strict=True))
    near = sum(item.shares == pytest.approx(answer.shares, abs=0.05) for item, answer in zip(loops, found, strict=True))

    assert 60 <= len(loops)
    assert 0.95 <= right / len(loops)
    assert 0.95 <= near / len(loops)
