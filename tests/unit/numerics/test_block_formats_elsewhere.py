"""ml_dtypes and torchao give the codes and scales of ours, bit by bit.

* ml_dtypes has the formats of elements and scales: every pattern of e2m1, e4m3 and e8m0, and elements of MX blocks once
  their scale is known. It has no block formats.
* torchao has whole MX and NVFP4 tensors: amax, scales, codes. Below amax 2**-118 (MXFP8) or 2**-124 (MXFP4) it does not
  answer: it stores the scale 2**-127 but divides by 2**-126 (mx_tensor.py says why: Triton flushes 2**-127 to zero), so
  that its values come back halved. ml_dtypes answers there.
* NVFP4 of a tensor below amax 2e-33 is ours alone: our scale of the tensor stops at 2**-120, torchao's shrinks until
  its inverse is inf and its codes are those of NaN; so does that of a tensor of zeros.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from edl_labs.numerics import E2M1FN, E4M3FN, E8M0FNU, MXFP4, MXFP8, NVFP4

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install 'edl-labs[dev]'")
THEIRS = {"mxfp8": ml_dtypes.float8_e4m3fn, "mxfp4": ml_dtypes.float4_e2m1fn, "nvfp4": ml_dtypes.float4_e2m1fn}
QUICK, MANY = 2_000, 120_000  # blocks of each format; the second takes 22 s in all
amounts = pytest.mark.parametrize("count", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
mx_formats = pytest.mark.parametrize("fmt", [MXFP8, MXFP4], ids=lambda fmt: fmt.name)


def drawn(seed, fmt, count, *, exponents):
    """fp32 blocks of every kind: normal values, ties between codes, few values, outliers, both zeros."""
    rng = np.random.default_rng(seed)
    shape = (count, fmt.block)
    points = np.unique(fmt.element.all_values()[np.isfinite(fmt.element.all_values())])
    ties = rng.choice(np.concatenate([points, (points[1:] + points[:-1]) / 2]), size=shape)
    normal = rng.normal(size=shape)
    outliers = normal * np.exp(rng.normal(size=shape) * 2)
    sparse = normal * (rng.random(shape) < 0.1)
    kind = rng.integers(4, size=(count, 1))
    values = np.select([kind == 0, kind == 1, kind == 2], [normal, ties, outliers], sparse)
    return np.ldexp(values, rng.integers(*exponents, size=(count, 1))).astype(np.float32)


def torchao_mx(values, fmt):
    mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor", reason="torchao is not installed")
    element = torch.float8_e4m3fn if fmt is MXFP8 else torch.float4_e2m1fn_x2
    scales, codes = mx.to_mx(torch.from_numpy(values), element, fmt.block)
    codes = codes.view(torch.uint8).numpy()
    return scales.view(torch.uint8).numpy(), codes if fmt is MXFP8 else unpacked(codes)


def unpacked(pairs):
    return np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)


@pytest.mark.parametrize("fmt", [E2M1FN, E4M3FN, E8M0FNU], ids=lambda fmt: fmt.name)
def test_every_pattern_is_the_value_of_ml_dtypes_and_comes_back(fmt):
    dtype = {"e2m1fn": "float4_e2m1fn", "e4m3fn": "float8_e4m3fn", "e8m0fnu": "float8_e8m0fnu"}[fmt.name]
    patterns = np.arange(2**fmt.bits, dtype=np.uint8)
    theirs = patterns.view(getattr(ml_dtypes, dtype)).astype(np.float64)

    assert np.array_equal(theirs, fmt.all_values(), equal_nan=True)
    assert np.array_equal(np.signbit(theirs), np.signbit(fmt.all_values()))
    finite = ~np.isnan(theirs)
    assert np.array_equal(patterns[finite], fmt.encode(theirs[finite]))


def test_all_patterns_of_four_bits_survive_a_block_at_every_scale():
    """Both libraries: a block of all 16 values, times each power of two that fp32 holds."""
    patterns = np.tile(np.arange(16, dtype=np.uint8), 2)
    exponents = np.arange(-126, 126)
    values = np.ldexp(patterns.view(ml_dtypes.float4_e2m1fn).astype(np.float64), exponents[:, None])
    blocks = MXFP4.quantize(values)
    scales, codes = torchao_mx(values.astype(np.float32), MXFP4)

    assert np.array_equal(np.tile(patterns, (len(exponents), 1)), blocks.codes)
    assert np.array_equal(codes, blocks.codes)
    assert np.array_equal(exponents + 127, blocks.scales[:, 0])
    assert np.array_equal(scales, blocks.scales)


@amounts
@mx_formats
def test_mx_blocks_have_the_elements_of_ml_dtypes_at_any_size(fmt, count):
    values = drawn(1, fmt, count, exponents=(-149, 118))
    blocks = fmt.quantize(values)
    scaled = values.astype(np.float64) / blocks.scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    theirs = np.clip(scaled, -fmt.element.largest, fmt.element.largest).astype(THEIRS[fmt.name])

    assert np.array_equal(theirs.view(np.uint8), blocks.codes)


@amounts
@mx_formats
def test_mx_blocks_have_the_scales_and_codes_of_torchao(fmt, count):
    values = drawn(2, fmt, count, exponents=(-149, 118))
    values[np.abs(values).max(axis=1) < 2.0 ** (fmt.element.max_exponent - 126)] = 0  # see above
    blocks, (scales, codes) = fmt.quantize(values), torchao_mx(values, fmt)

    assert np.array_equal(scales, blocks.scales)
    assert np.array_equal(codes, blocks.codes)


@amounts
def test_nvfp4_has_the_scales_and_codes_of_torchao(count):
    nvfp4 = pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor", reason="torchao is not installed")
    for seed, exponents in enumerate([(0, 1), (-3, 3), (-20, 1), (-100, -90), (100, 118)]):
        values = drawn(seed, NVFP4, count // 5, exponents=exponents)
        blocks, tensor = NVFP4.quantize(values), torch.from_numpy(values)
        of_tensor = nvfp4.per_tensor_amax_to_scale(tensor.abs().max())
        scales, codes = nvfp4.nvfp4_quantize(tensor, per_tensor_scale=of_tensor)

        assert float(of_tensor) == blocks.tensor_scale
        assert np.array_equal(scales.view(torch.uint8).numpy(), blocks.scales)
        assert np.array_equal(unpacked(codes.numpy()), blocks.codes)


@amounts
def test_nvfp4_has_the_scales_and_elements_of_ml_dtypes(count):
    values = drawn(3, NVFP4, count, exponents=(-20, 1))
    blocks = NVFP4.quantize(values)
    largest, of_tensor = np.abs(values).max(axis=1), np.abs(values).max() / np.float32(2688)
    theirs = np.clip(largest / np.float32(6) / of_tensor, 2**-6, 448).astype(ml_dtypes.float8_e4m3fn)
    scaled = values * (np.float32(1) / of_tensor / theirs.astype(np.float32))[:, None]

    assert np.array_equal(theirs.view(np.uint8), blocks.scales[:, 0])
    assert np.array_equal(scaled.clip(-6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8), blocks.codes)


@mx_formats
def test_values_come_back_as_from_torchao(fmt):
    from torchao.prototype.mx_formats.mx_tensor import MXTensor

    values = drawn(4, fmt, QUICK, exponents=(-60, 60))
    element = torch.float8_e4m3fn if fmt is MXFP8 else torch.float4_e2m1fn_x2
    theirs = MXTensor.to_mx(torch.from_numpy(values), element, fmt.block).dequantize(torch.float32)

    assert np.array_equal(theirs.double().numpy(), fmt.round(values))


def test_nvfp4_values_come_back_as_from_torchao_but_for_its_roundings_in_fp32():
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    tensor = torch.from_numpy(drawn(5, NVFP4, QUICK, exponents=(-3, 3)))
    theirs = NVFP4Tensor.to_nvfp4(tensor, per_tensor_scale=per_tensor_amax_to_scale(tensor.abs().max()))

    np.testing.assert_allclose(theirs.dequantize(torch.float32), NVFP4.round(tensor), rtol=2**-22)
