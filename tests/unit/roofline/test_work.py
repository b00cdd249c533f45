"""Work follows from shapes, is the deck's where a deck has it, and refuses what has no size."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from edl_labs.errors import EdlError, UsageError
from edl_labs.roofline import Work, work

SIZES = st.integers(1, 300)


@given(m=SIZES, n=SIZES, k=SIZES, batch=st.integers(1, 4))
def test_a_product_reads_both_factors_and_writes_the_result_once(m, n, k, batch):
    found = work.gemm(m, n, k, batch=batch, dtype="fp16")

    assert 2 * batch * m * n * k == found.contraction_flops
    assert 2 * batch * (m * k + k * n + m * n) == found.moved_bytes


@given(m=SIZES, n=SIZES, k=SIZES)
def test_fused_work_never_moves_more(m, n, k):
    def works(*, fused):
        return [
            work.gemm(m, n, k, accumulate=True, fused=fused),
            work.linear(m, n, k, bias=True, fused=fused),
            work.softmax(m, n, fused=fused),
            work.norm(m, n, fused=fused),
            work.elementwise(m, operations=3, fused=fused),
            work.attention(1, 2, m, head_dim=n, keys=k, fused=fused),
        ]

    pairs = zip(works(fused=True), works(fused=False), strict=True)

    assert all(fused.moved_bytes < apart.moved_bytes for fused, apart in pairs)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("kernel", "stride", "padding", "dilation"), [(3, 1, 1, 1), ((5, 3), 2, 0, 1), (3, 2, 2, 2)])
def test_a_convolution_counts_as_torch_does(groups, kernel, stride, padding, dilation):
    layer = torch.nn.Conv2d(8, 12, kernel, stride, padding, dilation, groups, bias=False)
    size = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    x = torch.randn(2, 8, 17, 14)
    with FlopCounterMode(display=False) as counter:
        y = layer(x)

    found = work.conv2d(2, 8, 12, height=17, width=14, groups=groups, **size)

    assert counter.get_total_flops() == found.contraction_flops
    assert 4 * (x.numel() + layer.weight.numel() + y.numel()) == found.moved_bytes
    assert tuple(y.shape[-2:]) == work.window_outputs(17, 14, **size)


def test_attention_counts_as_torch_does_and_unfused_moves_the_scores():
    q = torch.randn(2, 4, 10, 8)
    k = torch.randn(2, 4, 30, 8)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, k, k)
    fused, apart = (work.attention(2, 4, 10, head_dim=8, keys=30, fused=fused) for fused in (True, False))

    assert counter.get_total_flops() == fused.contraction_flops
    assert 4 * (2 * q.numel() + 2 * k.numel()) == fused.moved_bytes
    assert 4 * 4 * (2 * 4 * 10 * 30) == apart.moved_bytes - fused.moved_bytes


def test_shared_key_heads_move_fewer_keys():
    shared = work.attention(1, 8, 64, head_dim=16, key_heads=2)

    assert shared.contraction_flops == work.attention(1, 8, 64, head_dim=16).contraction_flops
    assert 4 * 2 * 16 * 64 * (8 + 2) == shared.moved_bytes


def test_pooling_is_one_step_less_for_a_maximum():
    tall = {"height": 1000, "width": 1000, "padding": 1, "dtype": "fp16"}

    assert 2.0 == pytest.approx(work.pooling(1, 1, **tall).intensity_flop_per_byte)
    assert 2.25 == pytest.approx(work.pooling(1, 1, kind="mean", **tall).intensity_flop_per_byte)


def test_an_embedding_computes_nothing_and_reads_no_more_rows_than_there_are():
    assert 0 == work.embedding(100, 64).intensity_flop_per_byte
    assert 100 * 8 + 4 * 64 * (10 + 100) == work.embedding(100, 64, vocabulary=10).moved_bytes


def test_work_adds_up_and_scales():
    a, b = work.gemm(4, 5, 6), work.softmax(4, 5)
    both = 2 * (a + b)

    assert (2 * a.contraction_flops, 2 * b.other_flops) == (both.contraction_flops, both.other_flops)
    assert 2 * (a.moved_bytes + b.moved_bytes) == both.moved_bytes
    assert work.total([a, b, a, b], name="twice") == both.named("twice")


def test_work_of_two_dtypes_is_not_added():
    with pytest.raises(UsageError) as caught:
        work.gemm(4, 4, 4) + work.gemm(4, 4, 4, dtype="fp16")

    assert "fp32 work and fp16 work cannot be added" == caught.value.what


def test_intensity_of_nothing_is_zero_and_of_nothing_moved_infinite():
    assert (0.0, math.inf) == (Work(0, 0, 0).intensity_flop_per_byte, Work(1, 0, 0).intensity_flop_per_byte)


def test_work_says_itself_and_is_plain_data():
    found = work.gemm(512, 512, 512, accumulate=True)

    assert "gemm (fp32): 268 MFLOP, 4.19 MB, 64 FLOP/B" == str(found)
    assert (
        64.0
        == Work(
            **{k: v for k, v in json.loads(json.dumps(found.to_json())).items() if k in _FIELDS}
        ).intensity_flop_per_byte
    )


_FIELDS = ("contraction_flops", "other_flops", "moved_bytes", "dtype")


@pytest.mark.parametrize("wrong", [0, -3, 2.0, "8", None, True, float("nan")])
def test_a_size_that_is_none_is_refused_by_name(wrong):
    with pytest.raises(UsageError) as caught:
        work.gemm(8, wrong, 8)

    assert f"n is {wrong!r}" == caught.value.what


@pytest.mark.parametrize(
    "call",
    [
        lambda: work.conv2d(1, 3, 8, height=2, width=2, kernel=5),
        lambda: work.conv2d(1, 3, 8, height=8, width=8, groups=2),
        lambda: work.conv2d(1, 3, 8, height=8, width=8, kernel=(3, 3, 3)),
        lambda: work.conv2d(1, 3, 8, height=8, width=8, padding=-1),
        lambda: work.pooling(1, 3, height=8, width=8, kind="median"),
        lambda: work.norm(4, 4, kind="spectral"),
        lambda: work.reduction(4, outputs=5),
        lambda: work.total([]),
        lambda: work.softmax(4, 4, dtype="float80"),
        lambda: work.elementwise(4, dtype="complex64"),
        lambda: Work(-1, 0, 0),
        lambda: Work(1, float("inf"), 0),
        lambda: Work(1, 0, 0, "int3"),
    ],
)
def test_bad_input_is_told_what_why_and_next(call):
    with pytest.raises(EdlError) as caught:
        call()

    assert all((caught.value.what, caught.value.why, caught.value.next))


def test_sizes_of_numpy_count_as_numbers():
    found = work.gemm(np.int64(4), np.int64(5), np.int64(6))

    assert work.gemm(4, 5, 6) == found
    assert 240 == json.loads(json.dumps(found.to_json()))["contraction_flops"]
