"""Faster than light: a time below what the stated work takes on the stated machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edl_labs.bench.detectors.detector import Detector
from edl_labs.errors import UsageError
from edl_labs.units import seconds, si

_FLOPS = ("flops", "flop", "contraction_flops")
_BYTES = ("moved_bytes", "bytes")
_RATE = ("peak_flop_per_s", "flop_per_s")
_BANDWIDTH = ("bandwidth_byte_per_s", "memory_bandwidth_byte_per_s", "byte_per_s")


class FasterThanLight(Detector):
    """The time is below what the stated work takes on the stated machine."""

    kind = "faster_than_light"
    what = "this is faster than the machine can be"
    why = "{detail}"
    next = (
        "check that the work is what the function does, that it runs on this machine, and that the clock waits for it"
    )


def bound_s(work: Any, machine: Any) -> float:
    """The least seconds that `work` takes on `machine`: max(FLOPs / peak, bytes / bandwidth), 0 if nothing is known.

    Both are values with these attributes, or mappings; `work` may also be the bound itself, in seconds. A machine that
    has `least_s(work)` (a roofline's does) answers itself.

    >>> bound_s({"flops": 2e9, "moved_bytes": 1e6}, {"peak_flop_per_s": 1e12, "bandwidth_byte_per_s": 1e9})
    0.002
    """
    if isinstance(work, (int, float)) and not isinstance(work, bool):
        return float(work)
    if machine is None:
        raise UsageError("work= without machine=", why="a bound needs both", next="give machine=, or work= in seconds")
    if callable(getattr(machine, "least_s", None)) and hasattr(work, "dtype"):
        return float(machine.least_s(work))
    flops = _number(work, _FLOPS, work) or 0.0
    other = _number(work, ("other_flops",), work) or 0.0
    moved = _number(work, _BYTES, work) or 0.0
    peak, bandwidth = _number(machine, _RATE, work), _number(machine, _BANDWIDTH, work)
    times = [(flops + other) / peak if peak else 0.0, moved / bandwidth if bandwidth else 0.0]
    return max(times)


def excess(time_s: float, low_s: float, *, work: Any, machine: Any) -> str:
    """Why a time is impossible, or '': its whole interval lies more than 2 % below the bound."""
    least = bound_s(work, machine)
    if not 0 < max(low_s, time_s) < 0.98 * least:
        return ""
    facts = [si(value, unit) for unit, value in _facts(work)]
    of = f" for {', '.join(facts)}" if facts else ""
    return f"{seconds(time_s)} a call, where the machine's limit{of} is {seconds(least)}"


def _facts(work: Any) -> list[tuple[str, float]]:
    if isinstance(work, (int, float)):
        return []
    pairs = [("FLOP", _number(work, _FLOPS, work)), ("B", _number(work, _BYTES, work))]
    return [(unit, value) for unit, value in pairs if value]


def _number(value: Any, names: tuple[str, ...], work: Any) -> float | None:
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if callable(found):
            found = found(_get(work, "dtype") or "fp32")
        if isinstance(found, Mapping):
            found = found.get(str(_get(work, "dtype") or "fp32"))
        if isinstance(found, (int, float)):
            return float(found)
    return None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
