"""What the device does: its operations with the calls that issued them, and when it is busy with what."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from edl_labs.trace.causes import CAUSES, CHARGED
from edl_labs.trace.host_intervals import HostInterval
from edl_labs.trace.trace_table import CALL_KINDS, DEVICE_KINDS, KINDS, Trace

# One number: what item(), a comparison or a print of a scalar brings to the host; a complex128 takes the most.
READ_BYTES = 16


_TO_HOST = re.compile(r"^item$|DtoH|D2[HM]\b|Device-to-Host|DeviceToHost|Device -> (Host|Pageable|Pinned)")


class DeviceOperation(NamedTuple):
    """A kernel, copy or collective; `call` is the index of the runtime call that issued it, -1 where unknown."""

    event: int
    cause: str
    start_s: float
    end_s: float
    stream: int
    call: int


@dataclass(frozen=True)
class DeviceWork:
    """All operations by start, and the times in which at least one runs, each with one that does."""

    operations: tuple[DeviceOperation, ...]
    busy: tuple[HostInterval, ...]

    def work_s(self, start_s: float, end_s: float) -> float:
        """How long the device is at work between two moments; bringing a number to the host does not count as work."""
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

    @cached_property
    def _starts(self) -> list[float]:
        return [busy.start_s for busy in self.busy]

    @cached_property
    def _sums(self) -> list[float]:
        work_s = (busy.end_s - busy.start_s if busy.cause != "sync" else 0.0 for busy in self.busy)
        return list(accumulate(work_s, initial=0.0))


def device_work(trace: Trace, calls: Mapping[int, int], reads: Set[int]) -> DeviceWork:
    """The device's operations and busy times; of causes that overlap, the one that comes first in the table counts.

    `calls` leads from links to the calls that issue them. A copy of one number to the host, its link in `reads`,
    belongs to the read that caused it: it counts as synchronisation.
    """
    operations = []
    for i in trace.select(*DEVICE_KINDS).tolist():
        link, kind = int(trace.link[i]), KINDS[trace.kind[i]]
        cause = "sync" if kind == "copy" and link in reads and link >= 0 else CHARGED[kind]
        start_s, end_s = float(trace.start_s[i]), float(trace.end_s[i])
        operations.append(DeviceOperation(i, cause, start_s, end_s, int(trace.stream[i]), calls.get(link, -1)))
    return DeviceWork(tuple(operations), tuple(_busy(operations)))


def merged_s(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of these (start, end) lasts."""
    total, until = 0.0, -math.inf
    for start_s, end_s in sorted(spans):
        total += max(end_s - max(start_s, until), 0.0)
        until = max(until, end_s)
    return total


def overlap(trace: Trace) -> float | None:
    """The time in which communication is hidden behind computing, as a part of all communication; None without any.

    Over the whole trace, as HolisticTraceAnalysis defines it.
    """
    communicating, computing = _spans(trace, "communication"), _spans(trace, "kernel")
    total_s = merged_s(communicating)
    if not total_s:
        return None
    hidden_s = total_s + merged_s(computing) - merged_s(communicating + computing)
    return max(0.0, round(hidden_s / total_s, 9))  # in this order: -0.0 is no text for a report


def _spans(trace: Trace, kind: str) -> list[tuple[float, float]]:
    return [(float(trace.start_s[i]), float(trace.end_s[i])) for i in trace.select(kind).tolist()]


def issuing_calls(trace: Trace) -> dict[int, int]:
    """By link the index of the first call that has it."""
    found: dict[int, int] = {}
    for i in trace.select(*CALL_KINDS).tolist():
        link = int(trace.link[i])
        if link >= 0:
            found.setdefault(link, i)
    return found


def is_to_host(trace: Trace, copy: int) -> bool:
    """Whether a copy brings data to the host, in the words of Kineto (CUDA, ROCm, XPU), nsys and VirtualGPU."""
    return bool(_TO_HOST.search(trace.names[trace.name[copy]]) or "D2H" in trace.rows[trace.row[copy]])


def tiny_reads(trace: Trace) -> set[int]:
    """The links of copies of one number to the host: those that reads such as item() cause."""
    found = set()
    for i in trace.select("copy").tolist():
        name = trace.names[trace.name[i]]
        if is_to_host(trace, i) and (name == "item" or 0 <= trace.moved_bytes[i] <= READ_BYTES):
            found.add(int(trace.link[i]))
    return found


def _busy(operations: list[DeviceOperation]) -> list[HostInterval]:
    edges = []
    for number, operation in enumerate(operations):
        if operation.end_s > operation.start_s:
            edges += [(operation.start_s, 1, number), (operation.end_s, 0, number)]
    running: dict[str, set[int]] = {cause: set() for cause in CAUSES}
    found: list[HostInterval] = []
    now = 0.0
    for moment, begins, number in sorted(edges):
        top = next((group for group in running.values() if group), None)
        if top and moment > now:
            _append(found, now, moment, operations[next(iter(top))])
        now = moment
        group = running[operations[number].cause]
        group.add(number) if begins else group.discard(number)
    return found


def _append(found: list[HostInterval], start_s: float, end_s: float, operation: DeviceOperation) -> None:
    if found and found[-1].end_s == start_s and found[-1].event == operation.event:
        found[-1] = HostInterval(found[-1].start_s, end_s, operation.cause, operation.event)
    else:
        found.append(HostInterval(start_s, end_s, operation.cause, operation.event))
