"""What ZeRO's stages and split blocks send, against the papers' figures."""

from __future__ import annotations

import pytest

from edl_labs.errors import UsageError
from edl_labs.roofline.network import tensor_calls, zero_calls


def test_stage_3_sends_half_as_much_again_and_micro_batches_pay_from_stage_2_on():
    def sent(stage: int, micro_batches: int) -> float:
        calls = zero_calls(stage, 1e9, ranks=8, micro_batches=micro_batches)
        return sum(one.sent_bytes(8) for one in calls) / (2e9 * 7 / 8)

    assert [2, 2, 2, 3] == [pytest.approx(sent(stage, 1)) for stage in (0, 1, 2, 3)]
    assert [2, 2, 5, 12] == [pytest.approx(sent(stage, 4)) for stage in (0, 1, 2, 3)]
    assert () == zero_calls(3, 1e9, ranks=1)


def test_a_split_block_sums_twice_each_way():
    (calls,) = tensor_calls(2048, hidden=4096, blocks=3, ranks=4)
    (again,) = tensor_calls(2048, hidden=4096, blocks=3, ranks=4, recompute=True)

    assert ("all_reduce", 2 * 2048 * 4096, 12) == (calls.operation, calls.message_bytes, calls.times)
    assert 18 == again.times
    assert () == tensor_calls(2048, hidden=4096, blocks=3, ranks=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: zero_calls(4, 1e9, ranks=8),
        lambda: zero_calls(True, 1e9, ranks=8),
        lambda: zero_calls(1, 0, ranks=8),
        lambda: zero_calls(1, 1e9, ranks=8, item_bytes=-1),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(UsageError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))
