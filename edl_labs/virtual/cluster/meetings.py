"""Operations of ranks on their way, and the meetings at which several happen together if they agree."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from edl_labs.virtual.cluster.program import TensorForm, elements, shares, text_of
from edl_labs.virtual.errors import VirtualClusterError
from edl_labs.virtual.program import Entry

# What an operation takes: nothing, an engine of its rank, or other ranks.
MARK, COMPUTE, TO_DEVICE, TO_HOST, PART = range(5)
Signature = tuple[str, Any, str, Any]  # the call, how many elements, their dtype, and what else it says


class RankOperation:
    """One operation of one rank on its way: what it still waits for, when it was ready, began and ended."""

    __slots__ = (
        "cost",
        "delay",
        "done",
        "engine",
        "entry",
        "followers",
        "gate",
        "index",
        "meeting",
        "number",
        "pending",
        "rank",
        "ready",
        "seq",
        "start",
    )

    def __init__(self, rank: int, index: int, entry: Entry, engine: int, cost: int, seq: int, pending: int) -> None:
        self.rank, self.index, self.entry, self.engine, self.cost = rank, index, entry, engine, cost
        self.seq, self.pending = seq, pending
        self.ready = self.number = self.delay = self.start = 0
        self.followers: list[RankOperation] | None = None
        self.gate: RankOperation | None = None
        self.meeting: Meeting | None = None
        self.done: int | None = None

    @property
    def text(self) -> str:
        """The call as people read it."""
        return text_of(self.entry, self.number)


class Meeting:
    """Operations of several ranks that happen together: a collective, or the two halves of a message."""

    __slots__ = ("arrived", "bad", "nodes", "ranks", "ready", "said")

    def __init__(self, ranks: tuple[int, ...], said: Signature) -> None:
        self.ranks, self.said = ranks, said
        self.nodes: dict[int, RankOperation] = {}
        self.arrived = self.ready = 0
        self.bad = ""

    @property
    def is_message(self) -> bool:
        """Whether this is a message and no collective."""
        return next(iter(self.nodes.values())).entry["op"] in ("send", "recv")


class Plan:
    """An operation of a rank that was checked once, and is issued as often as it comes.

    `lane` is that of communication, None for work of its own; `cost` is time there, and else bytes.
    """

    __slots__ = ("cost", "engine", "entry", "holds_host", "is_async", "lane", "meets", "op", "ranks", "said", "stream")

    def __init__(self, entry: Entry, stream: int, engine: int, cost: int) -> None:
        self.entry, self.stream, self.engine, self.cost = entry, stream, engine, cost
        self.op = entry["op"]
        self.is_async = "async" in entry
        self.holds_host = entry["op"] == "barrier" and not self.is_async
        self.lane: Any = None
        self.meets: Any = None
        self.ranks: tuple[int, ...] = ()
        self.said: Signature = ("", 0, "", ())

    def joining(self, lane: Any, ranks: tuple[int, ...], said: Signature) -> Plan:
        """The same plan as part of a collective of these ranks, where all give it this signature."""
        self.lane, self.ranks, self.said = lane, ranks, said
        self.meets = lane if lane[0] == "group" else ranks
        return self


class RankSide:
    """A rank while its program is read: the last operation in each lane, and what its host waits for."""

    def __init__(self, rank: int, everyone: tuple[int, ...]) -> None:
        self.rank = rank
        self.tails: dict[Any, RankOperation] = {}
        self.waits: dict[int, list[RankOperation]] = defaultdict(list)
        self.gate: RankOperation | None = None
        self.host = 0
        self.streams = 1
        self.events: list[list[RankOperation]] = []
        self.works: list[RankOperation] = []
        self.tensors: list[TensorForm] = []
        self.freed: set[int] = set()
        self.groups = [everyone]
        self.plans: dict[bytes, Plan] = {}
        self.calls: dict[str, int] = {}
        self.meets: dict[Any, int] = {}
        self.live = self.peak = 0
        self.peak_index = -1

    def lane(self, entry: Entry) -> int:
        """The stream that an operation is issued to; LookupError where the rank did not make it."""
        stream: int = entry["stream"]
        if stream >= self.streams:
            raise LookupError
        return stream

    def require_live(self, part: list[int]) -> None:
        """VirtualClusterError unless these elements are there."""
        number, start, stop = part
        form = self.tensors[number]
        if not 0 <= start < stop <= form.numel or number in self.freed:
            fault = "the tensor has been freed" if number in self.freed else f"the tensor has {form.numel} elements"
            raise VirtualClusterError(
                f"{form.name}[{start}:{stop}] cannot be used",
                why=fault,
                next="record the program again with cluster.record(program)",
            )


def signature(entry: Entry, dtype: str, count: int) -> Signature:
    """What all members of a collective have to say alike."""
    kind, size = entry["op"], elements(entry["reads"])
    counted: Any = size
    if kind == "all_gather":
        counted = _even(shares(entry["writes"], count))
    elif kind == "reduce_scatter":
        counted = _even(shares(entry["reads"], count))
    elif kind == "all_to_all":
        even = [_even(shares(entry[side], count)) for side in ("reads", "writes")]
        counted = "in parts" if tuple in map(type, even) else even[0]
    more = tuple((key, entry[key]) for key in ("reduce", "root", "algorithm") if key in entry)
    return kind, counted, dtype, more


def _even(sizes: list[int]) -> Any:
    return sum(sizes) if len(set(sizes)) == 1 else tuple(sizes)


def difference(first: Signature, second: Signature) -> str:
    """What two ranks say differently of one call; '' where they agree."""
    if first == second:
        return ""
    if first[0] != second[0]:
        return "different calls"
    if first[1] != second[1]:
        what = "ranks" if first[0] == "new_group" else "elements"
        return f"{str(first[1])[:40]} {what} against {str(second[1])[:40]}"
    if first[2] != second[2]:
        return f"{first[2]} against {second[2]}"
    pairs = [(one, other) for one, other in zip(first[3], second[3], strict=True) if one != other]
    return ", ".join(f"{key}={value} against {key}={other}" for (key, value), (_, other) in pairs)


def uneven_exchange(meeting: Meeting) -> str:
    """How the parts of a complete all_to_all do not fit together; '' where they do, and for other collectives."""
    if meeting.said[:2] != ("all_to_all", "in parts"):
        return ""
    entries = [meeting.nodes[rank].entry for rank in meeting.ranks]
    given, taken = ([shares(entry[side], len(entries)) for entry in entries] for side in ("reads", "writes"))
    for at, sizes in enumerate(given):
        for to, size in enumerate(sizes):
            if taken[to][at] != size:
                ends = meeting.ranks[at], meeting.ranks[to]
                return f"rank {ends[0]} sends {size} elements to rank {ends[1]}, which receives {taken[to][at]}"
    return ""


def moved_elements(entry: Entry, count: int) -> int:
    """The n of a collective's price: elements of the whole, where parts are unequal as if all were like the largest."""
    side = {"all_gather": "writes", "reduce_scatter": "reads", "all_to_all": "reads"}.get(entry["op"])
    return count * max(shares(entry[side], count)) if side else elements(entry["reads"])
