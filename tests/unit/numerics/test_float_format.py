"""Formats against torch, bit by bit, and against what their limits must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from edl_labs.errors import UsageError
from edl_labs.numerics import FORMATS, FP16, FP32, FP64, TF32, FloatFormat, float_format, torch_dtype

SIGNED_SMALL = ["fp16", "bf16", "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"]
SMALL = [*SIGNED_SMALL, "e8m0fnu"]
BITS = {8: torch.uint8, 16: torch.uint16, 32: torch.uint32, 64: torch.uint64}


def torch_bits(values: torch.Tensor, name: str) -> np.ndarray:
    return values.to(torch_dtype(name)).view(BITS[FORMATS[name].bits]).numpy()


def torch_saturates(name: str) -> bool:
    """Whether this torch turns what is too large into the largest value; it changed for e4m3fn (pytorch #178817)."""
    return name == "e4m3fn" and bool(torch.tensor(1e9).to(torch_dtype(name)).float().isfinite())


def same_values(expected: np.ndarray, actual: np.ndarray) -> bool:
    """Equal, NaN to NaN, minus zero to minus zero."""
    equal = (expected == actual) & (np.signbit(expected) == np.signbit(actual))
    return bool(np.all(equal | (np.isnan(expected) & np.isnan(actual))))


def midpoints_and_neighbours(name: str) -> torch.Tensor:
    """Every value of the format, every midpoint of two neighbours, and the fp32 values on both sides of these."""
    values = FORMATS[name].all_values()
    finite = np.unique(values[np.isfinite(values)])
    beyond = finite[-1] + (finite[-1] - finite[-2]) * np.array([0.25, 0.5, 0.75, 1, 1.5, 2, 64])
    points = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, beyond[np.abs(beyond) < 3.4e38], -beyond])
    exact = torch.tensor(points[np.abs(points) < 3.4e38].astype(np.float32))
    infinity = torch.full_like(exact, math.inf)
    edges = torch.tensor([0.0, -0.0, math.inf, -math.inf, 1e30, -1e30, 1e-30, 1e-44])
    return torch.cat([exact, torch.nextafter(exact, infinity), torch.nextafter(exact, -infinity), edges])


@pytest.mark.parametrize("name", SMALL)
def test_every_pattern_decodes_to_torchs_value(name: str) -> None:
    fmt = FORMATS[name]
    patterns = np.arange(2**fmt.bits, dtype=fmt.bit_dtype)
    expected = torch.from_numpy(patterns.copy()).view(torch_dtype(name)).double().numpy()

    assert same_values(expected, fmt.decode(patterns))


@pytest.mark.parametrize("name", SMALL)
def test_every_value_encodes_to_its_own_pattern(name: str) -> None:
    fmt = FORMATS[name]
    patterns = np.arange(2**fmt.bits, dtype=fmt.bit_dtype)
    numbers = ~np.isnan(fmt.all_values())

    assert np.array_equal(patterns[numbers], fmt.encode(fmt.decode(patterns[numbers])))


@pytest.mark.parametrize("name", SIGNED_SMALL)
def test_rounding_at_every_value_midpoint_and_neighbour_is_torchs(name: str) -> None:
    points = midpoints_and_neighbours(name)

    assert np.array_equal(torch_bits(points, name), FORMATS[name].encode(points, saturate=torch_saturates(name)))


@pytest.mark.parametrize("name", SMALL)
def test_not_a_number_stays_none_with_and_without_saturation(name: str) -> None:
    assert torch.tensor(math.nan).to(torch_dtype(name)).float().isnan()
    assert math.isnan(FORMATS[name].round(math.nan))
    assert math.isnan(FORMATS[name].round(math.nan, saturate=True))


@pytest.mark.parametrize("name", SIGNED_SMALL)
def test_rounding_of_random_fp32_patterns_is_torchs(name: str) -> None:
    bits = np.random.default_rng(7).integers(0, 2**32, 200_000, dtype=np.uint32)
    points = torch.from_numpy(bits.view(np.float32))
    points = points[~points.isnan()]

    assert np.array_equal(torch_bits(points, name), FORMATS[name].encode(points, saturate=torch_saturates(name)))


def test_e8m0_rounds_as_torch_does_from_fp32s_smallest_normal_on() -> None:
    # Below 2^-126 torch rounds everything above 2^-127 up; nearest would be down for the lower half.
    bits = np.random.default_rng(8).integers(2**23, 2**31, 100_000, dtype=np.uint32)
    points = torch.from_numpy(bits.view(np.float32))

    assert np.array_equal(torch_bits(points, "e8m0fnu"), FORMATS["e8m0fnu"].encode(points))


def test_random_fp64_patterns_survive_fp64_and_round_to_fp32_as_torch_rounds() -> None:
    bits = np.random.default_rng(9).integers(0, 2**64, 200_000, dtype=np.uint64)
    values = bits.view(np.float64)
    numbers = ~np.isnan(values)

    assert np.array_equal(bits[numbers], FP64.encode(values[numbers]))
    assert np.array_equal(bits[numbers].view(np.float64), FP64.decode(bits[numbers]))
    assert np.array_equal(torch_bits(torch.from_numpy(values[numbers]), "fp32"), FP32.encode(values[numbers]))


