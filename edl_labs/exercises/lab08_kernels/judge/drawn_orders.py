"""The cases of order_matters: few values whose sum moves with the order, and counts that no block divides."""

from __future__ import annotations

import itertools
import math
from typing import Any

from edl_labs.checks import Case, case_source

_TRIES = 500  # one in ten draws is asked
_APART = 0.02  # of the range: how far the sums of common mistakes are from its ends
_FEW_ORDERS = 4  # of 5,040: a few hundred shuffles rarely meet one of them
# Of each format: the bits of a number, and the exponents that leave no sum too large.
_BITS = {"float16": (11, 12), "bfloat16": (8, 12), "float32": (24, 28)}


@case_source("order_matters")
def sums(rng: Any) -> list[Case]:
    formats = ("float16", "bfloat16", "float32", "float16")
    counts = (500, *(int(count) for count in rng.integers(270, 400, size=3)))
    cases = [_decided(rng, fmt, count) for fmt, count in zip(formats, counts, strict=True)]
    cases.append(_decided(rng, "float16", int(rng.integers(270, 400)), twice=True))
    return [Case.split(one, "slips") for one in cases]


def _decided(rng: Any, fmt: str, count: int, *, twice: bool = False) -> dict[str, Any]:
    """Values whose extreme sums are seen to be those of no sorted order, of no single order, and of no exact sum.

    With `twice` there are seven: the last is equal to another one, and few orders give one of the extremes.
    """
    for _ in range(_TRIES):
        values = _values(rng, fmt)
        if twice:
            values.insert(int(rng.integers(7)), min(values, key=abs))
        every = [_sum(order, fmt) for order in itertools.permutations(values)]
        least, most = min(every), max(every)
        if twice and min(every.count(least), every.count(most)) > _FEW_ORDERS:
            continue
        by_size = sorted(values, key=abs)
        orders = (values, values[::-1], sorted(values), sorted(values)[::-1], by_size, by_size[::-1])
        tried = [_sum(order, fmt) for order in orders] + [math.fsum(values)]
        away = _APART * (most - least)
        if away > 0 and all(min(abs(one - least), abs(one - most)) > away for one in tried):
            slips = _slips(values, fmt)
            if not twice:
                return {"values": values, "fmt": fmt, "count": count, "slips": slips}
            slips["equal_once"] = _extremes(itertools.permutations(sorted({*values})), fmt)
            if slips["equal_once"] != [least, most]:
                return {"values": values, "fmt": fmt, "count": count, "slips": slips}
    raise AssertionError("no order decided the sum; draw other values")


def _values(rng: Any, fmt: str) -> list[float]:
    """Two pairs that nearly cancel, and two values of the size of their rounding."""
    bits, top = _BITS[fmt]
    step = 2.0 ** (top - bits + 1)
    large = [float(rng.uniform(1, 2)) * 2.0 ** (top - down) for down in (0, 1)]
    pairs = [sign * one + step * int(rng.integers(-2, 3)) * (sign < 0) for one in large for sign in (1, -1)]
    small = [float(rng.choice([-1, 1]) * rng.uniform(0.3, 2)) * step for _ in range(2)]
    values = [_in_format(one, fmt) for one in pairs + small]
    return [values[at] for at in rng.permutation(6)]


def _in_format(value: float, fmt: str) -> float:
    mantissa, exponent = math.frexp(value)
    scale = 2 ** _BITS[fmt][0]
    return math.ldexp(round(mantissa * scale) / scale, exponent)


def _sum(order: Any, fmt: str) -> float:
    total = 0.0
    for value in order:
        total = _in_format(total + value, fmt)
    return total


def _slips(values: list[float], fmt: str) -> dict[str, list[float]]:
    """What common mistakes give, by the names that the exercise has for them."""
    exact = [sum(order) for order in itertools.permutations(values)]
    down, by_size = sorted(values)[::-1], sorted(values, key=abs)
    found = {
        "rounded_once": [_in_format(min(exact), fmt), _in_format(max(exact), fmt)],
        "never_rounded": [min(exact), max(exact)],
        "sorted": _extremes([sorted(values), down], fmt),
        "there_and_back": _extremes([values, values[::-1]], fmt),
        "as_given": _extremes([values], fmt),
        "by_size": _extremes([by_size, by_size[::-1]], fmt),
        "first_twice": _extremes([(order[0], *order) for order in itertools.permutations(values)], fmt),
    }
    for other in ("float32", "float16"):
        if other != fmt:
            found[f"in_{other}"] = _extremes(itertools.permutations(values), other)
    return found


def _extremes(orders: Any, fmt: str) -> list[float]:
    sums = [_sum(order, fmt) for order in orders]
    return [min(sums), max(sums)]
