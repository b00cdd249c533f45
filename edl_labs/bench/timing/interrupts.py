"""Which blocks were interrupted: the system took the processor away from this process while they ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from edl_labs.clock import Clock, is_processor_time

_T = TypeVar("_T")
_LEAST = 10  # rounds that an interval needs
_SHARE = 0.2  # of what is left, less would be the odd ones out


def counter_for(clock: Clock) -> Callable[[], int]:
    """A count of involuntary context switches of this process; always 0 where clock or system have no such thing."""
    if not is_processor_time(clock):
        return lambda: 0
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return lambda: 0
    return lambda: getrusage(RUSAGE_SELF).ru_nivcsw


def undisturbed(values: Sequence[_T], interrupted: Sequence[bool]) -> list[_T]:
    """The values of what was not interrupted; all of them where that would leave under ten, or under a fifth.

    Which ones are left out hangs on the system's scheduler alone, not on the values and not on the order drawn.
    """
    calm = [value for value, hit in zip(values, interrupted, strict=True) if not hit]
    return calm if len(calm) >= max(_LEAST, _SHARE * len(values)) else list(values)
