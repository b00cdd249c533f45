"""Sizes and amounts that users give, checked with the same words everywhere."""

from __future__ import annotations

import math
from numbers import Real

from edl_labs.errors import UsageError


def pair(name: str, value: int | tuple[int, int], *, least: int = 1) -> tuple[int, int]:
    """A height and a width from one number or two."""
    both = (value, value) if isinstance(value, int) else tuple(value)
    if len(both) != 2:
        raise UsageError(
            f"{name} is {value!r}",
            why="this size consists of a height and a width",
            next="pass one number or two numbers",
        )
    for size in both:
        check_size(name, size, least=least)
    return both[0], both[1]


def check_sizes(**sizes: object) -> None:
    """UsageError for the first size that is not a whole number of at least 1."""
    for name, size in sizes.items():
        check_size(name, size)


def check_size(name: str, size: object, *, least: int = 1) -> None:
    """UsageError unless `size` is a whole number of at least `least`."""
    whole = isinstance(size, int) or (hasattr(size, "__index__") and not isinstance(size, float))
    if isinstance(size, bool) or not whole or int(size) < least:  # type: ignore[call-overload]
        raise UsageError(
            f"{name} is {repr(size)[:40]}",
            why=f"a size must be a whole number of at least {least}",
            next=f"pass {name} as a number of elements",
        )


def check_amount(name: str, value: object) -> None:
    """UsageError unless `value` is a finite number that is not negative."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:  # type: ignore[operator]
        raise UsageError(
            f"{name} is {repr(value)[:40]}",
            why="an amount of work must be a finite number of 0 or more",
            next="count FLOPs and bytes from the shapes, or use the functions of edl_labs.roofline.work",
        )


def check_rate(name: str, value: object) -> None:
    """UsageError unless `value` is a finite number above 0."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:  # type: ignore[operator]
        raise UsageError(
            f"{name} is {repr(value)[:40]}",
            why="a rate or a time must be a positive, finite number",
            next=f"pass {name} in SI units, such as 300e9 for 300 GB/s",
        )
