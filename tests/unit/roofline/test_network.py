"""Bytes of ZeRO and of split blocks, against the papers' figures."""

from __future__ import annotations

import pytest

from edl_labs.errors import UsageError
from edl_labs.roofline.network import StateBytes, tensor_calls, zero_bytes_per_parameter, zero_calls


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


@pytest.mark.parametrize(
    "call",
    [
        lambda: zero_bytes_per_parameter(4, ranks=8),
        lambda: zero_bytes_per_parameter(True, ranks=8),
        lambda: zero_calls(1, 0, ranks=8),
        lambda: StateBytes(weights=-1),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
