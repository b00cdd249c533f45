"""What lab03's static_scale says of mistakes that all cases show, and of answers near them."""

from __future__ import annotations

import math

import pytest

from edl_labs.exercises.lab03_mixed_precision.range_and_scale import StaticScale
from edl_labs.exercises.lab03_mixed_precision.scale_slips import known_scale_slip

NAMED = {
    "below one": "your scale is never below 1, but the right scale may be",
    "empty bins": "your code treats empty bins as values that overflow",
    "one per cent": "your scale flushes exactly 1 % of the values, but less than 1 % is allowed",
    "exponent": "your function returned the exponent of the scale, not the scale",
    "lower edge": "your code checks for overflow at the lower edge of the highest bin",
}


def answer(case, *, wrong=""):
    """A scale or a refusal, right but for what is wrong."""
    fmt, bins = case["format"], list(zip(case["exponents"], case["counts"], strict=True))
    power = 0 if wrong == "below one" else -200
    total = sum(case["counts"])

    def is_too_much(lost):
        return 100 * lost > total if wrong == "one per cent" else 100 * lost >= total

    while is_too_much(sum(n for e, n in bins if e + power <= -fmt["bias"] - fmt["mantissa_bits"])):
        power += 1
    after_last = 2 ** fmt["exponent_bits"] - fmt["bias"] - (1 if fmt["has_inf"] else 0)
    top = max(e for e, n in bins if n or wrong == "empty bins")
    if top + power + (wrong != "lower edge") >= after_last:
        return {"refused": True, "scale": 0.0}
    return {"refused": False, "scale": power if wrong == "exponent" else 2.0**power}


def told(cases, came) -> str | None:
    wrong = known_scale_slip(cases, came, [answer(case) for case in cases])
    return wrong and wrong.what


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wrong", ["", *NAMED])
def test_a_mistake_is_known_by_all_cases(exercises, seed, wrong):
    cases = exercises["static_scale"].draw_cases(seed)

    assert NAMED.get(wrong) == told(cases, [answer(case, wrong=wrong) for case in cases])


@pytest.mark.parametrize("wrong", NAMED)
def test_one_case_of_another_kind_and_nothing_is_named(exercises, wrong):
    cases = exercises["static_scale"].draw_cases(1)
    came = [answer(case, wrong=wrong) for case in cases]
    other = next(i for i, case in enumerate(cases) if came[i] == answer(case) or wrong == "exponent")
    came[other] = {"refused": not came[other]["refused"], "scale": math.pi}

    assert told(cases, came) is None


def test_a_histogram_shows_which_bins_are_empty():
    case = {"format": {"name": "fp16"}, "exponents": [-3, -2, -1, 0, 1, 2, 3], "counts": [0, 0, 5, 0, 7, 0, 0]}

    assert StaticScale().format_case(case).endswith(": 2^-1: 5, 2^1: 7\nempty bins: 2^-3 to 2^-2, 2^0, 2^2 to 2^3")
    assert "empty" not in StaticScale().format_case({**case, "counts": [1] * 7})
