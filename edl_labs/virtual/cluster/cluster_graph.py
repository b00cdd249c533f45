"""The recorded programs of all ranks as one graph: what each operation waits for, and who meets whom.

Programs hold no readings, so nothing depends on when things happen: the graph is built rank by rank, and then played.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any

from edl_labs.virtual.cluster.cluster_machine import ATTOSECONDS, ClusterMachine
from edl_labs.virtual.cluster.cluster_operations import (
    COLLECTIVE,
    FORM,
    LOCAL,
    MESSAGE,
    OPERATIONS,
    TensorForm,
    check_collective,
    checked,
    elements,
)
from edl_labs.virtual.cluster.meetings import (
    COMPUTE,
    MARK,
    PART,
    TO_DEVICE,
    TO_HOST,
    Meeting,
    Node,
    RankSide,
    Signature,
    difference,
    signature,
)
from edl_labs.virtual.errors import ReplayError, VirtualClusterError
from edl_labs.virtual.gpu.machine import kernel_cost
from edl_labs.virtual.gpu.work_items import KernelWork
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.recorded import Entry

MAX_CLUSTER_REPLAYED = 1_000_000  # all ranks together: 64 ranks x 10,000, half a minute of a judge's time
_FEW = 4  # waits that are carried along before a mark takes them up
_MARSHAL_VERSION = 2  # the last one without references, which would tell equal data apart
_REMEMBERED = 65_536  # different entries whose form was checked: some tens of MB


class ClusterGraph:
    """All operations of all ranks; `nodes` is in the order of ranks and calls."""

    def __init__(self, machine: ClusterMachine) -> None:
        self.machine = machine
        self.nodes: list[Node] = []
        self.meetings: dict[Any, Meeting] = {}
        self.sides = [RankSide(rank) for rank in range(machine.ranks)]
        self.groups: list[tuple[int, ...]] = [tuple(range(machine.ranks))]
        self.operations = 0
        self._overhead = round(machine.call_overhead_s * ATTOSECONDS)
        self._known: dict[bytes, Entry] = {}
        self._signatures: dict[Any, Signature] = {}
        self._costs: dict[Any, int] = {}
        self._take = {"tensor": self._tensor, "free": self._free, "stream": self._stream, "event": self._event,
                      "record": self._record, "wait_event": self._wait_event, "wait_work": self._wait_work,
                      "synchronize": self._synchronize, "sync_stream": self._sync_stream,
                      "host_work": self._host_work, "new_group": self._new_group}  # fmt: skip
        runs = {LOCAL: self._local, MESSAGE: self._message, COLLECTIVE: self._collective}
        self._take |= {name: runs[kind.runs] for name, kind in OPERATIONS.items() if kind.runs}

    def read(self, programs: list[Any], *, skipped: Iterable[tuple[int, int]], max_operations: int) -> None:
        """Take every rank's program; ReplayError where one is none."""
        left_out, left = set(skipped), max_operations
        for side, program in zip(self.sides, programs, strict=True):
            listed = FORM.listed(program)
            left -= len(listed)
            if left < 0:
                raise FORM.too_many(max_operations)
            for index, raw in enumerate(listed):
                entry = self._checked(index, raw, side.rank)
                if (side.rank, index) not in left_out:
                    self._follow(side, index, entry)
            self.operations += len(listed)

    def _follow(self, side: RankSide, index: int, entry: Entry) -> None:
        side.host += self._overhead
        try:
            self._take[entry["op"]](side, index, entry)
        except ReplayError:
            raise
        except VirtualClusterError as error:
            what = f"operation {index} of rank {side.rank} cannot be: {error.what}"
            raise ReplayError(what, why=error.why, next=error.next) from None
        except LookupError:
            problem = f"is a {entry['op']} of something that rank {side.rank} did not make"
            raise FORM.malformed(index, problem) from None

    def _checked(self, index: int, raw: Any, rank: int) -> Entry:
        try:
            key = marshal.dumps(raw, _MARSHAL_VERSION)
        except ValueError:
            key = b""
        known = self._known.get(key)
        if known is None:
            try:
                known = checked(index, raw)
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
                    f"out of memory: {side.live:,} bytes at once",
                    why=f"{self.machine.gpu.name} has {self.machine.gpu.memory_bytes:,} bytes",
                    next="free what is no longer used, or spread it over more ranks",
                )

    def _free(self, side: RankSide, index: int, entry: Entry) -> None:
        form = side.tensors[entry["tensor"]]
        if entry["tensor"] in side.freed or entry.get("stream", 0) >= side.streams:
            raise LookupError
        side.freed.add(entry["tensor"])
        side.live -= form.nbytes if form.where == "device" else 0

    def _stream(self, side: RankSide, index: int, entry: Entry) -> None:
        if entry["stream"] != side.streams:
            raise LookupError
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

    def _hold_host(self, side: RankSide, index: int, entry: Entry, after: list[Node]) -> None:
        gate = self._node(side, index, entry, MARK, 0, after)
        side.gate, side.host = gate, 0

    def _so_far(self, side: RankSide, index: int, stream: int) -> list[Node]:
        """What a stream has been given so far: few nodes, whose end is the end of all."""
        waits = side.waits[stream]
        if len(waits) >= _FEW:
            tail = side.tails.get(stream)
            mark = self._node(side, index, {"op": "record"}, MARK, 0, [*waits, *([tail] if tail else [])])
            side.tails[stream] = mark
            waits.clear()
        tail = side.tails.get(stream)
        return [*waits, tail] if tail is not None else list(waits)

    # Work.

    def _local(self, side: RankSide, index: int, entry: Entry) -> None:
        read, written = entry.get("reads", ()), entry.get("writes", ())
        engine = self._reach(side, entry, read, written)
        stream = side.lane(entry)
        after = side.waits.pop(stream, [])
        tail = side.tails.get(stream)
        if tail is not None:
            after.append(tail)
        side.tails[stream] = self._node(side, index, entry, engine, self._cost(side, entry, engine), after)

    def _reach(self, side: RankSide, entry: Entry, read: Any, written: Any) -> int:
        """Check the parts of a local operation, and say on which engine it runs."""
        for part in (*read, *written):
            side.require_live(part)
        if entry["op"] == "launch":
            if any(side.tensors[part[0]].where == "host" for part in (*read, *written)):
                why = "a kernel cannot touch the host's memory"
                raise VirtualClusterError(f"{entry['name']} touches it", why=why, next="copy it to the device first")
            return COMPUTE
        wanted = {"add": 2, "copy": 1, "scale": 1}[entry["op"]]
        forms = {(side.tensors[part[0]].dtype, part[2] - part[1]) for part in (*read, *written)}
        if len(read) != wanted or len(written) != 1 or len(forms) != 1 or (wanted == 2 and read[0] != written[0]):
            why = "it reads and writes parts of one size and dtype"
            raise VirtualClusterError(f"{entry['op']} has parts that do not fit", why=why, next="record it anew")
        places = side.tensors[read[-1][0]].where, side.tensors[written[0][0]].where
        if entry["op"] != "copy" and "host" in places:
            why = "only a copy reaches the host's memory"
            raise VirtualClusterError(f"{entry['op']} in the host's memory", why=why, next="copy it to the device")
        return {("host", "device"): TO_DEVICE, ("device", "host"): TO_HOST}.get(places, COMPUTE)

    def _cost(self, side: RankSide, entry: Entry, engine: int) -> int:
        if "duration_s" in entry and (engine == COMPUTE or entry["duration_s"]):
            return round(entry["duration_s"] * ATTOSECONDS)
        if engine != COMPUTE:
            gpu, part = self.machine.gpu, entry["writes"][0]
            nbytes = (part[2] - part[1]) * side.tensors[part[0]].item_bytes
            return round((gpu.copy_latency_s + nbytes / gpu.link_byte_per_s) * ATTOSECONDS)
        key = entry.get("flops", 0.0), entry.get("moved_bytes", 0), entry.get("dtype", "fp32")
        if key not in self._costs:
            self._costs[key] = self._priced(entry["name"], *key)
        return self._costs[key]

    def _priced(self, name: str, flops: float, moved_bytes: int, dtype: str) -> int:
        gpu = self.machine.gpu
        work = kernel_cost(
            gpu, {"name": name}, duration_s=None, flops=flops, moved_bytes=moved_bytes, dtype=dtype, touched=()
        )
        assert isinstance(work, KernelWork)
        arithmetic = work.arithmetic_ps * (ATTOSECONDS // PER_SECOND)
        memory = round(moved_bytes / gpu.memory_bandwidth_byte_per_s * ATTOSECONDS)
        return max(arithmetic, memory, round(gpu.kernel_floor_s * ATTOSECONDS))

    def _message(self, side: RankSide, index: int, entry: Entry) -> None:
        parts, peer = entry.get("reads") or entry.get("writes") or [], entry["peer"]
        if len(parts) != 1 or peer >= self.machine.ranks or peer == side.rank:
            raise VirtualClusterError(
                f"a {entry['op']} of {len(parts)} parts with rank {peer}",
                why="one part of one tensor travels between two ranks",
                next="record it anew",
            )
        side.require_live(parts[0])
        is_send = entry["op"] == "send"
        ends = (side.rank, peer) if is_send else (peer, side.rank)
        node = self._beside(side, index, entry, (entry["op"], peer))
        key = "message", ends, side.meets[entry["op"], peer]
        side.meets[entry["op"], peer] += 1
        self._join(key, node, ends, ("message", elements(parts), side.tensors[parts[0][0]].dtype, ()))

    def _collective(self, side: RankSide, index: int, entry: Entry) -> None:
        if entry["group"] >= side.groups:
            raise LookupError
        ranks = self.groups[entry["group"]]
        if side.rank not in ranks:
            why = "only members of a group call its collectives"
            raise VirtualClusterError(
                f"{entry['op']} in a group without this rank", why=why, next="ask get_rank(group)"
            )
        for part in (*entry["reads"], *entry["writes"]):
            side.require_live(part)
        dtypes = {side.tensors[part[0]].dtype for part in (*entry["reads"], *entry["writes"])}
        check_collective(entry, ranks.index(side.rank), len(ranks), dtypes)
        node = self._beside(side, index, entry, ("group", entry["group"]))
        key = "collective", entry["group"], side.meets[entry["group"]]
        side.meets[entry["group"]] += 1
        self._join(key, node, ranks, signature(entry, dtypes, len(ranks)))
        if entry["op"] == "barrier" and "work" not in entry:
            self._hold_host(side, index, {"op": "synchronize"}, [node])

    def _new_group(self, side: RankSide, index: int, entry: Entry) -> None:
        number, ranks = entry["group"], tuple(entry["ranks"])
        if (
            number != side.groups
            or not all(rank < self.machine.ranks for rank in ranks)
            or len(set(ranks)) < len(ranks)
        ):
            raise LookupError
        side.groups += 1
        if number == len(self.groups):
            self.groups.append(ranks)
        node = self._node(side, index, entry, PART, 0, [])
        node.number = number - 1
        side.gate, side.host = node, 0
        self._join(("store", number), node, self.groups[0], ("new_group", ranks, "", ()))

    def _beside(self, side: RankSide, index: int, entry: Entry, lane: Any) -> Node:
        """An operation of the communication's own lane, once its stream has done what it was given before."""
        stream = side.lane(entry)
        after, before = self._so_far(side, index, stream), side.tails.get(lane)
        node = self._node(side, index, entry, PART, 0, after if before is None else [*after, before])
        node.number = side.calls[entry["op"]]
        side.calls[entry["op"]] += 1
        side.tails[lane] = node
        if "work" not in entry:
            side.tails[stream] = node
            side.waits.pop(stream, None)
        elif entry["work"] != len(side.works):
            raise LookupError
        else:
            side.works.append(node)
        return node

    def _join(self, key: Any, node: Node, ranks: tuple[int, ...], said: Signature) -> None:
        meeting = self.meetings.get(key)
        if meeting is None:
            meeting = self.meetings[key] = Meeting(ranks)
            self._signatures[key] = said
        elif not meeting.bad:
            meeting.bad = difference(self._signatures[key], said)
        meeting.nodes[node.rank] = node
        node.meeting = meeting

    def _node(self, side: RankSide, index: int, entry: Entry, engine: int, cost: int, after: list[Node]) -> Node:
        node = Node(side.rank, index, entry, engine, cost)
        node.seq = len(self.nodes)
        self.nodes.append(node)
        for other in after:
            if other.followers is None:
                other.followers = [node]
            else:
                other.followers.append(node)
        node.pending = len(after)
        gate = side.gate
        if gate is None:
            node.ready = side.host
        elif side.host or not any(other.seq > gate.seq for other in after):
            # What came after the gate waits for it already.
            node.gate, node.delay = gate, side.host
            node.pending += 1
            if gate.followers is None:
                gate.followers = [node]
            else:
                gate.followers.append(node)
        return node
