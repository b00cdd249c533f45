"""Results of roofline go to JSON and back, and are short to look at."""

from __future__ import annotations

import json

import pytest

from edl_labs.roofline import Machine, Point, bound, find_limiter, gemm, place, work

H200 = Machine.of("H200")
PRODUCT = work.gemm(64, 64, 64)
RESULTS = (
    *(H200, H200.peak("fp16"), PRODUCT, bound(H200, PRODUCT), bound(H200, PRODUCT, time_s=1.0)),
    *(find_limiter(H200, PRODUCT, parallel_items=3), place(H200, Point("product", PRODUCT, 1.0))),
    gemm.quantization(100, 100, 100, tile=(64, 64), sms=3),
)


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_a_result_comes_back_from_its_json(result):
    assert result == type(result).from_json(json.dumps(result.to_json()))
    assert len(repr(result)) < 1000


def test_main_memorys_capacity_is_null_in_json():
    assert [None] == [level["capacity_bytes"] for level in H200.to_json()["levels"]]
