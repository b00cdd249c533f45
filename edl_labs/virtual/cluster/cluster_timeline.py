"""What ran when on all ranks, as a value: spans on the rows of ranks, joined where ranks meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.values import Value
from edl_labs.virtual.cluster.engine import ClusterEngine
from edl_labs.virtual.cluster.machine import ATTOSECONDS
from edl_labs.virtual.cluster.meetings import COMPUTE, MARK, PART
from edl_labs.virtual.timeline import Span, Timeline


@dataclass(frozen=True, repr=False)
class ClusterSpan(Value):
    """One stretch of time of one rank: `kind` is 'kernel', 'copy', 'collective', 'send' or 'recv'.

    `lane` is 'stream 0', 'group 0', 'send' and the like; spans of one collective or message have one number `joined`.
    `waited_s` is how long the rank had been there before it began.
    """

    rank: int
    lane: str
    kind: str
    name: str
    start_s: float
    end_s: float
    index: int
    joined: int | None = None
    waited_s: float = 0.0


@dataclass(frozen=True, repr=False)
class ClusterTimeline(Value, Plottable):
    """All spans of a program, by rank and start."""

    ROWS = "spans"

    spans: tuple[ClusterSpan, ...]
    ranks: int

    @property
    def makespan_s(self) -> float:
        """When the last span ends; time starts at 0."""
        return max((span.end_s for span in self.spans), default=0.0)

    def of(self, rank: int) -> Timeline:
        """One rank's spans as the timeline of a single device; collectives and messages are 'comm'."""
        kinds = {"kernel": "kernel", "copy": "copy"}
        return Timeline(
            tuple(
                Span(span.lane, kinds.get(span.kind, "comm"), span.name, span.start_s, span.end_s)
                for span in self.spans
                if span.rank == rank
            )
        )

    def exposed_s(self, rank: int) -> float:
        """How long the rank communicates while none of its kernels runs: the communication that is exposed."""
        alone = self.of(rank)
        return alone.busy_s("comm") - alone.overlap_s("comm", "kernel")

    def to_chrome_trace(self) -> dict[str, Any]:
        """The timeline as Chrome trace events, for json.dump: a process for each rank; Perfetto opens them.

        Arrows join a message's two sides, and a collective's first rank with the others.
        """
        events: list[dict[str, Any]] = []
        seen: set[int] = set()
        by_rank: dict[int, list[ClusterSpan]] = {rank: [] for rank in range(self.ranks)}
        for span in self.spans:
            by_rank[span.rank].append(span)
        for rank, spans in by_rank.items():
            tids = {lane: number for number, lane in enumerate(sorted({span.lane for span in spans}, key=_lane_order))}
            events.append({"name": "process_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": f"rank {rank}"}})
            for lane, tid in tids.items():
                events.append({"name": "thread_name", "ph": "M", "pid": rank, "tid": tid, "args": {"name": lane}})
            for span in spans:
                events.extend(_chrome_events(span, tids[span.lane], is_first=span.joined not in seen))
                seen |= {span.joined} if span.joined is not None else set()
        return {"displayTimeUnit": "ns", "traceEvents": events}


def _chrome_events(span: ClusterSpan, tid: int, *, is_first: bool) -> list[dict[str, Any]]:
    base = {"pid": span.rank, "tid": tid}
    start, lasts = span.start_s * 1e6, (span.end_s - span.start_s) * 1e6
    complete = {**base, "name": span.name, "cat": span.kind, "ph": "X", "ts": start, "dur": lasts}
    complete["args"] = {"operation": span.index, "waited_s": span.waited_s}
    if span.joined is None:
        return [complete]
    flow = {**base, "name": span.kind, "cat": "joined", "id": span.joined, "ts": start}
    return [complete, {**flow, "ph": "s"} if is_first else {**flow, "ph": "f", "bp": "e"}]


def _lane_order(lane: str) -> tuple[int, str]:
    for place, kind in enumerate(("stream", "copy", "group", "send", "recv")):
        if lane.startswith(kind):
            return place, lane
    return math.inf, lane  # type: ignore[return-value]


def cluster_timeline(engine: ClusterEngine) -> ClusterTimeline:
    """The timeline of a played graph, of all that has ended."""
    numbers: dict[int, int] = {}
    spans = []
    for node in engine.graph.nodes:
        if node.done is None or node.engine == MARK or node.entry["op"] == "new_group":
            continue
        entry, joined = node.entry, None
        lane, kind, name = f"group {entry.get('group')}", "collective", str(entry.get("name", entry["op"]))
        if node.engine == PART:
            joined = numbers.setdefault(id(node.meeting), len(numbers))
            if "peer" in entry:
                lane, kind = f"{entry['op']} {'to' if entry['op'] == 'send' else 'from'} {entry['peer']}", entry["op"]
            name = node.text
        else:
            is_kernel = node.engine == COMPUTE
            lane, kind = (f"stream {entry['stream']}", "kernel") if is_kernel else ("copy", "copy")
        spans.append(
            ClusterSpan(
                node.rank,
                lane,
                kind,
                name,
                node.start / ATTOSECONDS,
                node.done / ATTOSECONDS,
                node.index,
                joined,
                (node.start - node.ready) / ATTOSECONDS,
            )
        )
    return ClusterTimeline(
        tuple(sorted(spans, key=lambda one: (one.rank, one.start_s, one.end_s))), engine.machine.ranks
    )
