"""The dependency graph of a trace: what the host does in turn, what that issues, and what waits for what."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median

from edl_labs.trace.blocking_copies import BlockingCopy
from edl_labs.trace.device_work import DeviceOperation, DeviceWork, is_to_host
from edl_labs.trace.host_intervals import HostInterval, HostStretches
from edl_labs.trace.trace_table import KINDS, Trace

# Device and host clocks of real traces agree to about a microsecond.
_TOUCH_S = 1e-6
# How many operations CUDA lets a stream hold before a launch waits, where the trace does not say.
_DEPTH = 1024
# How long a call that waits for its copy takes to issue it: a launch's usual time.
_ISSUE_S = 5e-6
# A queue without an end: more operations than any trace holds.
_ENDLESS = 10**9
# Sums of times within a trace differ by less than this for rounding alone.
_SAME_MOMENT_S = 1e-12
# The engine of copies that bring something to the host.
TO_HOST = "copy to host"
_WIDE = re.compile(r"^synchronize$|Device|Ctx|Context|Free")
_WAITS = ("sync", "copy call", "alloc", "queue full")


@dataclass(slots=True)
class DependencyNode:
    """A device operation; starts `lag_s` after its launch has arrived, lane and engine are free, `after` is over.

    `is_read`: the host waits for what it brings; `is_upload`: the host waits until it is over.
    """

    cause: str
    duration_s: float
    lane: int
    engine: str
    lag_s: float = 0.0
    queued: bool = False
    after: int = -1
    step: int = 0
    is_read: bool = False
    is_upload: bool = False


@dataclass(slots=True)
class Act:
    """An interval of the host: takes `duration_s`, issues nodes at offsets, may wait for a node and `tail_s` beyond it.

    `all_lanes`: it waits for everything issued before it, not for that node alone. `uploads`: it waits for a copy to
    the device. `step` is -1 before the first step, and the number of steps after the last.
    """

    cause: str
    duration_s: float
    step: int
    kind: str
    all_lanes: bool
    uploads: bool = False
    issues: list[tuple[int, float]] = field(default_factory=list)
    awaits: int = -1
    tail_s: float = 0.0


@dataclass(frozen=True)
class DependencyGraph:
    """The host's acts in order, and the nodes that they issue, in the order of issue.

    `launched_lag_s` and `queued_lag_s` are how long a node starts after its launch arrives at an idle device, and after
    the one before it: medians of the trace. `depth` is how many operations may be under way in a lane.
    """

    acts: tuple[Act, ...]
    nodes: tuple[DependencyNode, ...]
    steps: int
    launched_lag_s: float
    queued_lag_s: float
    depth: int

    @cached_property
    def causes(self) -> frozenset[str]:
        """The causes that occur in it."""
        return frozenset({act.cause for act in self.acts} | {node.cause for node in self.nodes})


def dependency_graph(
    trace: Trace, host: HostStretches, device: DeviceWork, blocking: Mapping[int, BlockingCopy]
) -> DependencyGraph:
    """The dependency graph of a trace. What waits for what across streams is seen from ends that meet starts."""
    intervals = _cut(host.intervals, trace.steps[0][0], trace.steps[-1][1])
    if len(intervals) > 1 and intervals[-1].event < 0:
        # After the last event the host does nothing; only the device goes on.
        intervals = intervals[:-1]
    order, placed = _issued(trace, device, intervals, blocking)
    operations = [device.operations[number] for number in order]
    nodes = _nodes(trace, operations, [placed[number][1] for number in order])
    acts = _acts(trace, intervals, blocking)
    held = {copy.copy: copy for copy in blocking.values()}
    for place, (number, node) in enumerate(zip(order, nodes, strict=True)):
        at, arrives_s = placed[number]
        acts[at].issues.append((place, max(arrives_s - intervals[at].start_s, 0.0)))
        copy = held.get(operations[place].event)
        node.step = acts[at].step
        node.is_read, node.is_upload = copy is not None and copy.is_read, copy is not None and not copy.is_read
    _waits(acts, intervals, operations)
    launched = [node.lag_s for node in nodes if not node.queued and node.cause == "compute"]
    queued = [node.lag_s for node in nodes if node.queued and node.after < 0]
    depth = trace.meta.get("machine", {}).get("queue_depth", _DEPTH)
    return DependencyGraph(
        acts=tuple(acts),
        nodes=tuple(nodes),
        steps=len(trace.steps),
        launched_lag_s=median(launched) if launched else 0.0,
        queued_lag_s=median(queued) if queued else 0.0,
        depth=int(depth or _ENDLESS),
    )


def _cut(intervals: tuple[HostInterval, ...], *moments_s: float) -> tuple[HostInterval, ...]:
    """The intervals, none of them across one of these moments."""
    found: list[HostInterval] = []
    for start_s, end_s, cause, event in intervals:
        inside = [moment for moment in moments_s if start_s + _SAME_MOMENT_S < moment < end_s - _SAME_MOMENT_S]
        found += (HostInterval(low, high, cause, event) for low, high in pairwise([start_s, *inside, end_s]))
    return tuple(found)


def _acts(trace: Trace, intervals: tuple[HostInterval, ...], blocking: Mapping[int, BlockingCopy]) -> list[Act]:
    starts, over_s = [start for start, _ in trace.steps], trace.steps[-1][1]
    uploads = {event for event, copy in blocking.items() if not copy.is_read}
    # The last is for intervals between events.
    kinds = [*(KINDS[kind] for kind in trace.kind.tolist()), "work"]
    names, wide = [*trace.name.tolist(), -1], [*(bool(_WIDE.search(name)) for name in trace.names), False]
    acts = []
    for start_s, end_s, cause, event in intervals:
        step = bisect_right(starts, start_s + _SAME_MOMENT_S) - 1
        step = len(starts) if start_s >= over_s - _SAME_MOMENT_S else step
        acts.append(Act(cause, end_s - start_s, step, kinds[event], wide[names[event]], event in uploads))
    return acts


def _issued(
    trace: Trace, device: DeviceWork, intervals: tuple[HostInterval, ...], blocking: Mapping[int, BlockingCopy]
) -> tuple[list[int], dict[int, tuple[int, float]]]:
    """The operations in the order of issue, and for each (interval that issues it, moment of arrival)."""
    last: dict[int, int] = {}
    for number, interval in enumerate(intervals):
        # A call that waits for its copy issues it first.
        if interval.event >= 0 and (interval.event not in blocking or interval.event not in last):
            last[interval.event] = number
    begins = [interval.start_s for interval in intervals]
    placed = {}
    for number, operation in enumerate(device.operations):
        call = operation.call
        called_s = float(trace.start_s[call]) + _ISSUE_S if call in blocking else float(trace.end_s[call])
        arrives_s = min(called_s, operation.start_s) if call >= 0 else operation.start_s
        at = last.get(call, -1) if call >= 0 else -1
        if at < 0:
            at = max(bisect_left(begins, arrives_s) - 1, 0)
        placed[number] = (at, arrives_s)
    return sorted(placed, key=lambda n: (placed[n][0], placed[n][1], device.operations[n].start_s)), placed


def _nodes(trace: Trace, operations: list[DeviceOperation], arrivals: list[float]) -> list[DependencyNode]:
    exclusive = _exclusive(operations)
    lane_end: dict[int, float] = defaultdict(float)
    engine_end: dict[str, float] = defaultdict(float)
    ends = sorted((operation.end_s, number) for number, operation in enumerate(operations))
    nodes = []
    for number, operation in enumerate(operations):
        engine = _engine(trace, operation)
        alone = operation.cause not in ("compute", "communication") or exclusive
        ready = max(lane_end[operation.stream], engine_end[engine] if alone else 0.0)
        base = max(arrivals[number], ready)
        lag_s = max(operation.start_s - base, 0.0)
        after = _dependency(ends, operations, number, lag_s)
        nodes.append(
            DependencyNode(
                operation.cause,
                operation.end_s - operation.start_s,
                operation.stream,
                engine if alone else f"lane {operation.stream}",
                0.0 if after >= 0 else lag_s,
                queued=ready >= arrivals[number],
                after=after,
            )
        )
        lane_end[operation.stream] = max(lane_end[operation.stream], operation.end_s)
        engine_end[engine] = max(engine_end[engine], operation.end_s)
    return nodes


def _engine(trace: Trace, operation: DeviceOperation) -> str:
    if operation.cause in ("compute", "communication"):
        return operation.cause
    return TO_HOST if is_to_host(trace, operation.event) else "copy to device"


def _exclusive(operations: list[DeviceOperation]) -> bool:
    """Whether no two kernels of different streams ever overlap: the device then runs one at a time."""
    until, stream = 0.0, -1
    for operation in sorted((o for o in operations if o.cause == "compute"), key=lambda o: o.start_s):
        if operation.start_s < until - _TOUCH_S and operation.stream != stream:
            return False
        if operation.end_s > until:
            until, stream = operation.end_s, operation.stream
    return True


def _dependency(ends: list[tuple[float, int]], operations: list[DeviceOperation], number: int, lag_s: float) -> int:
    """The operation of another stream that this one waited for: it ends as this one starts, late for nothing else."""
    operation = operations[number]
    if lag_s < _TOUCH_S / 10:
        return -1
    place = bisect_right(ends, (operation.start_s + _TOUCH_S / 10, len(operations)))
    for end_s, other in reversed(ends[max(place - 4, 0) : place]):
        meets = operation.start_s - end_s < _TOUCH_S
        if meets and other < number and operations[other].stream != operation.stream:
            return other
    return -1


def _waits(acts: list[Act], intervals: tuple[HostInterval, ...], operations: list[DeviceOperation]) -> None:
    """Join each act that waits to the operation it waits for: the last to end before the wait does."""
    issued = 0
    recent: list[tuple[float, int]] = []
    for act, interval in zip(acts, intervals, strict=True):
        for number, _ in act.issues:
            issued = max(issued, number + 1)
            recent.append((operations[number].end_s, number))
        if interval.event < 0 or act.kind not in _WAITS or not recent:
            continue
        if act.kind == "alloc" and act.cause != "alloc":
            continue
        done = [entry for entry in recent if entry[0] <= interval.end_s + _TOUCH_S]
        bound = [entry for entry in done if entry[0] > interval.start_s]
        if bound:
            end_s, act.awaits = max(bound)
            act.tail_s = max(interval.end_s - end_s, 0.0)
        elif act.kind == "sync":
            act.awaits, act.tail_s = max(recent)[1] if len(done) == len(recent) else -1, act.duration_s
        # Everything that is over cannot hold a later wait.
        recent = [entry for entry in recent if entry[0] > interval.end_s - _TOUCH_S] or recent[-1:]
