"""The rule of attribution: every moment of a trace goes to exactly one cause."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from edl_labs.trace.device import Device
from edl_labs.trace.host import Host, Stretch
from edl_labs.trace.table import KINDS, Trace

RULE = """\
A moment in which the device is busy is computing, communicating or copying, whatever the host does: waiting on a busy
device is no synchronisation. A moment in which it is idle goes to what the host is at, since that delays the next
operation: waiting for data, allocating, copying, launching (a runtime call and the framework's operator around it), or
code of its own. One exception: launches and code come late because a synchronisation (or a blocking copy, or a freeing
of memory) held the host while the device worked; up to the time that the host was held in this step or the one before,
less what other idle time has used up of it, the idle time goes to what held it. A copy of one number to the host is
part of the read that waits for it."""

_LATE = ("launch", "host")
_TOUCH_S = 2e-9


class Piece(NamedTuple):
    """A stretch of wall time with its cause; `event` is what to blame, an index of the table, or -1."""

    start_s: float
    end_s: float
    cause: str
    event: int


@dataclass
class _Hold:
    """Time for which the host was held while the device was busy, as far as it is not yet charged."""

    event: int
    cause: str
    end_s: float
    left_s: float
    step: int


def charge(trace: Trace, host: Host, device: Device, *, bounds: list[float], host_steps: list[float]) -> list[Piece]:
    """Pieces that tile the time from the first of `bounds` to the last; `host_steps` are the starts of the steps."""
    if not device.operations:
        return [Piece(*stretch) for stretch in host.between(bounds[0], bounds[-1])]
    holds = _holds(trace, host, device, host_steps)
    pieces = list(_busy(device, bounds[0], bounds[-1]))
    queue: list[_Hold] = []
    place = 0
    for gap in device.gaps(bounds[0], bounds[-1]):
        for stretch in host.between(*gap):
            while place < len(holds) and holds[place].end_s <= stretch.start_s + _TOUCH_S:
                # A wait costs whatever lead the host would have without waits of other causes.
                queue = [hold for hold in queue if hold.cause == holds[place].cause] + [holds[place]]
                place += 1
            pieces += _idle(stretch, queue, _step(host_steps, stretch.start_s))
    return sorted(pieces)


def _busy(device: Device, start_s: float, end_s: float) -> Iterator[Piece]:
    for busy in device.busy:
        low, high = max(busy.start_s, start_s), min(busy.end_s, end_s)
        if high > low:
            yield Piece(low, high, busy.cause, busy.event)


def _idle(stretch: Stretch, queue: list[_Hold], step: int) -> Iterator[Piece]:
    start_s, end_s, cause, event = stretch
    if cause not in _LATE and cause != "sync":
        _spend(queue, end_s - start_s)
    while cause in _LATE and start_s < end_s and queue:
        hold = queue[-1]
        if hold.step < step - 1 or hold.left_s <= 0:
            queue.pop()
            continue
        taken = min(hold.left_s, end_s - start_s)
        hold.left_s -= taken
        # A sum that misses the end by rounding must not leave an empty piece.
        stop = end_s if end_s - start_s - taken < 1e-15 else start_s + taken
        yield Piece(start_s, stop, hold.cause, hold.event)
        start_s = stop
    if start_s < end_s:
        yield Piece(start_s, end_s, cause, event)


def _spend(queue: list[_Hold], idle_s: float) -> None:
    """Idle time with a cause of its own uses up the lead that the host would have without its waits."""
    for hold in reversed(queue):
        taken = min(hold.left_s, idle_s)
        hold.left_s -= taken
        idle_s -= taken


def _holds(trace: Trace, host: Host, device: Device, host_steps: list[float]) -> list[_Hold]:
    found = []
    for start_s, end_s, cause, event in host.stretches:
        if event >= 0 and cause in ("sync", "copy", "alloc") and _waits(trace, event):
            held_s = device.work_s(start_s, end_s)
            found.append(_Hold(event, cause, end_s, held_s, _step(host_steps, start_s)))
    return found


def _waits(trace: Trace, event: int) -> bool:
    """Whether a call waits for the device; of the allocator's calls those do that give memory back."""
    kind = KINDS[trace.kind[event]]
    name = trace.names[trace.name[event]]
    return kind in ("sync", "copy call") or (kind == "alloc" and "Free" in name)


def _step(starts: list[float], moment_s: float) -> int:
    return bisect_right(starts, moment_s)
