"""block_scales: draws hold every kind of block, and right answers are the library's, in other ways too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from edl_labs.exercises.lab12_language_model.judge.drawn_scaled_blocks import blocks
from edl_labs.numerics import E4M3FN, MXFP8, NVFP4

SEEDS = range(1, 6)


def drawn(seed):
    return [case.given for case in blocks(np.random.default_rng(seed))]


@pytest.mark.parametrize("seed", SEEDS)
def test_exponents_scales_and_values_are_the_librarys(solution, seed):
    for case in drawn(seed):
        x = torch.tensor(case["x"])
        mx, nvfp4 = MXFP8.quantize(x), NVFP4.quantize(x)
        exponents = solution["mx_exponents"](x, True)
        tensor_scale, block_scales = solution["nvfp4_scales"](x)

        assert np.array_equal(mx.scales.astype(int) - 127, exponents)
        assert np.array_equal(mx.dequantize(), solution["mx_values"](x, exponents).double())
        assert nvfp4.tensor_scale == tensor_scale == case["tensor_scale"]
        assert np.array_equal(NVFP4.scale.decode(nvfp4.scales), block_scales.double())
        np.testing.assert_allclose(
            nvfp4.dequantize(), solution["nvfp4_values"](x, tensor_scale, block_scales), rtol=1e-6
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_without_saturating_a_scale_is_the_smallest_that_cuts_nothing_off(solution, seed):
    for case in drawn(seed):
        x = torch.tensor(case["x"])
        exponents = solution["mx_exponents"](x, False).numpy().astype(float)
        amax = np.array([[part.abs().max() for part in row.split(32)] for row in x])
        least = exponents > -127

        assert np.all(amax <= 448 * 2.0**exponents)
        assert np.all((amax > 448 * 2.0 ** (exponents - 1))[least])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_draw_has_every_kind_of_block(solution, seed):
    exponents = [
        solution["mx_exponents"](torch.tensor(case["x"]), rule) for case in drawn(seed) for rule in (True, False)
    ]
    scales = [solution["nvfp4_scales"](torch.tensor(case["x"]))[1] for case in drawn(seed)]

    assert any((one == -127).any() for one in exponents)
    assert any((a != b).any() for a, b in zip(exponents[::2], exponents[1::2], strict=True))
    assert any((a == b).any() for a, b in zip(exponents[::2], exponents[1::2], strict=True))
    assert any((one == 2**-6).any() for one in scales)
    assert {(2, 3), (3, 2), (2, 1)} == {tuple(one.shape) for one in exponents}


def with_log2(x, saturating):
    def exponent(amax):
        if amax == 0:
            return -127
        return max(-127, math.floor(math.log2(amax)) - 8 if saturating else math.ceil(math.log2(amax / 448)))

    return torch.tensor([[exponent(float(part.abs().max())) for part in row.split(32)] for row in x])


def with_tensors_log2(x, saturating):
    amax = torch.stack([part.abs().amax(1) for part in x.split(32, dim=1)], 1)
    exponents = amax.log2().floor() - 8
    if not saturating:
        exponents = exponents + (amax > 448 * exponents.exp2()).float()
    return exponents.clamp(min=-127)


def values_of_bits(x, exponents):
    scale = torch.repeat_interleave(torch.exp2(exponents.float()), 32, dim=1)[:, : x.shape[1]]
    return E4M3FN.round(x / scale, saturate=True) * scale


def in_double(x, tensor_scale, block_scales):
    points = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    scale = block_scales.double().repeat_interleave(16, 1)[:, : x.shape[1]] * tensor_scale
    nearest = ((x.double() / scale).abs()[..., None] - points).abs().argmin(-1)
    return points[nearest] * x.sign() * scale


def scales_of_a_float(x):
    tensor_scale = float(x.abs().max()) / 2688
    amax = torch.stack([part.abs().amax(1) for part in x.split(16, dim=1)], 1).double()
    return tensor_scale, (amax / 6 / tensor_scale).clamp(2**-6, 448).float().to(torch.float8_e4m3fn).double()


@pytest.mark.parametrize(
    "other",
    [
        {"mx_exponents": with_log2, "nvfp4_scales": scales_of_a_float},
        {"mx_exponents": with_tensors_log2, "nvfp4_values": in_double},
        {"mx_values": values_of_bits},
    ],
    ids=["numbers", "log2", "values"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_ways_to_the_same_numbers_earn_all(judged, other, seed):
    outcome = judged("block_scales", seed=seed, **other)

    assert 1 == outcome.points, outcome


def test_one_block_in_five_saturates_as_the_text_says():
    assert 0.19 == pytest.approx(math.log2(512 / 448), abs=0.005)
    assert (1.03125, 0.5625) == (MXFP8.bytes_per_value, NVFP4.bytes_per_value)
