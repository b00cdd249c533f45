"""The cases of accumulate_sum: values to add, in formats of few bits."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws
from edl_labs.exercises.lab03_mixed_precision.recorded_sums import rounded

_SHORT = ({"name": "fp16", "mantissa_bits": 10, "low": -14}, {"name": "bf16", "mantissa_bits": 7, "low": -126})


@draws("accumulate_sum")
def sums(rng: Any) -> list[Any]:
    deck = [{**fmt, "values": [0.01] * 1000} for fmt in _SHORT]
    drawn = [_drawn(rng, bits) for bits in (7, 10, int(rng.integers(4, 7)), int(rng.integers(7, 10)))]
    return [{**one, "values": [rounded(v, one) for v in one["values"]]} for one in deck + drawn]


def _drawn(rng: Any, bits: int) -> dict[str, Any]:
    count = int(rng.integers(700, 1400))
    middle = float(2.0 ** rng.integers(-8, 3)) * float(rng.uniform(1, 2))
    values = [middle * float(part) for part in rng.uniform(0.6, 1.4, size=count)]
    return {"name": f"1+8+{bits} bits", "mantissa_bits": bits, "low": -126, "values": values}
