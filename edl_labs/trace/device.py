"""What the device does: its operations with the calls that issued them, and when it is busy with what."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from edl_labs.trace.host import tiny_reads
from edl_labs.trace.table import CALL_KINDS, KINDS, Trace

_CAUSE = {"kernel": "compute", "communication": "communication", "copy": "copy"}
_RANK = {"compute": 0, "communication": 1, "copy": 2, "sync": 3}


class Operation(NamedTuple):
    """A kernel, copy or collective; `call` is the index of the runtime call that issued it, -1 where unknown."""

    event: int
    cause: str
    start_s: float
    end_s: float
    stream: int
    call: int


class Busy(NamedTuple):
    """The device from `start_s` to `end_s` busy with one cause; `event` is one that runs then."""

    start_s: float
    end_s: float
    cause: str
    event: int


@dataclass(frozen=True)
class Device:
    """All operations by start, and the times in which at least one runs."""

    operations: tuple[Operation, ...]
    busy: tuple[Busy, ...]

    def __post_init__(self) -> None:
        starts = [busy.start_s for busy in self.busy]
        sums = [0.0]
        for busy in self.busy:
            sums.append(sums[-1] + (busy.end_s - busy.start_s if busy.cause != "sync" else 0.0))
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_sums", sums)

    def work_s(self, start_s: float, end_s: float) -> float:
        """How long the device is at work between two moments; bringing a number to the host is no work."""
        return max(self._until(end_s) - self._until(start_s), 0.0)

    def gaps(self, start_s: float, end_s: float) -> list[tuple[float, float]]:
        """The intervals between two moments in which the device is idle."""
        found, now = [], start_s
        for busy in self.busy[max(bisect_right(self._starts, start_s) - 1, 0) :]:
            if busy.start_s >= end_s:
                break
            if busy.start_s > now:
                found.append((now, busy.start_s))
            now = max(now, busy.end_s)
        if now < end_s:
            found.append((now, end_s))
        return found

    def _until(self, moment_s: float) -> float:
        place = bisect_left(self._starts, moment_s)
        if not place:
            return 0.0
        last = self.busy[place - 1]
        if last.cause == "sync":
            return self._sums[place - 1]
        return self._sums[place - 1] + min(moment_s, last.end_s) - last.start_s

    _starts: list[float] = None  # type: ignore[assignment]
    _sums: list[float] = None  # type: ignore[assignment]


def device_of(trace: Trace) -> Device:
    """The device's operations and busy times; at each moment computing counts before communicating and copying.

    A copy of one number to the host belongs to the read that asked for it: it counts as synchronisation.
    """
    calls = _calls(trace)
    reads = tiny_reads(trace)
    operations = []
    for i in trace.select("kernel", "copy", "communication"):
        link = int(trace.link[i])
        kind = KINDS[trace.kind[i]]
        cause = "sync" if kind == "copy" and link in reads and link >= 0 else _CAUSE[kind]
        start_s, end_s = float(trace.start_s[i]), float(trace.end_s[i])
        operations.append(Operation(int(i), cause, start_s, end_s, int(trace.stream[i]), calls.get(link, -1)))
    return Device(tuple(operations), tuple(_busy(operations)))


def _calls(trace: Trace) -> dict[int, int]:
    found: dict[int, int] = {}
    for i in trace.select(*CALL_KINDS):
        link = int(trace.link[i])
        if link >= 0:
            found.setdefault(link, int(i))
    return found


def _busy(operations: list[Operation]) -> list[Busy]:
    edges = []
    for number, operation in enumerate(operations):
        if operation.end_s > operation.start_s:
            edges += [(operation.start_s, 1, number), (operation.end_s, 0, number)]
    running: list[set[int]] = [set() for _ in _RANK]
    found: list[Busy] = []
    now = 0.0
    for moment, begins, number in sorted(edges):
        top = next((group for group in running if group), None)
        if top and moment > now:
            _append(found, now, moment, operations[next(iter(top))])
        now = moment
        group = running[_RANK[operations[number].cause]]
        group.add(number) if begins else group.discard(number)
    return found


def _append(found: list[Busy], start_s: float, end_s: float, operation: Operation) -> None:
    if found and found[-1].end_s == start_s and found[-1].event == operation.event:
        found[-1] = found[-1]._replace(end_s=end_s)
    else:
        found.append(Busy(start_s, end_s, operation.cause, operation.event))
