"""What a format does to numbers, counted."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from edl_labs.errors import UsageError
from edl_labs.numerics import FORMATS, FloatFormat, underflow_report


def counted_one_by_one(values: np.ndarray, fmt: FloatFormat, scale: float) -> dict[str, int]:
    """The same counts from rounding alone."""
    rounded = np.abs(fmt.round(values * scale))
    live = (values != 0) & np.isfinite(values)
    return {
        "flushed_count": int(np.sum(live & (rounded == 0))),
        "subnormal_count": int(np.sum(live & (rounded > 0) & (rounded < fmt.smallest_normal))),
        "normal_count": int(np.sum(live & (rounded >= fmt.smallest_normal) & np.isfinite(rounded))),
        "overflowed_count": int(np.sum(live & ~np.isfinite(rounded))),
    }


@pytest.mark.parametrize("name", ["fp16", "bf16", "e4m3fn", "e5m2", "e4m3fnuz", "tf32"])
@pytest.mark.parametrize("scale", [1.0, 1024.0, 3.7e-3])
def test_counts_are_those_of_rounding(name: str, scale: float) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=4000) * 2.0 ** rng.uniform(-40, 20, 4000)
    values[:50] = 0

    total = underflow_report(values, name, scale=scale).total

    expected = counted_one_by_one(values, FORMATS[name], scale)
    assert expected == {key: getattr(total, key) for key in expected}
    assert 50 == total.zero


def test_fp16s_edges_fall_on_the_right_side() -> None:
    edges = {
        "flushed": 2.0**-25,
        "subnormal": 2.0**-25 * 1.0001,
        "normal": 65519.0,
        "overflowed": 65520.0,
    }

    for fate, value in edges.items():
        assert 1.0 == getattr(underflow_report([value], "fp16"), fate)


def test_tensors_keep_their_names_and_the_total_their_sum() -> None:
    report = underflow_report({"weight": torch.tensor([1e-9, 1.0]), "bias": torch.tensor([0.0, 1e9])}, torch.float16)

    assert [("weight", 0.5), ("bias", 0.0)] == [(fate.name, fate.flushed) for fate in report.tensors]
    assert (1 / 3, 1 / 3, 1) == (report.flushed, report.overflowed, report.total.zero)
    assert 4 == report.total.count


def test_infinities_are_counted_apart_and_never_as_overflow() -> None:
    total = underflow_report(torch.tensor([math.inf, math.nan, 1.0]), "fp16").total

    assert (2, 0, 1.0) == (total.nonfinite, total.overflowed_count, total.normal)


def test_a_scale_beyond_fp64_is_overflow() -> None:
    assert 1.0 == underflow_report([1e300], "bf16", scale=1e300).overflowed
    assert 1.0 == underflow_report([1e-300], "bf16", scale=1e-300).flushed


def test_the_histogram_counts_floor_log2_of_the_unscaled_magnitudes() -> None:
    report = underflow_report([0.5, -0.75, 4.0, 0.0], "fp16", scale=1024)

    assert ((-1, 0, 1, 2), (2, 0, 0, 1)) == (report.exponents, report.counts)


def test_the_report_is_plain_data_and_a_few_lines_of_text() -> None:
    report = underflow_report([torch.tensor([1e-9]), torch.tensor([1.0])], "fp16")

    assert 1 == json.loads(json.dumps(report.to_json()))["schema"]
    assert "50 % flushed" in repr(report)


def test_all_zeros_have_no_fractions() -> None:
    assert 0.0 == underflow_report(torch.zeros(3), "fp16").flushed


@pytest.mark.parametrize("scale", [0, -1.0, math.inf, math.nan, "8"])
def test_a_scale_that_is_none_is_refused(scale) -> None:
    with pytest.raises(UsageError, match=r"the scale is|scale must be a number"):
        underflow_report([1.0], "fp16", scale=scale)


def test_nothing_to_report_is_refused() -> None:
    with pytest.raises(UsageError, match="no tensors"):
        underflow_report({}, "fp16")


def test_what_was_broken_before_is_told_in_words_and_first() -> None:
    grads = {f"layer {i}": [1e-9, 1e-9] for i in range(6)} | {"head": [math.nan, math.inf, 1.0, 2.0]}
    text = repr(underflow_report(grads, "fp16"))

    assert "2 of 4 were already inf or NaN" in text
    assert "head" in text.splitlines()[2]
    assert "NaN" not in repr(underflow_report([1.0, 2.0], "fp16"))
