"""What the fields of a recorded operation may hold, one check each. Nothing in a program is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edl_labs.virtual.gpu.buffers import DEVICE, MAX_REGIONS, PAGEABLE, PINNED
from edl_labs.virtual.quantities import MAX_BYTES, MAX_NAME, MAX_SECONDS

Check = Callable[[object], bool]


def number(highest: float) -> Check:
    """Numbers from 0 to `highest`."""
    return lambda value: type(value) in (int, float) and _within(value, highest)


def _within(value: Any, highest: float) -> bool:
    # Comparing first keeps a huge integer from being turned into a float.
    return 0 <= value <= highest and math.isfinite(value)


def whole(highest: int, lowest: int = 0) -> Check:
    """Whole numbers from `lowest` to `highest`."""
    return lambda value: type(value) is int and lowest <= value <= highest


def text(value: object) -> bool:
    """A name: a word or two."""
    return type(value) is str and 0 < len(value) <= MAX_NAME


def flag(value: object) -> bool:
    """Yes or no."""
    return type(value) is bool


def region_form(value: object) -> bool:
    """A region in plain form, as [buffer, start, stop]."""
    return type(value) is list and len(value) == 3 and all(map(whole(MAX_BYTES), value))


def regions(value: object) -> bool:
    """Several regions in plain form."""
    return type(value) is list and len(value) <= MAX_REGIONS and all(map(region_form, value))


def place(value: object) -> bool:
    """Where a buffer lies."""
    return type(value) is str and value in (DEVICE, PINNED, PAGEABLE)


def anything(value: object) -> bool:
    """A reading may be anything: it only has to equal the replayed one."""
    return True


INDEX, TIMES, SECONDS = whole(10**9), whole(10**9, 1), number(MAX_SECONDS)
# What operations have in common: the stream that they are issued to, their event, what they read.
ON_STREAM = {"stream": INDEX}
OF_EVENT = {"event": INDEX}
READING = {"value": anything}
