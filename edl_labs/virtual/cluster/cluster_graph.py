"""The recorded programs of all ranks as one graph: what each operation waits for, and who meets whom.

Programs hold no readings, so nothing depends on when things happen: the graph is built rank by rank, and then played.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from edl_labs.virtual.cluster.local_work import LocalWork
from edl_labs.virtual.cluster.machine import ATTOSECONDS, MAX_STREAMS, ClusterMachine
from edl_labs.virtual.cluster.meetings import (
    MARK,
    PART,
    Meeting,
    Plan,
    RankOperation,
    RankSide,
    Signature,
    difference,
    moved_elements,
    signature,
)
from edl_labs.virtual.cluster.program import (
    COLLECTIVE,
    LOCAL,
    MESSAGE,
    OPERATIONS,
    PROGRAM,
    TensorForm,
    check_collective,
    elements,
)
from edl_labs.virtual.errors import ReplayError, VirtualClusterError
from edl_labs.virtual.program import Entry

MAX_CLUSTER_REPLAYED = 1_000_000  # all ranks together: 64 ranks x 10,000, half a minute of a judge's time
_FEW = 4  # waits that are carried along before a mark takes them up
_MARSHAL_VERSION = 2  # the last one without references, which would tell equal data apart
_REMEMBERED = 65_536  # different entries whose form was checked: some tens of MB


class ClusterGraph:
    """All operations of all ranks; `nodes` is in the order of ranks and calls."""

    def __init__(self, machine: ClusterMachine) -> None:
        self.machine = machine
        self.nodes: list[RankOperation] = []
        self.meetings: dict[Any, Meeting] = {}
        self.everyone = tuple(range(machine.ranks))
        self.sides = [RankSide(rank, self.everyone) for rank in range(machine.ranks)]
        self.operations = 0
        self._overhead = round(machine.call_overhead_s * ATTOSECONDS)
        self._known: dict[bytes, Entry] = {}
        plans = {LOCAL: LocalWork(machine).plan, MESSAGE: self._message, COLLECTIVE: self._collective}
        self._plan = {name: plans[kind.runs] for name, kind in OPERATIONS.items() if kind.runs}
        self._act: dict[str, Callable[[RankSide, int, Entry], None]] = {
            "tensor": self._tensor,
            "free": self._free,
            "stream": self._stream,
            "event": self._event,
            "record": self._record,
            "wait_event": self._wait_event,
            "wait_work": self._wait_work,
            "synchronize": self._synchronize,
            "sync_stream": self._sync_stream,
            "host_work": self._host_work,
            "new_group": self._new_group,
        }

    def read(self, programs: list[Any], *, skipped: Iterable[tuple[int, int]], max_operations: int) -> None:
        """Take every rank's program; ReplayError where one is none."""
        left_out, left = set(skipped), max_operations
        for side, program in zip(self.sides, programs, strict=True):
            listed = PROGRAM.listed(program)
            left -= len(listed)
            if left < 0:
                raise PROGRAM.too_many(max_operations)
            self._read(side, listed, {index for rank, index in left_out if rank == side.rank})
            self.operations += len(listed)

    def _read(self, side: RankSide, program: list[Any], left_out: set[int]) -> None:
        plans, dumps = side.plans, marshal.dumps
        for index, raw in enumerate(program):
            try:
                key = dumps(raw, _MARSHAL_VERSION)
            except ValueError:
                # Not plain data, or too deep: the check says so.
                key = b""
            plan = plans.get(key)
            if plan is None:
                entry = self._checked(index, raw, key, side.rank)
                if index in left_out:
                    continue
                plan = PROGRAM.done_again(partial(self._follow, side, index), index, entry, owner=f"rank {side.rank}")
                if plan is None:
                    continue
                plans[key] = plan
            elif index in left_out:
                continue
            side.host += self._overhead
            if plan.lane is None:
                self._compute(side, index, plan)
            else:
                self._communicate(side, index, plan)

    def _follow(self, side: RankSide, index: int, entry: Entry) -> Plan | None:
        """The plan of an operation that takes an engine or links; anything else is done at once."""
        if entry["op"] in self._plan:
            return self._plan[entry["op"]](side, entry)
        side.host += self._overhead
        self._act[entry["op"]](side, index, entry)
        return None

    def _checked(self, index: int, raw: Any, key: bytes, rank: int) -> Entry:
        known = self._known.get(key)
        if known is None:
            try:
                known = PROGRAM.checked(index, raw)
            except ReplayError as error:
                raise ReplayError(f"rank {rank}: {error.what}", why=error.why, next=error.next) from None
            if len(self._known) < _REMEMBERED:
                self._known[key] = known
        return known

    # Tensors, and the host's calls.

    def _tensor(self, side: RankSide, index: int, entry: Entry) -> None:
        if entry["tensor"] != len(side.tensors):
            raise LookupError
        form = TensorForm(
            entry["numel"], entry["dtype"], entry["name"], entry.get("fill", "own"), entry.get("where", "device")
        )
        side.tensors.append(form)
        if form.where == "device":
            side.live += form.nbytes
            if side.live > side.peak:
                side.peak, side.peak_index = side.live, index
            if side.live > self.machine.gpu.memory_bytes:
                raise VirtualClusterError(
                    f"out of memory: the rank's tensors take {side.live:,} bytes at once",
                    why=f"{self.machine.gpu.name} has {self.machine.gpu.memory_bytes:,} bytes",
                    next="free tensors that are no longer used, or distribute them over more ranks",
                )

    def _free(self, side: RankSide, index: int, entry: Entry) -> None:
        form = side.tensors[entry["tensor"]]
        if entry["tensor"] in side.freed or entry.get("stream", 0) >= side.streams:
            raise LookupError
        side.freed.add(entry["tensor"])
        side.plans.clear()
        side.live -= form.nbytes if form.where == "device" else 0

    def _stream(self, side: RankSide, index: int, entry: Entry) -> None:
        if entry["stream"] != side.streams:
            raise LookupError
        if side.streams >= MAX_STREAMS:
            why = f"a device has at most {MAX_STREAMS} streams"
            raise VirtualClusterError(
                f"the program creates more than {MAX_STREAMS} streams",
                why=why,
                next="reuse the streams that you already have",
            )
        side.streams += 1

    def _event(self, side: RankSide, index: int, entry: Entry) -> None:
        if entry["event"] != len(side.events):
            raise LookupError
        side.events.append([])

    def _record(self, side: RankSide, index: int, entry: Entry) -> None:
        side.events[entry["event"]] = self._so_far(side, index, side.lane(entry))

    def _wait_event(self, side: RankSide, index: int, entry: Entry) -> None:
        side.waits[side.lane(entry)] += side.events[entry["event"]]

    def _wait_work(self, side: RankSide, index: int, entry: Entry) -> None:
        side.waits[side.lane(entry)].append(side.works[entry["work"]])

    def _host_work(self, side: RankSide, index: int, entry: Entry) -> None:
        side.host += round(entry["duration_s"] * ATTOSECONDS)

    def _synchronize(self, side: RankSide, index: int, entry: Entry) -> None:
        after = [*side.tails.values(), *(node for waits in side.waits.values() for node in waits)]
        self._hold_host(side, index, entry, after)
        side.tails.clear()
        side.waits.clear()

    def _sync_stream(self, side: RankSide, index: int, entry: Entry) -> None:
        self._hold_host(side, index, entry, self._so_far(side, index, side.lane(entry)))

    def _hold_host(self, side: RankSide, index: int, entry: Entry, after: list[RankOperation]) -> None:
        gate = self._node(side, index, entry, MARK, 0, after)
        side.gate, side.host = gate, 0

    def _so_far(self, side: RankSide, index: int, stream: int) -> list[RankOperation]:
        """What a stream has been given so far: few nodes, whose end is the end of all."""
        waits, tail = side.waits.get(stream), side.tails.get(stream)
        if not waits:
            return [] if tail is None else [tail]
        after = [*waits] if tail is None else [*waits, tail]
        if len(after) <= _FEW:
            return after
        mark = side.tails[stream] = self._node(side, index, {"op": "record"}, MARK, 0, after)
        waits.clear()
        return [mark]

    # Work.

    def _compute(self, side: RankSide, index: int, plan: Plan) -> None:
        stream, tails = plan.stream, side.tails
        after = side.waits.pop(stream, None) or []
        tail = tails.get(stream)
        if tail is not None:
            after.append(tail)
        tails[stream] = self._node(side, index, plan.entry, plan.engine, plan.cost, after)

    def _message(self, side: RankSide, entry: Entry) -> Plan:
        parts, peer = entry.get("reads") or entry.get("writes") or [], entry["peer"]
        if len(parts) != 1 or peer >= self.machine.ranks or peer == side.rank:
            raise VirtualClusterError(
                f"{entry['op']} with rank {peer} has {len(parts)} parts",
                why="a message must contain one part of one tensor, and its peer must be another rank of the cluster",
                next="record the program again with cluster.record(program)",
            )
        side.require_live(parts[0])
        form, count = side.tensors[parts[0][0]], elements(parts)
        ends = (side.rank, peer) if entry["op"] == "send" else (peer, side.rank)
        plan = Plan(entry, side.lane(entry), PART, count * form.item_bytes)
        return plan.joining((entry["op"], peer), ends, ("message", count, form.dtype, ()))

    def _collective(self, side: RankSide, entry: Entry) -> Plan:
        ranks = side.groups[entry["group"]] if entry["group"] else self.everyone
        if side.rank not in ranks:
            why = "only members of a group may call its collectives"
            raise VirtualClusterError(
                f"this rank calls {entry['op']} in a group to which this rank does not belong",
                why=why,
                next="make this call only if get_rank(group) is not -1",
            )
        parts = [*entry["reads"], *entry["writes"]]
        for part in parts:
            side.require_live(part)
        forms = [side.tensors[part[0]] for part in parts]
        check_collective(entry, ranks.index(side.rank), len(ranks), {form.dtype for form in forms})
        size = forms[0].item_bytes if forms else 0
        plan = Plan(entry, side.lane(entry), PART, size * moved_elements(entry, len(ranks)))
        said = signature(entry, forms[0].dtype if forms else "", len(ranks))
        return plan.joining(("group", entry["group"]), ranks, said)

    def _communicate(self, side: RankSide, index: int, plan: Plan) -> None:
        """An operation of the communication's own lane, once its stream has done what it was given before."""
        stream, lane, tails, op = plan.stream, plan.lane, side.tails, plan.op
        after = self._so_far(side, index, stream)
        before = tails.get(lane)
        if before is not None:
            after.append(before)
        node = self._node(side, index, plan.entry, PART, plan.cost, after)
        node.number = number = side.calls.get(op, 0)
        side.calls[op] = number + 1
        tails[lane] = node
        if plan.is_async:
            side.works.append(node)
        else:
            tails[stream] = node
            side.waits.pop(stream, None)
        met = side.meets.get(lane, 0)
        side.meets[lane] = met + 1
        self._join((plan.meets, met), node, plan.ranks, plan.said)
        if plan.holds_host:
            self._hold_host(side, index, {"op": "synchronize"}, [node])

    def _new_group(self, side: RankSide, index: int, entry: Entry) -> None:
        number, ranks = entry["group"], tuple(entry["ranks"])
        if (
            number != len(side.groups)
            or not all(rank < self.machine.ranks for rank in ranks)
            or len(set(ranks)) < len(ranks)
        ):
            raise LookupError
        side.groups.append(ranks)
        node = self._node(side, index, entry, PART, 0, [])
        node.number = number - 1
        side.gate, side.host = node, 0
        self._join(("store", number), node, self.everyone, ("new_group", ranks, "", ()))

    def _join(self, key: Any, node: RankOperation, ranks: tuple[int, ...], said: Signature) -> None:
        meeting = self.meetings.get(key)
        if meeting is None:
            meeting = self.meetings[key] = Meeting(ranks, said)
        elif meeting.said != said and not meeting.bad:
            meeting.bad = difference(meeting.said, said)
        meeting.nodes[node.rank] = node
        node.meeting = meeting

    def _node(
        self, side: RankSide, index: int, entry: Entry, engine: int, cost: int, after: list[RankOperation]
    ) -> RankOperation:
        nodes = self.nodes
        node = RankOperation(side.rank, index, entry, engine, cost, len(nodes), len(after))
        nodes.append(node)
        for other in after:
            followers = other.followers
            if followers is None:
                other.followers = [node]
            else:
                followers.append(node)
        gate = side.gate
        if gate is None:
            node.ready = side.host
        elif side.host or not after or not any(other.seq > gate.seq for other in after):
            # What came after the gate waits for it already.
            node.gate, node.delay = gate, side.host
            node.pending += 1
            if gate.followers is None:
                gate.followers = [node]
            else:
                gate.followers.append(node)
        return node
