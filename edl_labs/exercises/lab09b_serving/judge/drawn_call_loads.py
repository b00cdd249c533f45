"""The cases of micro_batch: a trickle, full batches, a crowd at once, a slow model, and a rule that never waits.

All times are multiples of 1/8 s, which are exact as floats, and so are their sums. Each kind holds moments at which a
limit is met exactly: a batch that is just full, a queue with its last place, a wait as long as its timeout.
"""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_EIGHTH = 0.125  # seconds


@case_source("micro_batch")
def loads(rng: Any) -> list[Case]:
    kinds = (_trickle, _full_batches, _crowd, _slow_model, _no_wait)
    return [Case(given=kind(rng)) for kind in kinds]


def _eighths(rng: Any, least: int, most: int) -> int:
    """A number of eighths of a second, both ends among them."""
    return int(rng.integers(least, most + 1))


def _load(came: list[int], base: int, each: int, **limits: Any) -> dict[str, Any]:
    """A load from times in eighths."""
    for name in ("max_wait", "timeout"):
        limits[f"{name}_s"] = _EIGHTH * limits.pop(name)
    given = {"arrivals_s": [_EIGHTH * at for at in sorted(came)], "base_s": _EIGHTH * base, "each_s": _EIGHTH * each}
    order = ("max_batch", "max_wait_s", "max_queue", "timeout_s")
    return {**given, "limits": {name: limits[name] for name in order}}


def _steps(rng: Any, start: int, count: int, least: int, most: int) -> list[int]:
    """Arrivals one after the other, from `start` on."""
    came = [start]
    for _ in range(count - 1):
        came.append(came[-1] + _eighths(rng, least, most))
    return came


def _trickle(rng: Any) -> dict[str, Any]:
    """Few come: batches begin because their oldest has waited, while others have come meanwhile."""
    wait = _eighths(rng, 5, 8)
    came = _steps(rng, _eighths(rng, 0, 4), 3, 2, wait // 2)  # within the first one's wait
    came.append(came[0] + wait)  # at the moment at which it ends
    came += _steps(rng, came[-1] + wait + 20, 5, 2, wait - 1)
    return _load(came, _eighths(rng, 2, 4), 1, max_batch=8, max_wait=wait, max_queue=16, timeout=60)


def _full_batches(rng: Any) -> dict[str, Any]:
    """Exactly a batch at once, then more than one while it runs, then too few."""
    most, wait, base = _eighths(rng, 3, 5), _eighths(rng, 6, 10), _eighths(rng, 12, 16)
    start = _eighths(rng, 0, 4)
    came = [start] * most + _steps(rng, start + 2, most + 1, 1, 2)
    came += _steps(rng, came[-1] + 6 * base, 2, 1, 3)
    return _load(came, base, 1, max_batch=most, max_wait=wait, max_queue=4 * most, timeout=100)


def _crowd(rng: Any) -> dict[str, Any]:
    """More at once than may wait, and again when the first batch has gone."""
    most, start = _eighths(rng, 2, 4), _eighths(rng, 0, 4)
    queue, base = 2 * most + _eighths(rng, 1, 2), _eighths(rng, 8, 12)
    came = [start] * (queue + _eighths(rng, 1, 3)) + [start + _eighths(rng, 1, 4)] * (most + 2)
    came += _steps(rng, start + 8 * (base + most), 3, 1, 3)
    return _load(came, base, 1, max_batch=most, max_wait=4, max_queue=queue, timeout=200)


def _slow_model(rng: Any) -> dict[str, Any]:
    """Some wait for longer than they may while the model is busy; one for exactly as long as it may."""
    timeout, wait = _eighths(rng, 16, 24), _eighths(rng, 2, 4)
    base, each = timeout + _eighths(rng, 6, 10), 1
    start = _eighths(rng, 0, 4)
    idle = start + wait + base + each  # when the first batch, of one request, has ended
    came = [start, *_steps(rng, start + wait + 1, 2, 1, 1), idle - timeout - 1, idle - timeout]
    came += _steps(rng, idle - timeout + 2, 4, 1, 3)
    return _load(came, base, each, max_batch=4, max_wait=wait, max_queue=20, timeout=timeout)


def _no_wait(rng: Any) -> dict[str, Any]:
    """A rule that never waits: batches grow while the model is busy."""
    start = _eighths(rng, 0, 4)
    came = _steps(rng, start, 8, 1, 6) + [start + 60] * 2
    return _load(came, _eighths(rng, 8, 12), 1, max_batch=_eighths(rng, 3, 4), max_wait=0, max_queue=12, timeout=100)
