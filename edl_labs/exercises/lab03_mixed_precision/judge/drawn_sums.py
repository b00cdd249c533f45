"""The cases of accumulate_sum: values to add, in formats of few bits."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab03_mixed_precision.recorded_sums import LARGEST_ERROR, rounded

_CHUNKS = (24, 32, 40, 48)  # as one would choose them for a thousand values; the square root is tried too
_SHORT = ({"name": "fp16", "mantissa_bits": 10, "low": -14}, {"name": "bf16", "mantissa_bits": 7, "low": -126})


@case_source("accumulate_sum")
def sums(rng: Any) -> list[Case]:
    deck = [{**fmt, "values": [0.01] * 1000} for fmt in _SHORT]
    drawn = [_drawn(rng, bits) for bits in (7, 10, int(rng.integers(4, 7)), int(rng.integers(7, 10)))]
    biased = [_biased(rng, bits) for bits in (7, 10)]
    return [
        Case.split({**one, "values": [rounded(v, one) for v in one["values"]]}, "name") for one in deck + drawn + biased
    ]


def _biased(rng: Any, bits: int) -> dict[str, Any]:
    """One value over and over, whose roundings all go the same way in sums that are not much shorter than the whole."""
    while True:
        fmt = _drawn(rng, bits)
        count, value = len(fmt["values"]), rounded(fmt["values"][0], fmt)
        if all(_off_in_chunks(value, count, size, fmt) > 1.5 * LARGEST_ERROR for size in (*_CHUNKS, math.isqrt(count))):
            return {**fmt, "values": [value] * count}


def _off_in_chunks(value: float, count: int, size: int, fmt: dict[str, Any]) -> float:
    """The error of sums of `size` equal values that are then added up, in the format's own roundings."""
    rest = [_one_by_one([value] * (count % size), fmt)] if count % size else []
    whole = _one_by_one([_one_by_one([value] * size, fmt)] * (count // size) + rest, fmt)
    return abs(whole - count * value) / (count * value) * 2.0 ** (fmt["mantissa_bits"] + 1)


def _one_by_one(values: list[float], fmt: dict[str, Any]) -> float:
    total = values[0]
    for value in values[1:]:
        total = rounded(total + value, fmt)
    return total


def _drawn(rng: Any, bits: int) -> dict[str, Any]:
    count = int(rng.integers(700, 1400))
    middle = float(2.0 ** rng.integers(-8, 3)) * float(rng.uniform(1, 2))
    values = [middle * float(part) for part in rng.uniform(0.6, 1.4, size=count)]
    return {"name": f"1+8+{bits} bits", "mantissa_bits": bits, "low": -126, "values": values}
