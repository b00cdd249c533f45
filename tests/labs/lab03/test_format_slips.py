"""What lab03 says of the ends of a format that come out wrong, and of answers near the known mistakes."""

from __future__ import annotations

import math

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.encode_decode import EncodeDecode
from edl_labs.exercises.lab03_mixed_precision.range_and_scale import WhereItBreaks

TWICE = "your largest number is twice the right one: with `has_inf`, the largest exponent field means infinity or NaN"
ALL_ONES = "your code takes the pattern of all ones for the largest number, but it is NaN"


def largest(fmt, *, wrong=()):
    """The largest number of a format, with nothing wrong or some of: twice, all ones."""
    top, m = 2 ** fmt["exponent_bits"] - 1 - fmt["bias"], fmt["mantissa_bits"]
    if fmt["has_inf"]:
        return (2 - 2.0**-m) * 2.0 ** (top - ("twice" not in wrong))
    return (2 - 2.0**-m * (1 if "all ones" in wrong else 2)) * 2.0**top


def told(cases, came, *, flushed=0.5):
    want = [{"flushed": 0.5, "largest": largest(fmt), "overflows": 1, "rounded": i} for i, fmt in enumerate(cases)]
    got = [{**right, "largest": mine, "flushed": flushed} for right, mine in zip(want, came, strict=True)]
    wrong = WhereItBreaks().diagnose_all_cases(cases, got, want)
    return wrong and wrong.what


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("wrong", "what"),
    [(("twice",), TWICE), (("all ones",), ALL_ONES), (("twice", "all ones"), None), ((), None)],
)
def test_a_largest_number_is_known_by_all_formats(exercises, seed, wrong, what):
    cases = exercises["where_it_breaks"].draw_cases(seed)
    came = [largest(fmt, wrong=wrong) for fmt in cases]

    assert what == told(cases, came)
    assert told(cases, came, flushed=1.0) is None
    assert told(cases, [*came[:-1], 2 * came[-1]]) is None


@pytest.mark.parametrize(("came", "next_words"), [(math.nan, "what else must a NaN have"), (1.0, "or all ones?")])
def test_a_number_read_as_nan_where_there_is_no_infinity_is_asked_for_the_mantissa(came, next_words):
    fmt = {"name": "e4m3fn", "exponent_bits": 4, "mantissa_bits": 3, "bias": 7, "has_inf": False, "rounding": "nearest"}
    case = {"format": fmt, "codes": [0b1111000], "values": [], "kinds": []}

    with pytest.raises(Wrong) as wrong:
        EncodeDecode().compare(case, {"decoded": [came], "encoded": []}, {"decoded": [256.0], "encoded": []})

    assert next_words in wrong.value.next
