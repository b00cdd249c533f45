"""encode_decode, where_it_breaks and static_scale: the solution against torch, and what else students may write."""

from __future__ import annotations

import math

import pytest
import torch

from edl_labs.exercises.lab03_mixed_precision.judge.drawn_formats import NAMED

FP16, BF16, E4M3FN, E5M2 = (dict(one) for one in NAMED)
TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def as_torch(codes: list[int], fmt: dict) -> torch.Tensor:
    bits = torch.tensor(codes)
    width = torch.int16 if 1 + fmt["exponent_bits"] + fmt["mantissa_bits"] == 16 else torch.uint8
    size = 2**16 if width is torch.int16 else 2**8
    return (
        torch.where(bits >= size // 2, bits - size, bits).to(width).view(TORCH[fmt["name"]]).double()
        if (width is torch.int16)
        else bits.to(width).view(TORCH[fmt["name"]]).float().double()
    )


@pytest.mark.parametrize("fmt", [FP16, BF16, E4M3FN, E5M2], ids=list(TORCH))
def test_the_solution_decodes_every_code_as_torch_does(solution, fmt):
    step = 1 if fmt["exponent_bits"] + fmt["mantissa_bits"] < 8 else 7
    codes = list(range(0, 2 << (fmt["exponent_bits"] + fmt["mantissa_bits"]), step))
    expected = as_torch(codes, fmt).tolist()
    actual = [solution["decode"](code, fmt) for code in codes]

    assert all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(expected, actual, strict=True))


@pytest.mark.parametrize("fmt", [FP16, BF16, E4M3FN, E5M2], ids=list(TORCH))
def test_the_solution_encodes_what_it_decoded(solution, fmt):
    codes = range(0, 2 << (fmt["exponent_bits"] + fmt["mantissa_bits"]), 11)
    values = {code: solution["decode"](code, fmt) for code in codes}

    assert [] == [c for c, v in values.items() if not math.isnan(v) and c != solution["encode"](v, fmt)]


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=["fp16", "bf16"])
def test_the_solution_rounds_as_torch_does(solution, fmt):
    values = torch.randn(2000, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    values = (values * 2.0 ** torch.linspace(-30, 18, 2000)).float()
    expected = values.to(TORCH[fmt["name"]]).double().tolist()

    assert expected == [solution["decode"](solution["encode"](v, fmt), fmt) for v in values.tolist()]


def test_cutting_off_never_overflows_and_never_rounds_up(solution):
    fmt = {**FP16, "rounding": "zero"}
    kept = [solution["decode"](solution["encode"](value, fmt), fmt) for value in (1e6, -1e6, 2049.9, 5.9e-8, math.inf)]

    assert [65504.0, -65504.0, 2048.0, 0.0, math.inf] == kept


@pytest.mark.parametrize("bits", [1, 16, 40])
def test_a_code_that_is_too_long_is_refused(judged, bits):
    assert judged("encode_decode", encode=lambda value, fmt: 1 << (20 + bits)).points == 0


def test_the_librarys_format_alone_is_not_the_answer(judged):
    from edl_labs.numerics import FloatFormat

    def library(fmt):
        specials = "ieee" if fmt["has_inf"] else "fn"
        return FloatFormat("drawn", fmt["exponent_bits"], fmt["mantissa_bits"], fmt["bias"], specials)

    outcome = judged("encode_decode", encode=lambda value, fmt: int(library(fmt).encode(value)))

    assert 0 == outcome.points


def test_numpy_integers_and_floats_are_as_good_as_pythons(judged, solution):
    import numpy

    outcome = judged(
        "encode_decode",
        encode=lambda value, fmt: numpy.int64(solution["encode"](value, fmt)),
        decode=lambda code, fmt: numpy.float64(solution["decode"](code, fmt)),
    )

    assert "passed" == outcome.state


def test_the_ends_are_the_decks(solution):
    ends = solution["where_it_breaks"](FP16)

    assert {"flushed": 2.0**-25, "largest": 65504, "overflows": 65520, "rounded": 2049} == ends
    assert (465, 61440, 257) == (
        solution["where_it_breaks"](E4M3FN)["overflows"],
        solution["where_it_breaks"](E5M2)["overflows"],
        solution["where_it_breaks"](BF16)["rounded"],
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_ends_may_be_found_by_searching(judged, solution, seed):
    encode, decode = solution["encode"], solution["decode"]

    def searched(fmt):
        width = fmt["exponent_bits"] + fmt["mantissa_bits"]
        numbers = [v for v in (decode(code, fmt) for code in range(1 << width)) if math.isfinite(v)]
        tie = max(numbers) + (max(numbers) - numbers[-2]) / 2
        fits = math.isfinite(decode(encode(tie, fmt), fmt))
        rounded = next(n for n in range(1, 10**4) if decode(encode(float(n), fmt), fmt) != n)
        return {"flushed": numbers[1] / 2, "largest": max(numbers), "overflows": tie + fits, "rounded": rounded}

    assert "passed" == judged("where_it_breaks", seed=seed, where_it_breaks=searched).state


@pytest.mark.parametrize("seed", range(4))
def test_a_static_scale_does_what_the_library_measures(solution, exercises, seed):
    from edl_labs.numerics import FP16 as FORMAT
    from edl_labs.numerics import underflow_report

    done = 0
    for case in exercises["static_scale"].draw_cases(seed):
        if case["format"]["name"] != "fp16":
            continue
        values = [2.0**e for e, n in zip(case["exponents"], case["counts"], strict=True) for _ in range(-(-n // 50))]
        try:
            scale = solution["static_scale"](case["exponents"], case["counts"], case["format"])
        except ValueError:
            continue
        report = underflow_report(torch.tensor(values, dtype=torch.float64), FORMAT, scale=scale)
        done += 1

        assert report.flushed < 0.03
        assert 0 == report.overflowed
    assert done


@pytest.mark.parametrize("answer", [0.0, -2.0, math.nan, math.inf, 3.0])
def test_a_scale_that_is_no_power_of_two_is_told_so(judged, answer):
    assert "your scale is not a power of two" == judged("static_scale", static_scale=lambda *given: answer).what


def test_zero_keeps_its_sign_when_it_is_decoded(judged, solution):
    def decode(code, fmt):
        return solution["decode"](code, fmt) or 0

    assert judged("encode_decode", decode=decode).what.startswith("your decode() loses the sign of a zero")


def test_the_librarys_format_is_not_the_answer_behind_its_methods(judged):
    """It rounds to nearest alone, and most of the drawn formats cut off."""
    from edl_labs.numerics import FloatFormat

    def made(fmt):
        sizes = {name: fmt[name] for name in ("name", "exponent_bits", "mantissa_bits", "bias")}
        return FloatFormat(**sizes, specials="ieee" if fmt["has_inf"] else "fn")

    def decode(code, fmt):
        return float(made(fmt).decode(code))

    def encode(value, fmt):
        return int(made(fmt).encode(value))

    outcome = judged("encode_decode", decode=decode, encode=encode)

    assert 0 == outcome.points
    assert outcome.cases_right  # it is an answer to some
