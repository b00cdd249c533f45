"""Why a program hangs: which rank waits in which call, and what it waits for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from edl_labs.values import Value
from edl_labs.virtual.cluster.engine import ClusterEngine
from edl_labs.virtual.cluster.machine import ATTOSECONDS, Faults
from edl_labs.virtual.cluster.meetings import Meeting, RankOperation

MISMATCH, DEADLOCK, MISSING, LOST = "mismatch", "deadlock", "missing", "lost"
_END = "the end of its program"
_SHOWN = 4  # different waits in one sentence
_EVERY_MEMBER = "make sure that every member of the group makes this call, whichever branch it takes"
_EVERY_RANK = "create every group in the same order on every rank of the cluster, even on ranks that are not members"
_ADVICE = {"new_group": _EVERY_RANK, "send": "add the matching recv", "recv": "add the matching send"}


@dataclass(frozen=True, repr=False)
class ClusterWait(Value):
    """Where a rank stands for good: operation `index` of its program, as people read it; -1 where it has ended."""

    rank: int
    index: int
    call: str
    since_s: float


@dataclass(frozen=True, repr=False)
class Hang(Value):
    """A program that never ends: `kind` is 'mismatch', 'deadlock', 'missing' (a rank never calls) or 'lost'.

    `waits` has every rank, in their order.
    """

    kind: str
    what: str
    why: str
    next: str
    waits: tuple[ClusterWait, ...]

    def __str__(self) -> str:
        return f"{self.what}\n  why:  {self.why}\n  next: {self.next}"


def find_hang(engine: ClusterEngine, faults: Faults) -> Hang | None:
    """What keeps a replayed program from ending; None if it has ended."""
    first: dict[int, RankOperation] = {}
    for node in engine.graph.nodes:
        if node.done is None and not node.pending and node.meeting is not None and node.start >= 0:
            first.setdefault(node.rank, node)
    if not first and all(node.done is not None for node in engine.graph.nodes):
        return None
    ends = dict.fromkeys(range(engine.machine.ranks), 0)
    for node in engine.graph.nodes:
        ends[node.rank] = max(ends[node.rank], node.done or 0)
    waits = tuple(_wait(rank, first.get(rank), ends[rank], faults) for rank in ends)
    bad = next((node.meeting for node in first.values() if node.meeting and node.meeting.bad), None)
    if bad is not None:
        return _mismatch(bad, waits)
    told = _told(waits)
    if faults.lost:
        ranks = ", ".join(f"rank {rank} at {at:g} s" for rank, at in faults.lost.items())
        why = "a collective or a message needs all of its ranks, but a lost rank makes no more calls"
        return Hang(
            LOST, f"{told}, after the loss of {ranks}", why, "restart from a checkpoint, without the lost rank", waits
        )
    missing = _missing(first)
    if missing is not None:
        node, absent = missing
        why = f"rank {absent} never makes the call that matches {node.text} of rank {node.rank}"
        return Hang(MISSING, told, why, _ADVICE.get(node.entry["op"], _EVERY_MEMBER), waits)
    why = "each rank waits for a call that other ranks have not reached"
    advice = "make the calls in the same order on all ranks, or start sends and receives with isend and irecv"
    return Hang(DEADLOCK, told, why, advice, waits)


def _mismatch(bad: Meeting, waits: tuple[ClusterWait, ...]) -> Hang:
    calls: dict[str, list[int]] = defaultdict(list)
    for rank in bad.ranks:
        if rank in bad.nodes:
            calls[bad.nodes[rank].text].append(rank)
    told = ", ".join(f"{_ranks(ranks)} in {call}" for call, ranks in _fewest_first(calls))
    what = f"these calls do not match: {told} ({bad.bad})"
    if bad.is_message:
        why, advice = "a receive must have as many elements as the send, and the same dtype", "make both calls match"
    elif any(node.entry["op"] == "new_group" for node in bad.nodes.values()):
        why, advice = "groups are identified by the order in which each rank creates them", _EVERY_RANK
    else:
        why = "the n-th call in a group must be the same collective on all its ranks, with the same size and dtype"
        advice = "make the same calls in the same order on all ranks of the group"
    return Hang(MISMATCH, what, why, advice, waits)


def _fewest_first(calls: dict[str, list[int]]) -> list[tuple[str, list[int]]]:
    return sorted(calls.items(), key=lambda item: (len(item[1]), item[1]))[:_SHOWN]


def _missing(first: dict[int, RankOperation]) -> tuple[RankOperation, int] | None:
    """A call for which a rank waits, and the first rank that never makes its part of it."""
    for node in first.values():
        assert node.meeting is not None
        for rank in node.meeting.ranks:
            if rank not in node.meeting.nodes:
                return node, rank
    return None


def _wait(rank: int, node: RankOperation | None, end: int, faults: Faults) -> ClusterWait:
    if rank in faults.lost and node is None:
        return ClusterWait(rank, -1, "lost", faults.lost[rank])
    if node is None:
        return ClusterWait(rank, -1, _END, end / ATTOSECONDS)
    return ClusterWait(rank, node.index, node.text, node.start / ATTOSECONDS)


def _told(waits: tuple[ClusterWait, ...]) -> str:
    calls: dict[str, list[int]] = defaultdict(list)
    for wait in waits:
        if wait.call != "lost":
            calls[wait.call].append(wait.rank)
    shown = _fewest_first(calls)
    told = [f"{_ranks(ranks)} {_verb(call, ranks)}" for call, ranks in shown]
    more = f", and {len(calls) - len(shown)} other calls" if len(calls) > len(shown) else ""
    return "the program hangs: " + ", ".join(told) + more


def _verb(call: str, ranks: list[int]) -> str:
    one = len(ranks) == 1
    if call == _END:
        return f"has reached {_END}" if one else "have reached the end of their programs"
    return f"{'waits' if one else 'wait'} in {call}"


def _ranks(ranks: list[int]) -> str:
    """Ranks in words: 'rank 3', 'ranks 0 to 6', 'ranks 0, 2, 5'."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    shown = ", ".join(map(str, ranks[:6]))
    return f"ranks {shown}{', …' if len(ranks) > 6 else ''}"
