"""The rule of attribution: every moment of a trace goes to exactly one cause."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.causes import HOLDS, LATE
from edl_labs.trace.device_work import DeviceWork
from edl_labs.trace.host_stretches import Stretch
from edl_labs.trace.trace_table import KINDS, Trace

RULE = """\
A moment in which the device is busy is computing, communicating or copying, whatever the host does: waiting on a busy
device is not synchronisation. A moment in which it is idle goes to what the host is at, since that delays the next
operation: waiting for data, allocating, copying, launching (a runtime call and the framework's operator around it), or
code of its own. One exception: launches and code come late because a synchronisation (or a blocking copy, or a freeing
of memory) held the host while the device worked; up to the time that the host was held in this step or the one before,
less what other idle time has used up of it, the idle time goes to what held it. A copy of one number to the host is
part of the read that waits for it."""

# Profilers round times to a nanosecond: two that touch may lie that far apart at either end.
_TOUCH_S = 2e-9
# About the rounding of a sum of times below a second.
_ROUNDING_S = 1e-15


@dataclass
class _Hold:
    """Time for which the host was held while the device was busy, as far as it is not yet charged."""

    event: int
    cause: str
    end_s: float
    left_s: float
    step: int


def charge(analysed: AnalysedTrace, bounds: list[float]) -> list[Stretch]:
    """Stretches that tile the time from the first of `bounds` to the last, each with its cause and what to blame."""
    host, device, starts = analysed.host, analysed.device, analysed.step_starts
    if not device.operations:
        return host.between(bounds[0], bounds[-1])
    holds = _holds(analysed)
    pieces = list(_busy(device, bounds[0], bounds[-1]))
    queue: list[_Hold] = []
    place = 0
    for gap in device.gaps(bounds[0], bounds[-1]):
        for stretch in host.between(*gap):
            while place < len(holds) and holds[place].end_s <= stretch.start_s + _TOUCH_S:
                # A wait costs whatever lead the host would have without waits of other causes.
                queue = [hold for hold in queue if hold.cause == holds[place].cause] + [holds[place]]
                place += 1
            pieces += _idle(stretch, queue, bisect_right(starts, stretch.start_s))
    return sorted(pieces)


def _busy(device: DeviceWork, start_s: float, end_s: float) -> Iterator[Stretch]:
    for busy in device.busy:
        low, high = max(busy.start_s, start_s), min(busy.end_s, end_s)
        if high > low:
            yield Stretch(low, high, busy.cause, busy.event)


def _idle(stretch: Stretch, queue: list[_Hold], step: int) -> Iterator[Stretch]:
    start_s, end_s, cause, event = stretch
    if cause not in LATE and cause != "sync":
        _spend(queue, end_s - start_s)
    while cause in LATE and start_s < end_s and queue:
        hold = queue[-1]
        if hold.step < step - 1 or hold.left_s <= 0:
            queue.pop()
            continue
        taken = min(hold.left_s, end_s - start_s)
        hold.left_s -= taken
        # A sum that misses the end by rounding must not leave an empty piece.
        stop = end_s if end_s - start_s - taken < _ROUNDING_S else start_s + taken
        yield Stretch(start_s, stop, hold.cause, hold.event)
        start_s = stop
    if start_s < end_s:
        yield Stretch(start_s, end_s, cause, event)


def _spend(queue: list[_Hold], idle_s: float) -> None:
    """Idle time with a cause of its own uses up the lead that the host would have without its waits."""
    for hold in reversed(queue):
        taken = min(hold.left_s, idle_s)
        hold.left_s -= taken
        idle_s -= taken


def _holds(analysed: AnalysedTrace) -> list[_Hold]:
    found = []
    for start_s, end_s, cause, event in analysed.host.stretches:
        if event >= 0 and cause in HOLDS and _waits(analysed.trace, event):
            step = bisect_right(analysed.step_starts, start_s)
            found.append(_Hold(event, cause, end_s, analysed.device.work_s(start_s, end_s), step))
    return found


def _waits(trace: Trace, event: int) -> bool:
    """Whether a call waits for the device; of the allocator's calls those do that give memory back."""
    kind = KINDS[trace.kind[event]]
    name = trace.names[trace.name[event]]
    return kind in ("sync", "copy call") or (kind == "alloc" and "Free" in name)
