"""Block formats: scales by hand, the edges of what they hold, and what is refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch

from edl_labs.errors import UsageError
from edl_labs.numerics import E2M1FN, E4M3FN, E5M2, E8M0FNU, FP16, MXFP4, MXFP8, NVFP4, BlockFormat

FORMATS = (MXFP8, MXFP4, NVFP4)
each_format = pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)


@pytest.mark.parametrize(
    ("fmt", "amax", "exponent"),
    [(MXFP8, 1.0, -8), (MXFP8, 448.0, 0), (MXFP8, 511.9, 0), (MXFP8, 512.0, 1), (MXFP4, 6.0, 0), (MXFP4, 8.0, 1)],
)
def test_the_scale_of_an_mx_block_is_two_to_the_floor_of_log2_amax_less_the_last_exponent(fmt, amax, exponent):
    blocks = fmt.quantize([0.0, -amax, 0.3 * amax])

    assert [127 + exponent] == blocks.scales.tolist()
    assert [2.0**exponent] == blocks.scale_values().tolist()


def test_what_lies_above_the_largest_element_saturates_with_its_sign():
    assert [448.0, -448.0, 1.0] == MXFP8.round([511.0, -511.0, 1.0]).tolist()
    assert [6.0, -6.0, 1.0] == MXFP4.round([7.9, -7.9, 1.0]).tolist()


def test_nvfp4_has_a_scale_for_the_tensor_and_one_for_each_block():
    blocks = NVFP4.quantize([[2688.0] + [0.0] * 15 + [-12.0] * 16])

    assert 1.0 == blocks.tensor_scale
    assert [[448.0, 2.0]] == blocks.scale_values().tolist()
    assert [0b0111, *[0] * 15, *[0b1111] * 16] == blocks.codes[0].tolist()


@each_format
@pytest.mark.parametrize("size", [0.0, 1e-44, 1e-38, 1.0, 3.4028234663852886e38], ids=str)
def test_tensors_of_any_size_come_back_finite(fmt, size):
    values = np.array([size, -size / 2, 0.0, size / 8])
    error = fmt.quantize(values).relative_error(values.astype(np.float32))

    assert np.all(np.isfinite(fmt.round(values)))
    assert 0 <= error <= (1.0 if size in (1e-44, 1e-38) else 0.25)


@each_format
def test_zeros_stay_zeros_and_keep_their_sign(fmt):
    restored = fmt.round(np.array([0.0, -0.0] * fmt.block))

    assert not restored.any()
    assert [False, True] * fmt.block == np.signbit(restored).tolist()


def test_subnormal_numbers_of_fp32_keep_what_the_smallest_scale_leaves():
    assert [2.0**-127] == MXFP4.quantize([2.0**-140]).scale_values().tolist()
    assert [2.0**-128, 0.0] == MXFP4.round([2.0**-128, 2.0**-130]).tolist()
    assert [2.0**-136] == MXFP8.round([2.0**-136]).tolist()


@each_format
def test_a_short_last_block_has_a_scale_of_its_own(fmt):
    values = np.ones((3, fmt.block + 5))
    values[:, fmt.block :] = 4.0
    blocks = fmt.quantize(values)

    assert (3, 2) == blocks.scales.shape
    assert values.shape == blocks.codes.shape
    assert np.array_equal(values, blocks.dequantize()) or fmt is NVFP4
    assert np.array_equal(fmt.round(values[:, fmt.block :]), blocks.dequantize()[:, fmt.block :])


@each_format
def test_full_blocks_take_the_bytes_that_the_format_says(fmt):
    blocks = fmt.quantize(np.ones((4, 2 * fmt.block)))
    of_tensor = 4 if fmt is NVFP4 else 0

    assert blocks.nbytes == 8 * fmt.block * fmt.bytes_per_value + of_tensor
    assert {"mxfp8": 1.03125, "mxfp4": 0.53125, "nvfp4": 0.5625}[fmt.name] == fmt.bytes_per_value


def test_a_row_of_odd_length_ends_with_half_a_byte_unused():
    assert 2 * (2 + 1) == MXFP4.quantize(np.ones((2, 3))).nbytes


@each_format
def test_a_tensor_comes_back_as_a_tensor_of_its_shape(fmt):
    values = torch.randn(3, 5, 40, generator=torch.Generator().manual_seed(0), dtype=torch.bfloat16)
    rounded = fmt.round(values.requires_grad_())

    assert (torch.float32, values.shape, False) == (rounded.dtype, rounded.shape, rounded.requires_grad)
    assert np.array_equal(fmt.quantize(values).dequantize().astype(np.float32), rounded.numpy())


@pytest.mark.parametrize("fmt", [MXFP8, MXFP4], ids=lambda fmt: fmt.name)
def test_rounded_values_of_an_mx_format_are_kept(fmt):
    once = fmt.round(np.random.default_rng(0).normal(size=(64, 64)))

    assert np.array_equal(once, fmt.round(once))


@each_format
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e39])
def test_values_that_spoil_a_scale_are_refused_and_counted(fmt, bad):
    with pytest.raises(UsageError, match="2 of 5 values are NaN, inf or outside the range of fp32"):
        fmt.quantize([1.0, bad, 2.0, bad, 3.0])


def test_a_nan_scale_makes_its_block_nan_and_no_other():
    blocks = MXFP8.quantize(np.ones(64))
    blocks.scales[0] = 255

    assert np.all(np.isnan(blocks.dequantize()[:32]))
    assert np.all(blocks.dequantize()[32:] == 1)


@pytest.mark.parametrize(
    "empty", [[], 1.0, np.zeros((0, 32)), np.zeros((4, 0))], ids=["list", "number", "rows", "columns"]
)
def test_nothing_makes_no_block(empty):
    with pytest.raises(UsageError, match="cannot be divided into blocks"):
        MXFP8.quantize(empty)


@pytest.mark.parametrize("fields", [{"block": 0}, {"block": 2.0}, {"block": True}, {"scale": FP16}, {"scale": "e8m0"}])
def test_a_format_that_has_no_rule_is_refused(fields):
    with pytest.raises(UsageError):
        BlockFormat(**{"name": "odd", "element": E4M3FN, "block": 32} | fields)


def test_other_elements_take_the_same_rule():
    e5m2 = BlockFormat("mxfp8_e5m2", E5M2, block=32)

    assert [2.0**-15] == e5m2.quantize([1.0]).scale_values().tolist()
    assert [57344.0] == e5m2.round([65535.0]).tolist()
    assert (0.53125, 0.75) == (MXFP4.bytes_per_value, BlockFormat("", E2M1FN, block=4, scale=E8M0FNU).bytes_per_value)


def test_blocks_survive_pickling():
    blocks = pickle.loads(pickle.dumps(NVFP4.quantize(np.arange(40.0))))

    assert np.array_equal(NVFP4.round(np.arange(40.0)), blocks.dequantize())
    assert 20 + 3 + 4 == blocks.nbytes


def test_smaller_blocks_and_finer_scales_lose_less_of_normal_values():
    values = np.random.default_rng(1).normal(size=(256, 256))
    mxfp8, mxfp4, nvfp4 = (fmt.quantize(values).relative_error(values) for fmt in FORMATS)

    assert 0.02 < mxfp8 < 0.03
    assert mxfp8 < nvfp4 < mxfp4 < 0.15
