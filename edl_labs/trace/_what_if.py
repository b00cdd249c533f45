"""The potential speed-up if a cause is fixed: the dependency graph, or the loop itself, run again without it."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.trace.analysed_trace import AnalysedTrace, TraceLike, step_times_s
from edl_labs.trace.causes import CAUSES
from edl_labs.trace.dependency_graph import TO_HOST, Act, DependencyGraph, DependencyNode
from edl_labs.trace.errors import TraceError
from edl_labs.trace.loops import Loop
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted
from edl_labs.values import Value


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

    data, alloc, host: these stretches take no time and wait for nothing. launch: a step costs one launch, as a captured
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
        return replace(act, duration_s=0.0)
    if cause == "copy":
        return _issuing(act)
    return replace(act, duration_s=0.0, awaits=-1)


def _issuing(act: Act) -> Act:
    """What is left of an act that no longer waits for its copies: issuing them."""
    return replace(act, duration_s=min(act.duration_s, act.issues[-1][1]) if act.issues else 0.0, awaits=-1)


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


# A longer lag than this is not the device's own: the operation waited for what the trace does not show.
_ELSEWHERE_S = 50e-6
# How much faster copies from pinned memory usually are, where the trace does not tell the machine's rates.
_PINNED_SPEEDUP = 2.0


# A factor is promised to within a tenth: a replay that misses the step itself by more cannot give one.
MOST_REPLAY_ERROR = 0.1


@dataclass(frozen=True, repr=False)
class WhatIf(Value):
    """A step's time as it is and with a cause removed, in seconds.

    `replayed_s` is the step's time when the graph runs unchanged; `replay_error` is how far it is from `before_s`, the
    time in the trace. The gain is `replayed_s` against `after_s`. Where the replay is off by more than a tenth, the
    graph does not explain the trace: `is_reliable` is False and the speed-up is nan.
    """

    cause: str
    before_s: float
    replayed_s: float
    after_s: float

    @property
    def gain_s(self) -> float:
        """Seconds saved in a step."""
        return self.replayed_s - self.after_s

    @property
    def replay_error(self) -> float:
        """How far the replay of the unchanged trace is off, relative to the traced step."""
        return self.replayed_s / self.before_s - 1.0 if self.before_s > 0 else 0.0

    @property
    def is_reliable(self) -> bool:
        """Whether the replay explains the trace well enough to give a factor."""
        return abs(self.replay_error) <= MOST_REPLAY_ERROR

    @property
    def speedup(self) -> float:
        """How many times as fast a step becomes; inf where nothing of it is left, nan where that is not known."""
        if not self.is_reliable:
            return float("nan")
        return self.replayed_s / self.after_s if self.after_s > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data; the speedup is null where nothing of the step is left, or where it is unknown."""
        found = {"gain_s": self.gain_s, "speedup": finite(self.speedup), "replay_error": self.replay_error}
        return {**super().to_json(), **found}


def finite(value: float) -> float | None:
    """The number, or None (in JSON: null) for inf and nan, which JSON does not know."""
    return value if math.isfinite(value) else None


@checked_arguments()
def what_if(trace: TraceLike, cause: str, *, skip: int | None = None, copy_speedup: float | None = None) -> WhatIf:
    """The gain from removing a cause, by running the dependency graph of the trace again without it.

    A gain is mostly less than the cause's share of wall time, since the next cause then limits, and can be more, since
    what the cause delays comes earlier too. `skip` leaves out the
    first steps (one, unless there are fewer than three). `copy_speedup` is how much faster pinned copies run.
    """
    return _answers(AnalysedTrace.of(trace), (cause,), skip=skip, copy_speedup=copy_speedup)[0]


@checked_arguments()
def most_to_gain(trace: TraceLike, *, skip: int | None = None, copy_speedup: float | None = None) -> tuple[WhatIf, ...]:
    """`what_if` for every cause that can be removed, the largest gain first."""
    found = _answers(AnalysedTrace.of(trace), CAUSES, skip=skip, copy_speedup=copy_speedup)
    return tuple(sorted(found, key=lambda answer: -answer.gain_s))


