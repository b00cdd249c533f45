"""Bytes of ZeRO, split blocks and pipelines, and gradients in buckets, against small simulations of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.errors import UsageError
from edl_labs.roofline.network import (
    Bucket,
    GroupLinks,
    StateBytes,
    block_activation_bytes,
    bubble_fraction,
    collective_cost,
    equal_buckets,
    micro_batches_in_flight,
    sent_in_buckets,
    tensor_calls,
    zero_bytes_per_parameter,
    zero_calls,
)

LINK = GroupLinks(8, 20e-6, 6e9)


def test_figures_of_the_paper_7_5_billion_parameters_on_64():
    kept = [f"{7.5 * zero_bytes_per_parameter(stage, ranks=64):.1f}" for stage in (0, 1, 2, 3)]

    assert ["120.0", "31.4", "16.6", "1.9"] == kept


def test_stage_3_sends_half_as_much_again_and_micro_batches_pay_from_stage_2_on():
    def sent(stage: int, micro_batches: int) -> float:
        calls = zero_calls(stage, 1e9, ranks=8, micro_batches=micro_batches)
        return sum(one.sent_bytes(8) for one in calls) / (2e9 * 7 / 8)

    assert [2, 2, 2, 3] == [pytest.approx(sent(stage, 1)) for stage in (0, 1, 2, 3)]
    assert [2, 2, 5, 12] == [pytest.approx(sent(stage, 4)) for stage in (0, 1, 2, 3)]
    assert () == zero_calls(3, 1e9, ranks=1)


def test_other_recipes_shard_their_own_bytes():
    fp32 = StateBytes(4, 4, 8)

    assert [16, 9, 5.5, 2] == [zero_bytes_per_parameter(stage, ranks=8, state=fp32) for stage in (0, 1, 2, 3)]


def test_a_split_block_sums_twice_each_way():
    (calls,) = tensor_calls(2048, hidden=4096, blocks=3, ranks=4)
    (again,) = tensor_calls(2048, hidden=4096, blocks=3, ranks=4, recompute=True)

    assert ("all_reduce", 2 * 2048 * 4096, 12) == (calls.operation, calls.message_bytes, calls.times)
    assert 18 == again.times
    assert () == tensor_calls(2048, hidden=4096, blocks=3, ranks=1)


@pytest.mark.parametrize(("ranks", "scores", "bytes_each"), [(1, 0, 34), (8, 0, 13), (1, 80, 434), (8, 80, 63)])
def test_activations_of_a_block_by_korthikanti(ranks, scores, bytes_each):
    kept = block_activation_bytes(10, hidden=100, ranks=ranks, attention_scores=scores)

    assert pytest.approx(bytes_each) == kept / 1000
    assert 2 == block_activation_bytes(10, hidden=100, recompute=True) / 1000


def order(schedule: str, stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    warm = micro_batches if schedule == "gpipe" else min(micro_batches, stages - 1 - stage)
    done = [("forward", at) for at in range(warm)]
    for at in range(micro_batches - warm):
        done += [("forward", warm + at), ("backward", at)]
    return done + [("backward", at) for at in range(micro_batches - warm, micro_batches)]


def pipelined(schedule: str, stages: int, micro_batches: int) -> tuple[float, list[int]]:
    """The makespan with forward 1 and backward 2, and the most micro-batches that each stage holds."""
    left = [order(schedule, stage, stages, micro_batches) for stage in range(stages)]
    finish: dict[tuple[str, int, int], float] = {}
    free_s, held, most = [0.0] * stages, [0] * stages, [0] * stages
    while any(left):
        for stage in range(stages):
            while left[stage]:
                what, at = left[stage][0]
                before = stage - 1 if what == "forward" else stage + 1
                needs = [(what, before, at)] if 0 <= before < stages else []
                if not all(one in finish for one in needs):
                    break
                start = max([free_s[stage], *(finish[one] for one in needs)])
                free_s[stage] = finish[what, stage, at] = start + (1 if what == "forward" else 2)
                held[stage] += 1 if what == "forward" else -1
                most[stage] = max(most[stage], held[stage])
                del left[stage][0]
    return max(free_s), most


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 2), (4, 4), (4, 16), (5, 7), (8, 3)])
def test_1f1b_has_gpipes_bubble_and_holds_less(stages, micro_batches):
    for schedule in ("gpipe", "1f1b"):
        makespan, most = pipelined(schedule, stages, micro_batches)

        assert pytest.approx(bubble_fraction(stages, micro_batches)) == 1 - 3 * micro_batches / makespan
        assert most == [
            micro_batches_in_flight(schedule, stage=at, stages=stages, micro_batches=micro_batches)
            for at in range(stages)
        ]


def test_interleaving_does_shrink_the_bubble():
    assert ["42.9", "27.3"] == [f"{100 * bubble_fraction(4, 4, chunks=chunks):.1f}" for chunks in (1, 2)]


@given(
    gradient_bytes=st.floats(1e3, 1e10), count=st.integers(1, 200), backward_s=st.floats(0, 1), split=st.integers(2, 9)
)
def test_buckets_hide_no_more_than_the_backward_pass(gradient_bytes, count, backward_s, split):
    times = sent_in_buckets(equal_buckets(gradient_bytes, count, backward_s=backward_s), LINK, backward_s=backward_s)
    each_s = collective_cost("all_reduce", gradient_bytes / count, LINK).seconds

    assert times.finish_s >= max(backward_s, count * each_s) * (1 - 1e-9)
    # Equal buckets: the longer of arithmetic and link never pauses, and one bucket of the shorter is left over.
    longer_s, shorter_s = sorted((backward_s, count * each_s), reverse=True)
    assert pytest.approx(longer_s + shorter_s / count) == times.finish_s


def test_a_fat_last_bucket_hides_nothing():
    buckets = [Bucket(1e6, 0.1), Bucket(99e6, 1.0)]
    times = sent_in_buckets(buckets, LINK, backward_s=1.0)

    assert pytest.approx(collective_cost("all_reduce", 99e6, LINK).seconds) == times.exposed_s


@pytest.mark.parametrize(
    "call",
    [
        lambda: zero_bytes_per_parameter(4, ranks=8),
        lambda: zero_bytes_per_parameter(True, ranks=8),
        lambda: zero_calls(1, 0, ranks=8),
        lambda: StateBytes(weights=-1),
        lambda: micro_batches_in_flight("zigzag", stage=0, stages=2, micro_batches=2),
        lambda: micro_batches_in_flight("1f1b", stage=2, stages=2, micro_batches=2),
        lambda: bubble_fraction(0, 2),
        lambda: sent_in_buckets([], LINK, backward_s=1.0),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
