"""A dependency graph run again, as it is and without one of its causes."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from itertools import accumulate

from edl_labs.trace.dependency_graph import TO_HOST, Act, DependencyGraph, DependencyNode

# A longer lag than this is not the device's own: the operation waited for what the trace does not show.
_ELSEWHERE_S = 50e-6


@dataclass(frozen=True)
class ReplayedRun:
    """When the first step began, and when each one's work was over: on host and device together, on the host alone."""

    begins_s: float
    step_ends_s: tuple[float, ...]
    host_ends_s: tuple[float, ...]

    def per_step_s(self, skip: int) -> float:
        """The mean time of a step, the first `skip` left out; no other time than that of steps is in it."""
        # The last step ends with its host: what the host did after the device's work before is not counted again.
        first = max(self.step_ends_s[skip - 1], self.host_ends_s[skip - 1]) if skip else self.begins_s
        return (self.step_ends_s[-1] - first) / (len(self.step_ends_s) - skip)


def simulate(graph: DependencyGraph) -> ReplayedRun:
    """Run a graph: the host goes through its acts, nodes run in their lanes, one at a time on each engine."""
    done: list[float] = [0.0] * len(graph.nodes)
    lanes: dict[int, float] = defaultdict(float)
    engines: dict[str, float] = defaultdict(float)
    under_way: dict[int, deque[int]] = defaultdict(deque)
    # The last two places are for what is after the last step and before the first.
    device_ends, host_ends = [0.0] * (graph.steps + 2), [0.0] * (graph.steps + 2)
    now = last = 0.0
    for act in graph.acts:
        began = now
        now += 0.0 if act.awaits >= 0 else act.duration_s
        for number, offset_s in act.issues:
            node = graph.nodes[number]
            arrives = _room(under_way[node.lane], number, done, graph.depth, began + min(offset_s, act.duration_s))
            now = max(now, arrives)
            ready = max(lanes[node.lane], engines[node.engine], done[node.after] if node.after >= 0 else 0.0)
            start = max(arrives, ready) + _lag(graph, node, late=arrives > ready)
            done[number] = lanes[node.lane] = engines[node.engine] = start + node.duration_s
            last = max(last, done[number])
            device_ends[node.step] = max(device_ends[node.step], done[number])
        if act.awaits >= 0:
            now = max(now, (last if act.all_lanes else done[act.awaits]) + act.tail_s)
        host_ends[act.step] = max(host_ends[act.step], now)
    begins, on_host = host_ends[-1], list(accumulate(host_ends[: graph.steps], max))
    ends = _steps(device_ends[: graph.steps], on_host, bool(graph.nodes))
    return ReplayedRun(begins, tuple(ends), tuple(on_host))


def without(graph: DependencyGraph, cause: str, *, copy_speedup: float = 1.0) -> DependencyGraph:
    """The graph with a cause removed.

    data, alloc, host: these intervals take no time and wait for nothing. launch: a step costs one launch, as a captured
    graph does. sync: reads and synchronisations go, with the copies of what is read, and uploads do not wait. copy:
    copies run in a stream of their own, `copy_speedup` times as fast (pinned), and uploads do not wait. compute,
    communication: kernels take no time.
    """
    launched: set[int] = set()
    # What is before the first step and after the last is no part of the question: it stays as it is.
    steps = range(graph.steps)
    before = _before_in_lane(graph) if cause == "copy" else {}
    nodes = (
        _node(node, cause, copy_speedup, before.get(number, -1)) if node.step in steps else node
        for number, node in enumerate(graph.nodes)
    )
    acts = (_act(act, cause, launched) if act.step in steps else act for act in graph.acts)
    return replace(graph, acts=tuple(acts), nodes=tuple(nodes))


def _before_in_lane(graph: DependencyGraph) -> dict[int, int]:
    """By copy to the host the operation before it in its lane, which made what it brings."""
    last: dict[int, int] = {}
    found: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        if node.engine == TO_HOST:
            found[number] = last.get(node.lane, -1)
        last[node.lane] = number
    return found


def _node(node: DependencyNode, cause: str, copy_speedup: float, before: int) -> DependencyNode:
    if cause == "copy" and node.cause == "copy":
        if node.lag_s > _ELSEWHERE_S and not node.is_upload:
            # What it waited for besides is still to come, and holds all that is queued behind it.
            return replace(node, duration_s=node.duration_s / copy_speedup)
        # Kernels no longer queue behind it.
        lane = -4 if before >= 0 else -2
        after = node.after if node.after >= 0 else before
        return replace(node, lane=lane, duration_s=node.duration_s / copy_speedup, lag_s=0.0, after=after)
    if cause == "sync" and (node.cause == "sync" or node.is_read):
        return replace(node, lane=-3, engine="nothing", duration_s=0.0, lag_s=0.0)
    if cause == node.cause:
        return replace(node, duration_s=0.0)
    return node


def _act(act: Act, cause: str, launched: set[int]) -> Act:
    if cause in ("copy", "sync") and act.uploads:
        return _issuing(act)
    if act.cause != cause:
        return act
    if cause == "launch":
        if act.kind == "launch" and act.step not in launched:
            launched.add(act.step)
            return act
        return _lasting(act, 0.0, awaits=act.awaits)
    if cause == "copy":
        return _issuing(act)
    return _lasting(act, 0.0)


def _issuing(act: Act) -> Act:
    """What is left of an act that no longer waits for its copies: issuing them."""
    return _lasting(act, min(act.duration_s, act.issues[-1][1]) if act.issues else 0.0)


def _lasting(act: Act, duration_s: float, *, awaits: int = -1) -> Act:
    """An act of another duration: `replace` takes four times as long, and a trace has a hundred thousand."""
    return Act(act.cause, duration_s, act.step, act.kind, act.all_lanes, act.uploads, act.issues, awaits, act.tail_s)


def _room(queue: deque[int], number: int, done: list[float], depth: int, arrives: float) -> float:
    """When an operation arrives, once the one `depth` before it in its lane is over."""
    queue.append(number)
    if len(queue) > depth:
        return max(arrives, done[queue.popleft()])
    return arrives


def _lag(graph: DependencyGraph, node: DependencyNode, *, late: bool) -> float:
    """The node's own lag while it starts for the same reason as in the trace, else the usual one of the other."""
    if late != node.queued or node.lag_s > _ELSEWHERE_S:
        return node.lag_s
    return graph.launched_lag_s if late else min(node.lag_s, graph.queued_lag_s)


def _steps(device: list[float], host: list[float], on_device: bool) -> list[float]:
    ends, last = [], 0.0
    for step, (on, off) in enumerate(zip(device, host, strict=True)):
        final = step == len(host) - 1
        last = max(last, max(on, off) if final or not on_device or not on else on)
        ends.append(last)
    return ends