def _answers(
    analysed: AnalysedTrace, causes: tuple[str, ...], *, skip: int | None, copy_speedup: float | None
) -> list[WhatIf]:
    for cause in causes:
        if cause not in CAUSES:
            raise UsageError(
                f"{cause!r} is not a cause", why=f"causes are {', '.join(CAUSES)}", next="name one of them"
            )
    graph = analysed.graph
    first = _skipped(graph.steps, skip)
    times_s = step_times_s(analysed.lasting_bounds(skip=first))
    before_s = sum(times_s) / len(times_s)
    replayed_s = simulate(graph).per_step_s(first)
    faster = pinned_speedup(analysed.trace) if copy_speedup is None else copy_speedup

    def after_s(cause: str) -> float:
        # Without what it does not contain a graph is itself.
        if cause not in graph.causes:
            return replayed_s
        return simulate(without(graph, cause, copy_speedup=faster)).per_step_s(first)

    return [WhatIf(cause, before_s, replayed_s, after_s(cause)) for cause in causes]


def pinned_speedup(trace: Trace) -> float:
    """How much faster copies from pinned memory are: what the machine's rates say, or twice, where nothing is known."""
    machine = trace.meta.get("machine") or {}
    if machine.get("pageable_byte_per_s"):
        return max(float(machine["link_byte_per_s"] / machine["pageable_byte_per_s"]), 1.0)
    return _PINNED_SPEEDUP


def _skipped(steps: int, skip: int | None) -> int:
    first = (1 if steps >= 3 else 0) if skip is None else skip
    if not 0 <= first < steps:
        raise TraceError(
            f"no step is left after skipping {first}", why=f"the trace has {counted(steps, 'step')}", next="skip fewer"
        )
    return first


@dataclass(frozen=True, repr=False)
class Ablation(Value):
    """What a trace predicted and what the loop did without a cause, in seconds a step."""

    cause: str
    predicted: WhatIf
    before_s: float
    after_s: float
    DERIVED: ClassVar[tuple[str, ...]] = ("real",)

    @property
    def gain_s(self) -> float:
        """Seconds a step really saved."""
        return self.before_s - self.after_s

    @property
    def speedup(self) -> float:
        """How many times as fast the loop really became."""
        return self.before_s / self.after_s if self.after_s > 0 else float("inf")

    @property
    def error(self) -> float:
        """How far the predicted time without the cause lies from the real one, relative to it."""
        if self.after_s <= 0:
            return abs(self.predicted.after_s) / self.before_s if self.before_s else 0.0
        return abs(self.predicted.after_s / self.after_s - 1.0)

    @property
    def gain_error(self) -> float:
        """How far the predicted gain lies from the real one, relative to it; nan where there was no real gain."""
        return abs(self.predicted.gain_s / self.gain_s - 1.0) if self.gain_s > 0 else float("nan")

    @property
    def real(self) -> dict[str, float | None]:
        """What the loop did, as plain data; no speedup where nothing of the step is left."""
        speedup = finite(self.speedup)
        return {"before_s": self.before_s, "after_s": self.after_s, "gain_s": self.gain_s, "speedup": speedup}


@checked_arguments()
def ablate(loop: Loop, cause: str, *, steps: int = 12) -> Ablation:
    """Run a loop without a cause, and put the gain beside the one predicted from the unchanged loop's trace."""
    if cause not in loop.ablations():
        raise UsageError(
            f"{loop.name} cannot run without {cause!r}",
            why=f"what it can leave out: {', '.join(loop.ablations()) or 'nothing so far'}",
            next="give the loop a step for it: TorchLoop(..., without={cause: step})",
        )
    predicted = what_if(loop.record(steps), cause)
    times = loop.times_s(steps, (None, cause))
    return Ablation(cause, predicted, times[None], times[cause])