def test_subnormal_fp32_rounds_as_torch_rounds() -> None:
    values = torch.from_numpy(np.random.default_rng(3).normal(size=50_000) * 2.0**-140)

    assert np.array_equal(torch_bits(values, "fp32"), FP32.encode(values))


@pytest.mark.parametrize("name", [*SIGNED_SMALL, "fp32", "fp64"])
def test_limits_are_torchs(name: str) -> None:
    info = torch.finfo(torch_dtype(name))
    limits = FORMATS[name].limits()

    assert (info.max, info.smallest_normal, info.eps) == (
        limits["largest"],
        limits["smallest_normal"],
        limits["eps"],
    )


def test_four_bit_values_are_those_of_the_microscaling_specification() -> None:
    positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]

    assert positive + [-value for value in positive] == FORMATS["e2m1fn"].all_values().tolist()
    assert [6.0, -6.0, 6.0] == FORMATS["e2m1fn"].round([7.0, -1e9, math.inf]).tolist()


def test_tf32_has_fp32s_range_and_fp16s_steps() -> None:
    assert 19 == TF32.bits
    assert FP32.smallest_normal == TF32.smallest_normal
    assert FP16.eps == TF32.eps
    assert 1 + 2**-10 == TF32.round(1 + 2**-10 + 2**-12)


def test_a_step_is_the_distance_to_the_next_value() -> None:
    values = np.unique(np.abs(FP16.all_values()[np.isfinite(FP16.all_values())]))

    assert np.array_equal(np.diff(values), FP16.ulp(values[:-1]))
    assert math.isnan(FP16.ulp(1e6))


@pytest.mark.parametrize(
    ("exponent_bits", "mantissa_bits", "bias", "specials"),
    [(3, 4, 3, "ieee"), (3, 4, 1, "fn"), (6, 2, 40, "fnuz"), (2, 3, -2, "finite"), (5, 6, 15, "ieee"), (1, 4, 0, "fn")],
)
def test_rounding_in_any_format_is_a_search_for_the_nearest_value(
    exponent_bits: int, mantissa_bits: int, bias: int, specials: str
) -> None:
    fmt = FloatFormat("own", exponent_bits, mantissa_bits, bias, specials)
    values = fmt.all_values()
    finite = np.unique(values[np.isfinite(values)])
    drawn = np.random.default_rng(1).uniform(-fmt.largest, fmt.largest, 300)
    points = np.concatenate([drawn, drawn * 2.0**-8, (finite[1:] + finite[:-1]) / 2])
    distance = np.abs(finite[:, None] - points)

    nearest = fmt.round(points)

    assert np.array_equal(distance.min(axis=0), np.abs(nearest - points))
    ties = (distance == distance.min(axis=0)).sum(axis=0) > 1
    assert not np.any(fmt.encode(points[ties]) % 2)


def test_saturating_keeps_what_is_too_large_at_the_end_of_the_range() -> None:
    e4m3fn = FORMATS["e4m3fn"]

    assert [448.0, 448.0, -448.0] == e4m3fn.round([464.0, 500.0, -1e9], saturate=True).tolist()
    assert math.isnan(e4m3fn.round(500.0))
    assert [math.inf, 65504.0] == [FP16.round(math.inf, saturate=how) for how in (False, True)]
    assert math.isnan(e4m3fn.round(-math.inf))


def test_what_goes_in_decides_what_comes_out() -> None:
    tensor = torch.tensor([[0.1, 70000.0]], requires_grad=True)

    assert isinstance(FP16.round(0.1), float)
    assert isinstance(FP16.encode(1), int)
    assert np.ndarray is type(FP16.round([0.1]))
    assert (torch.float32, (1, 2)) == (FP16.round(tensor).dtype, tuple(FP16.round(tensor).shape))
    assert torch.equal(tensor.detach().half().float(), FP16.round(tensor))
    assert (0,) == FP16.round(torch.empty(0)).shape


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: FloatFormat("x", 12, 3), "exponent_bits must be a whole number from 1 to 11"),
        (lambda: FloatFormat("x", 5, 53), "mantissa_bits a whole number from 0 to 52"),
        (lambda: FloatFormat("x", 5.0, 3), "whole number"),  # type: ignore[arg-type]
        (lambda: FloatFormat("x", 5, 3, specials="inf"), "specials must be one of"),
        (lambda: FloatFormat("x", 5, 0), "two exponent bits and one mantissa"),
        (lambda: FloatFormat("x", 11, 52, bias=2000), "exceeds fp64"),
        (lambda: FloatFormat("x", 4, 3, specials="fnuz", signed=False), "needs a sign"),
        (lambda: float_format("fp17"), "the known ones are fp64"),
        (lambda: torch_dtype("tf32"), "TF32 exists only inside"),
        (lambda: torch_dtype(FloatFormat("fp16", 4, 11)), "your own formats"),
        (lambda: FP32.all_values(), "up to 16 bits"),
        (lambda: FP16.decode(65536), "outside 0"),
        (lambda: FP16.decode(1.5), "numpy converts it to float64"),
        (lambda: FP16.decode(-1), "outside 0"),
        (lambda: FP16.round("0.1"), "numpy converts it"),
        (lambda: FP16.round(2**53 + 1), "not exact"),
        (lambda: FORMATS["e2m1fn"].encode(math.nan), "every one of its bit patterns is a number"),
    ],
)
def test_what_is_no_format_or_number_is_refused_with_the_reason(make, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()

    assert text in str(caught.value)
