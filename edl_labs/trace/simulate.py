"""Running a dependency graph again, as it was or with a cause removed."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from itertools import accumulate

from edl_labs.trace.dependency_graph import Act, DependencyGraph, Node


@dataclass(frozen=True)
class ReplayedRun:
    """When each step's work was over, in seconds from the beginning: on host and device together, on the host alone."""

    step_ends_s: tuple[float, ...]
    host_ends_s: tuple[float, ...]

    def per_step_s(self, skip: int) -> float:
        """The mean time of a step, the first `skip` left out."""
        # The last step ends with its host: what the host did behind the device's work before is not counted again.
        first = max(self.step_ends_s[skip - 1], self.host_ends_s[skip - 1]) if skip else 0.0
        return (self.step_ends_s[-1] - first) / (len(self.step_ends_s) - skip)


def simulate(graph: DependencyGraph) -> ReplayedRun:
    """Run a graph: the host goes through its acts, nodes run in their lanes, one at a time on each engine."""
    done: list[float] = [0.0] * len(graph.nodes)
    lanes: dict[int, float] = defaultdict(float)
    engines: dict[str, float] = defaultdict(float)
    under_way: dict[int, deque[int]] = defaultdict(deque)
    device_ends, host_ends = [0.0] * graph.steps, [0.0] * graph.steps
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
    return ReplayedRun(tuple(_steps(device_ends, host_ends, bool(graph.nodes))), tuple(accumulate(host_ends, max)))


def without(graph: DependencyGraph, cause: str, *, copy_speedup: float = 1.0) -> DependencyGraph:
    """The graph with a cause removed.

    data, alloc, host: these stretches take no time and wait for nothing. launch: a step costs one launch, as a captured
    graph does. sync: reads and synchronisations go, with the copies of their numbers. copy: copies run beside all else,
    `copy_speedup` times as fast (pinned), and hold nobody. compute, communication: kernels take no time.
    """
    nodes = tuple(_node(node, cause, copy_speedup) for node in graph.nodes)
    launched: set[int] = set()
    return replace(graph, acts=tuple(_act(act, cause, launched) for act in graph.acts), nodes=nodes)


def _node(node: Node, cause: str, copy_speedup: float) -> Node:
    if cause == "copy" and node.cause == "copy":
        # A lane of its own: kernels no longer queue behind it.
        return replace(node, lane=-2, duration_s=node.duration_s / copy_speedup, lag_s=0.0)
    if cause == "sync" and node.cause == "sync":
        return replace(node, lane=-3, engine="nothing", duration_s=0.0, lag_s=0.0)
    if cause == node.cause:
        return replace(node, duration_s=0.0)
    return node


def _act(act: Act, cause: str, launched: set[int]) -> Act:
    if act.cause != cause:
        return act
    if cause == "launch":
        if act.kind == "launch" and act.step not in launched:
            launched.add(act.step)
            return act
        return replace(act, duration_s=0.0)
    if cause == "copy" and act.issues:
        # Issuing stays, waiting goes.
        return replace(act, duration_s=min(act.duration_s, act.issues[-1][1]), awaits=-1)
    return replace(act, duration_s=0.0, awaits=-1)


def _room(queue: deque[int], number: int, done: list[float], depth: int, arrives: float) -> float:
    """When an operation arrives, once the one `depth` before it in its lane is over."""
    queue.append(number)
    if len(queue) > depth:
        return max(arrives, done[queue.popleft()])
    return arrives


def _lag(graph: DependencyGraph, node: Node, *, late: bool) -> float:
    """The node's own lag while it starts for the same reason as in the trace, else the usual one of the other."""
    if late != node.queued:
        return node.lag_s
    return graph.launched_lag_s if late else min(node.lag_s, graph.queued_lag_s)


def _steps(device: list[float], host: list[float], on_device: bool) -> list[float]:
    ends, last = [], 0.0
    for step, (on, off) in enumerate(zip(device, host, strict=True)):
        final = step == len(host) - 1
        last = max(last, max(on, off) if final or not on_device or not on else on)
        ends.append(last)
    return ends
