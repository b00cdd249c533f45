"""Checked quantities: seconds, bytes, FLOPs and names that a caller may pass."""

from __future__ import annotations

import math
import operator
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError, shown

# Time inside is whole picoseconds: sums of them are exact, and alike on every computer.
PER_SECOND = 10**12
# Far beyond any machine, and small enough that products of two stay exact or finite.
MAX_SECONDS, MAX_BYTES, MAX_FLOPS = 1e6, 10**15, 1e24
# A name is a word or two: two lines of a terminal hold the longest.
MAX_NAME = 200


def whole_number(value: Any) -> int | None:
    """`value` as an int where it is a whole number of any type, such as numpy's; None otherwise, and for a bool."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def is_number(value: Any, lowest: float, highest: float) -> bool:
    """Whether `value` is a plain int or float from `lowest` to `highest`, and finite."""
    # Comparing first keeps a huge integer from being turned into a float.
    return type(value) in (int, float) and lowest <= value <= highest and math.isfinite(value)


def picoseconds(seconds: object, what: str) -> int:
    """`seconds` as whole picoseconds; VirtualGPUError unless it is a number from 0 to 1e6."""
    # NaN fails both comparisons.
    if type(seconds) in (float, int) and 0 <= seconds <= MAX_SECONDS:  # type: ignore[operator]
        return round(seconds * PER_SECOND)  # type: ignore[operator]
    raise VirtualGPUError(
        f"{what} is {shown(seconds)}",
        why=f"a duration must be a number of seconds from 0 to {MAX_SECONDS:g}",
        next="pass a duration in seconds, not a time stamp or a negative difference",
    )


def whole_bytes(count: object, what: str, *, lowest: int) -> int:
    """`count` as a number of bytes; VirtualGPUError unless it is a whole number from `lowest`."""
    if type(count) is int and lowest <= count <= MAX_BYTES:
        return count
    raise VirtualGPUError(
        f"{what} cannot have {shown(count)} bytes",
        why=f"a size must be a whole number of bytes from {lowest} to {MAX_BYTES:.0e}",
        next="multiply the number of elements by the bytes per element",
    )


def flop_count(flops: object) -> float:
    """`flops` as a number of operations; VirtualGPUError unless it is a number from 0."""
    if type(flops) in (float, int) and 0 <= flops <= MAX_FLOPS:  # type: ignore[operator]
        return float(flops)  # type: ignore[arg-type]
    raise VirtualGPUError(
        f"a kernel cannot do {shown(flops)} FLOPs",
        why=f"the work must be a number from 0 to {MAX_FLOPS:g}",
        next="count the FLOPs: a GEMM has 2MNK",
    )


def label(name: object) -> str:
    """A kernel's name; VirtualGPUError unless it is a short text."""
    if type(name) is str and 0 < len(name) <= MAX_NAME:
        return name
    raise VirtualGPUError(
        "a kernel needs a name",
        why=f"a name must be a string of 1 to {MAX_NAME} characters",
        next='name it as in launch("relu", duration_s=...)',
    )
