"""The cases of order_matters: few values whose sum moves with the order, and counts that no block divides."""

from __future__ import annotations

import itertools
from typing import Any

from edl_labs.checks import draws

_TRIES = 500  # one in ten draws is asked
# Of each format: the bits of a number, and the exponents that leave no sum too large.
_BITS = {"float16": (11, 12), "bfloat16": (8, 12), "float32": (24, 28)}


@draws("order_matters")
def sums(rng: Any) -> list[Any]:
    formats = ("float16", "bfloat16", "float32", "float16")
    counts = (1000, int(rng.integers(300, 700)), int(rng.integers(100, 250)), int(rng.integers(700, 1000)))
    return [_decided(rng, fmt, count) for fmt, count in zip(formats, counts, strict=True)]


def _decided(rng: Any, fmt: str, count: int) -> dict[str, Any]:
    """Values whose extreme sums are those of neither sorted order, nor of the order given."""
    for _ in range(_TRIES):
        values = _values(rng, fmt)
        every = [_sum(order, fmt) for order in itertools.permutations(values)]
        extremes = {min(every), max(every)}
        orders = (values, values[::-1], sorted(values), sorted(values)[::-1], sorted(values, key=abs))
        tried = {_sum(order, fmt) for order in (*orders, sorted(values, key=abs)[::-1])}
        if len(extremes) == 2 and not extremes & tried and sum(values) not in extremes:
            return {"values": values, "fmt": fmt, "count": count}
    raise AssertionError("no order decided the sum; draw other values")


def _values(rng: Any, fmt: str) -> list[float]:
    bits, top = _BITS[fmt]
    sizes = rng.integers(top - bits - 1, top + 1, size=6)
    signs = rng.choice([-1.0, 1.0], size=6)
    return [
        _in_format(float(sign * rng.uniform(1, 2) * 2.0**size), fmt) for sign, size in zip(signs, sizes, strict=True)
    ]


def _in_format(value: float, fmt: str) -> float:
    import math

    mantissa, exponent = math.frexp(value)
    scale = 2 ** _BITS[fmt][0]
    return math.ldexp(round(mantissa * scale) / scale, exponent)


def _sum(order: Any, fmt: str) -> float:
    total = 0.0
    for value in order:
        total = _in_format(total + value, fmt)
    return total
