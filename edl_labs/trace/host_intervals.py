"""What the host does at each moment: nested events of its threads, flattened into intervals with a cause each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from edl_labs.trace.causes import CHARGED, ENCLOSING, GENERATED, named_cause
from edl_labs.trace.trace_table import DEVICE_KINDS, HOST_KINDS, KINDS, NUMBER, Trace

# On a CPU an operator shorter than this is mostly dispatch: checks, strides, allocation, autograd's bookkeeping.
TINY_OPERATOR_S = 15e-6
# Of fewer steps the least time says little.
_STEPS_TO_COMPARE = 3
_CPU_COPY = re.compile(r"aten::(copy_|_to_copy|to|contiguous|clone)$")
_CPU_ALLOC = re.compile(r"aten::(empty|empty_strided|empty_like|resize_|malloc)$|\[memory\]")
_FIRST_CALL = re.compile(r"make context|load |cuModule|cuLibrary")


class HostInterval(NamedTuple):
    """From `start_s` to `end_s` one cause; `event` is its index in the table, -1 for code between events."""

    start_s: float
    end_s: float
    cause: str
    event: int


@dataclass(frozen=True)
class HostStretches:
    """The host's whole time as intervals without gaps."""

    intervals: tuple[HostInterval, ...]

    def between(self, start_s: float, end_s: float) -> list[HostInterval]:
        """The intervals from `start_s` to `end_s`, cut to it."""
        found = []
        # By index: a slice would copy the rest of the trace for each gap.
        for number in range(max(bisect_right(self._starts, start_s) - 1, 0), len(self.intervals)):
            interval = self.intervals[number]
            low, high, cause, event = interval
            if low >= end_s:
                break
            if low >= start_s and high <= end_s:
                if high > low:
                    found.append(interval)
            elif min(high, end_s) > max(low, start_s):
                found.append(HostInterval(max(low, start_s), min(high, end_s), cause, event))
        return found

    @cached_property
    def _starts(self) -> list[float]:
        return [interval.start_s for interval in self.intervals]


def host_intervals(trace: Trace, reads: Set[int], waits: Set[int]) -> HostStretches:
    """The host's intervals: where several threads are busy, the ones that issue device work hide the main one.

    `reads` are the links of copies that bring one number to the host, `waits` the calls that wait for a copy.
    """
    places = _places_in_step(trace)
    causes = _causes(trace, reads, waits, places)
    main, others = _threads(trace)
    intervals = _flat(trace, main, causes)
    for row in others:
        intervals = _over(intervals, _flat(trace, row, causes))
    filled = _filled(intervals, trace.span_s)
    return HostStretches(tuple(filled if trace.uses_device else _joined(trace, filled, places.tolist())))


def _causes(trace: Trace, reads: Set[int], waits: Set[int], places: np.ndarray) -> list[str | None]:
    """By event its cause; None where the cause is that of what is around it."""
    found: list[str | None] = []
    names, kinds = [trace.names[name] for name in trace.name.tolist()], [KINDS[kind] for kind in trace.kind.tolist()]
    named = {name: named_cause(name) for name in trace.names}
    if trace.uses_device:
        # There the device shows what communicates; the host's part of it is launching.
        named = {name: None if cause == "communication" else cause for name, cause in named.items()}
    else:
        # Generated code is no operator: what its mark holds beside operators is its own loops.
        named |= {name: "compute" for name in named if GENERATED in name}
    on_device, links = trace.uses_device, trace.link.tolist()
    longest_s = [] if on_device else _longest_part_s(trace, places)
    for i, (kind, name, around) in enumerate(zip(kinds, names, trace.parent.tolist(), strict=True)):
        above = found[around] if around >= 0 else None
        if above in ENCLOSING and kind not in ("sync", "copy call"):
            cause = above
        elif kind in ("annotation", "step", "python"):
            cause = named[name] if kind == "annotation" else above
        elif kind == "operator" and not on_device:
            cause = _cpu_operator(name, longest_s[i], above)
        elif kind == "copy call":
            # What a blocking copy takes beyond the device's own time is waiting.
            cause = "sync" if i in waits or links[i] in reads or name == "item" else CHARGED[kind]
        elif kind == "sync":
            cause = "alloc" if above == "alloc" else CHARGED[kind]
        elif kind == "work":
            cause = _work(name, above)
        else:
            # Device work that a file draws on a thread's row shows there that it was launched.
            cause = "launch" if kind in DEVICE_KINDS else CHARGED[kind]
        found.append(cause)
    return found


def _work(name: str, above: str | None) -> str | None:
    if name == "copy on the host":
        return "copy"
    return "launch" if _FIRST_CALL.match(name) else above


def _places_in_step(trace: Trace) -> np.ndarray:
    """By event a number for its place in the step, alike in all steps; -1 where there are few, or they differ.

    What an operator takes at a place is its least over steps: the rest is what else the machine was busy with.
    """
    starts = np.array([start for start, _ in trace.steps])
    found = np.full(len(trace), -1)
    if len(starts) < _STEPS_TO_COMPARE:
        return found
    operators = trace.select("operator")
    operators = operators[trace.start_s[operators] >= starts[0]]
    order = operators[np.argsort(trace.name[operators], kind="stable")]
    numbers = 0
    for mine in np.split(order, np.flatnonzero(np.diff(trace.name[order])) + 1):
        each, odd = divmod(len(mine), len(starts))
        step = np.searchsorted(starts, trace.start_s[mine], side="right") - 1
        if not odd and np.array_equal(step, np.repeat(np.arange(len(starts)), each)):
            found[mine] = numbers + np.tile(np.arange(each), len(starts))
            numbers += each
    return found


