"""Playing the graph of all ranks: a list scheduler on virtual time, whose times are whole attoseconds.

What is ready first goes first; at one instant, ranks and calls in their order. A rank's kernels share its compute
engine, one at a time. A message has the lanes of both its ranks for alpha + bytes / rate; a collective has those of
all its members at the levels that it uses.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from edl_labs.virtual.cluster.cluster_graph import ClusterGraph
from edl_labs.virtual.cluster.collective_costs import CollectiveCosts, CollectivePlan
from edl_labs.virtual.cluster.machine import ATTOSECONDS, Faults
from edl_labs.virtual.cluster.meetings import MARK, PART, Meeting, RankOperation, uneven_exchange
from edl_labs.virtual.errors import VirtualClusterError


class TransferRecord(NamedTuple):
    """What happened at a meeting: by which algorithm, with how many bytes, in which order of all operations."""

    algorithm: str
    nbytes: int


class ClusterEngine:
    """A graph played to its end, or to where nothing moves any more."""

    def __init__(self, graph: ClusterGraph, faults: Faults) -> None:
        machine = graph.machine
        self.graph, self.machine = graph, machine
        self.order: list[RankOperation] = []
        self.carried: dict[RankOperation, TransferRecord] = {}
        self.sent: dict[tuple[int, int], float] = defaultdict(float)
        self.busy: dict[tuple[int, int], int] = defaultdict(int)
        self.end = 0
        self._lost = {rank: round(at * ATTOSECONDS) for rank, at in faults.lost.items()}
        self._slow_ranks = dict(faults.slow_ranks)
        numbers = {level.name: number for number, level in enumerate(machine.levels)}
        self._slow = {(numbers[name], rank): by for (name, rank), by in _known_links(faults, numbers).items()}
        self._costs = CollectiveCosts(machine, self._slow)
        self._plans: dict[object, tuple[CollectivePlan, int]] = {}
        self._engines = [[0] * PART for _ in range(machine.ranks)]
        self._out = [[0] * machine.ranks for _ in machine.levels]
        self._into = [[0] * machine.ranks for _ in machine.levels]
        self._port_out: dict[tuple[int, int], int] = defaultdict(int)
        self._port_into: dict[tuple[int, int], int] = defaultdict(int)
        self._ready: list[tuple[int, int, RankOperation]] = []

    def run(self) -> None:
        """Play until nothing moves."""
        ready = self._ready = [(node.ready, node.seq, node) for node in self.graph.nodes if not node.pending]
        heapify(ready)
        engines, slow, lost = self._engines, self._slow_ranks, self._lost
        while ready:
            moment, _, node = heappop(ready)
            engine = node.engine
            if engine == PART:
                self._arrive(node, moment)
                continue
            if engine == MARK:
                start = end = moment
            else:
                free = engines[node.rank]
                start = free[engine] if free[engine] > moment else moment
                end = start + (node.cost if node.rank not in slow else round(node.cost * slow[node.rank]))
                if node.rank in lost and end > lost[node.rank]:
                    continue
                free[engine] = end
                self.order.append(node)
            node.start = start
            self._end(node, end)

    def _end(self, node: RankOperation, end: int) -> None:
        node.done = end
        if end > self.end:
            self.end = end
        if node.followers is None:
            return
        ready = self._ready
        for other in node.followers:
            earliest = end + other.delay if other.gate is node else end
            if earliest > other.ready:
                other.ready = earliest
            other.pending -= 1
            if not other.pending:
                heappush(ready, (other.ready, other.seq, other))

    def _arrive(self, node: RankOperation, moment: int) -> None:
        meeting = node.meeting
        assert meeting is not None
        node.start = moment
        if node.rank in self._lost and moment >= self._lost[node.rank]:
            node.start = -1
            return
        meeting.arrived += 1
        if moment > meeting.ready:
            meeting.ready = moment
        if meeting.arrived < len(meeting.ranks) or meeting.bad:
            return
        if "peer" in node.entry:
            self._carry(meeting)
        elif "ranks" in node.entry:
            self._finish(meeting, meeting.ready, meeting.ready)
        else:
            self._collect(meeting)

    def _carry(self, meeting: Meeting) -> None:
        """Send a message whose both sides are there."""
        src, dst = meeting.ranks
        number = self.machine.level_between(src, dst)
        level = self.machine.levels[number]
        nbytes = meeting.nodes[src].cost
        slow = max(self._slow.get((number, src), 1.0), self._slow.get((number, dst), 1.0))
        moving = round(nbytes * slow / level.byte_per_s * ATTOSECONDS)
        start = max(meeting.ready, self._out[number][src], self._into[number][dst])
        ports = (number, src // level.ranks_per_port), (number, dst // level.ranks_per_port)
        begin = start + round(level.alpha_s * ATTOSECONDS)
        if level.ranks_per_port > 1:
            begin = max(begin, self._port_out[ports[0]], self._port_into[ports[1]])
        end = begin + moving
        if self._is_lost(meeting, end):
            return
        self._out[number][src] = self._into[number][dst] = end
        self._port_out[ports[0]] = self._port_into[ports[1]] = end
        self.sent[ports[0]] += nbytes
        self.busy[ports[0]] += end - start
        self.carried[meeting.nodes[src]] = self.carried[meeting.nodes[dst]] = TransferRecord("", nbytes)
        self._finish(meeting, start, end)

    def _collect(self, meeting: Meeting) -> None:
        """Do a collective that everybody has called."""
        meeting.bad = uneven_exchange(meeting)
        if meeting.bad:
            return
        plan, nbytes, lasts = self._plan(meeting)
        start, levels = meeting.ready, plan.levels
        for number in levels:
            out, into = self._out[number], self._into[number]
            for rank in meeting.ranks:
                start = max(start, out[rank], into[rank])
            shared = self.machine.levels[number].ranks_per_port
            if shared > 1:
                for port in {rank // shared for rank in meeting.ranks}:
                    start = max(start, self._port_out[number, port], self._port_into[number, port])
        end = start + lasts
        if self._is_lost(meeting, end):
            return
        self._hold(meeting, levels, end)
        for used, share in plan.sent.items():
            self.sent[used] += share * nbytes
            self.busy[used] += end - start
        for node in meeting.nodes.values():
            self.carried[node] = TransferRecord(plan.algorithm, nbytes)
        self._finish(meeting, start, end)

    def _hold(self, meeting: Meeting, levels: tuple[int, ...], end: int) -> None:
        for number in levels:
            out, into = self._out[number], self._into[number]
            shared = self.machine.levels[number].ranks_per_port
            for rank in meeting.ranks:
                out[rank] = into[rank] = end
                if shared > 1:
                    self._port_out[number, rank // shared] = self._port_into[number, rank // shared] = end

    def _plan(self, meeting: Meeting) -> tuple[CollectivePlan, int, int]:
        """How a collective is done, with how many bytes, and for how long."""
        first = meeting.nodes[meeting.ranks[0]]
        entry, nbytes = first.entry, first.cost
        if entry["op"] == "all_to_all":
            nbytes = max(node.cost for node in meeting.nodes.values())
        key = entry["op"], meeting.ranks, nbytes, entry["algorithm"], entry.get("root", 0)
        if key not in self._plans:
            plan = self._costs.plan(key[0], key[1], nbytes, algorithm=key[3], root=key[4])
            self._plans[key] = plan, round(plan.seconds(nbytes) * ATTOSECONDS)
        plan, lasts = self._plans[key]
        return plan, nbytes, lasts

    def _finish(self, meeting: Meeting, start: int, end: int) -> None:
        first = True
        for rank in meeting.ranks:
            node = meeting.nodes[rank]
            node.start = start
            if first:
                self.order.append(node)
                first = False
            self._end(node, end)

    def _is_lost(self, meeting: Meeting, end: int) -> bool:
        return bool(self._lost) and any(end > self._lost.get(rank, end) for rank in meeting.ranks)


def _known_links(faults: Faults, numbers: dict[str, int]) -> dict[tuple[str, int], float]:
    for name, _ in faults.slow_links:
        if name not in numbers:
            raise VirtualClusterError(
                f"this cluster has no level {name!r}",
                why=f"its levels are {', '.join(numbers)}",
                next="name a level and a rank: slow_links={(level, rank): 4.0}",
            )
    return dict(faults.slow_links)