def _longest_part_s(trace: Trace, places: np.ndarray) -> list[float]:
    """By event the longest self time of it and of the operators inside: `aten::to` of a number is four small ones."""
    least_s = np.full(int(places.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least_s, places[places >= 0], trace.self_s[places >= 0])
    found = np.where(places >= 0, np.append(least_s, 0.0)[places], trace.self_s).tolist()
    parents, kinds = trace.parent.tolist(), trace.kind.tolist()
    # What is inside an event comes after it in the table.
    for event in range(len(parents) - 1, -1, -1):
        if parents[event] >= 0 and kinds[event] == NUMBER["operator"]:
            found[parents[event]] = max(found[parents[event]], found[event])
    return found


def _cpu_operator(name: str, longest_s: float, above: str | None) -> str:
    """The cause of an operator; `longest_s` is the longest self time in it: many small ones are overhead."""
    if above in ("launch", "copy", "alloc"):
        return above
    if _CPU_ALLOC.match(name):
        return "alloc"
    if longest_s < TINY_OPERATOR_S and above != "compute":
        return "launch"
    return "copy" if _CPU_COPY.match(name) else "compute"


def _threads(trace: Trace) -> tuple[int, list[int]]:
    """The main thread's row, and the other rows that issue device work (on a CPU: that run operators)."""
    host = trace.select(*HOST_KINDS)
    if not len(host):
        return -1, []
    issuing = trace.select("launch", "copy call") if trace.uses_device else trace.select("operator")
    rows = sorted({int(row) for row in trace.row[issuing]})
    steps = trace.select("step")
    weights = {row: int((trace.row[host] == row).sum()) for row in set(trace.row[host].tolist())}
    main = int(trace.row[steps[0]]) if len(steps) else max(weights, key=lambda row: (row in rows, weights[row]))
    return main, [row for row in rows if row != main]


def _flat(trace: Trace, row: int, causes: list[str | None]) -> list[HostInterval]:
    """The innermost event at each moment of one row, as intervals; nothing between them."""
    mine = (trace.row == row).nonzero()[0]
    found: list[HostInterval] = []
    stack: list[tuple[float, str, int]] = []
    now = 0.0
    own = [causes[event] or "host" for event in mine.tolist()]
    events = zip(trace.start_s[mine].tolist(), trace.end_s[mine].tolist(), own, mine.tolist(), strict=True)
    for start_s, end_s, of, event in (*events, (float("inf"), 0.0, "", -1)):
        while stack and now < start_s:
            until_s, cause, top = stack[-1]
            stop_s = min(until_s, start_s)
            if stop_s > now:
                found.append(HostInterval(now, stop_s, cause, top))
                now = stop_s
            if until_s <= start_s:
                stack.pop()
        now = max(now, start_s)
        stack.append((end_s, of, event))
    return found


def _joined(trace: Trace, intervals: list[HostInterval], places: list[int]) -> list[HostInterval]:
    """On a CPU the short way from one small operator to the next is overhead, as the operators themselves are."""
    found = intervals[:]
    between = [
        place
        for place in range(1, len(intervals) - 1)
        if intervals[place].cause == "host" and intervals[place - 1].cause == intervals[place + 1].cause == "launch"
    ]
    taken_s: dict[int, list[float]] = defaultdict(list)
    for place in between:
        taken_s[places[intervals[place - 1].event]].append(intervals[place].end_s - intervals[place].start_s)
    for place in between:
        start_s, end_s, _, _ = intervals[place]
        here = taken_s[places[intervals[place - 1].event]] if places[intervals[place - 1].event] >= 0 else []
        # Where a step goes from the one to the other at once, its way there is no code.
        least_s = 0.0 if 0 < len(here) < len(trace.steps) else min([*here, end_s - start_s])
        if least_s < TINY_OPERATOR_S:
            found[place] = HostInterval(start_s, end_s, "launch", intervals[place + 1].event)
    return found


def _over(below: list[HostInterval], above: list[HostInterval]) -> list[HostInterval]:
    """Two rows of intervals as one; `above` hides `below`."""
    found: list[HostInterval] = []
    place = 0
    for start_s, end_s, cause, event in below:
        now = start_s
        while place < len(above) and above[place].end_s <= now:
            place += 1
        look = place
        while look < len(above) and above[look].start_s < end_s:
            if above[look].start_s > now:
                found.append(HostInterval(now, above[look].start_s, cause, event))
            now = max(now, above[look].end_s)
            look += 1
        if now < end_s:
            found.append(HostInterval(now, end_s, cause, event))
    return sorted([*found, *above])


def _filled(intervals: list[HostInterval], span_s: float) -> list[HostInterval]:
    """The same without gaps: where nothing is known to run, the host is at its own code."""
    found: list[HostInterval] = []
    now = 0.0
    for interval in intervals:
        start_s, end_s, cause, event = interval
        if end_s <= now:
            continue
        if start_s > now:
            found.append(HostInterval(now, start_s, "host", -1))
        found.append(interval if start_s >= now else HostInterval(now, end_s, cause, event))
        now = end_s
    if now < span_s:
        found.append(HostInterval(now, span_s, "host", -1))
    return found
