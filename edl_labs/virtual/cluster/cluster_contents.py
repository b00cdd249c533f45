"""What is in the tensors of a cluster in the end: which rank's data, from which element, how often. It needs no data.

Sums, copies, scalings and collectives keep the sum of what went in; a kernel's output is a new origin, named by what it
read, so that equal computations are equal on every rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from itertools import accumulate, pairwise

from edl_labs.values import Value
from edl_labs.virtual.cluster.engine import ClusterEngine
from edl_labs.virtual.cluster.meetings import RankOperation
from edl_labs.virtual.cluster.program import TensorForm, elements
from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.intervals import Part, aligned, between, write

_MAX_VISITS = 4_000_000  # parts and terms looked at: half a minute of a judge's time
_EXACT_BITS = 128  # counts beyond are floats: sums that are reduced again and again double each time
_MAX_TEXT = 120  # a line and a half of a terminal
# A source is (rank, tensor, text) of a tensor's own data, or (-1, digest, text) of a kernel's result or of nothing.
Source = tuple[int, object, str]
Count = Fraction | int | float
Sum = tuple[tuple[Source, int, Count], ...]  # source, distance from an element to its own, how often
NOTHING: Source = (-1, "nothing", "unwritten data")


@dataclass(frozen=True, repr=False)
class ClusterTerm(Value):
    """Element i of a part holds `count` times element i + `offset` of `source`, of `rank` (-1: a kernel's result)."""

    source: str
    rank: int
    offset: int
    count: float


@dataclass(frozen=True, repr=False)
class ClusterPart(Value):
    """Elements `start` to `stop` of a tensor hold one sum of terms; none is zero."""

    start: int
    stop: int
    terms: tuple[ClusterTerm, ...]

    @property
    def ranks(self) -> dict[int, float]:
        """How often each rank's own data is in it, whatever the tensor."""
        found: dict[int, float] = {}
        for term in self.terms:
            found[term.rank] = found.get(term.rank, 0) + term.count
        return found

    def __str__(self) -> str:
        told = " + ".join(_told(term) for term in self.terms) or "0"
        return f"[{self.start}:{self.stop}] {told}"


def _told(term: ClusterTerm) -> str:
    where = f"rank {term.rank}'s {term.source}" if term.rank >= 0 else term.source
    times = "" if term.count == 1 else f"{term.count:g} x "
    return f"{times}{where}{f' at {term.offset:+d}' if term.offset else ''}"


class ClusterContents:
    """The contents of all tensors after a played program, followed in the order in which things happened."""

    def __init__(self, engine: ClusterEngine) -> None:
        self._sides = engine.graph.sides
        self.memory = [
            [_initial(side.rank, number, form) for number, form in enumerate(side.tensors)] for side in self._sides
        ]
        self._visits = 0
        for node in engine.order:
            if node.meeting is None:
                self._local(node)
            elif node.entry["op"] != "new_group":
                self._together([node.meeting.nodes[rank] for rank in node.meeting.ranks])

    def of(self, rank: int, tensor: int | str) -> tuple[ClusterPart, ...]:
        """The parts of a tensor, by its number or its name (the last one of that name)."""
        if type(rank) is not int or not 0 <= rank < len(self._sides):
            raise ReplayError(
                f"there is no rank {rank!r}",
                why=f"the cluster has {len(self._sides)} ranks",
                next=f"use a rank from 0 to {len(self._sides) - 1}",
            )
        forms = self._sides[rank].tensors
        named = [number for number, form in enumerate(forms) if tensor in (number, form.name)]
        if not named:
            raise ReplayError(
                f"rank {rank} has no tensor {tensor!r}",
                why=f"this rank created {len(forms)} tensors: {', '.join(form.name for form in forms)[:80]}",
                next="use one of these names, or a tensor's number, counted from 0",
            )
        found = self.memory[rank][named[-1]]
        return tuple(ClusterPart(start, stop, tuple(map(_term, total))) for start, stop, total in found)

    def _local(self, node: RankOperation) -> None:
        entry, rank = node.entry, node.rank
        read = [self._read(rank, part) for part in entry.get("reads", ())]
        op = entry["op"]
        if op == "launch":
            for number, part in enumerate(entry.get("writes", ())):
                self._write(rank, part, [(0, part[2] - part[1], _computed(entry["name"], number, read))])
        elif op == "add":
            self._write(rank, entry["writes"][0], self._sum(read))
        elif op == "scale":
            by = Fraction(entry["factor"])
            self._write(rank, entry["writes"][0], [(a, b, _scaled(total, by)) for a, b, total in read[0]])
        else:
            self._write(rank, entry["writes"][0], read[0])

    def _together(self, nodes: list[RankOperation]) -> None:
        kind = nodes[0].entry["op"]
        given = [self._joined(node.rank, node.entry.get("reads", ())) for node in nodes]
        if kind in ("send", "recv"):
            self._put(nodes[1], given[0])
        elif kind in ("all_reduce", "reduce", "reduce_scatter"):
            reduced = self._reduced(nodes[0].entry["reduce"], given)
            if kind == "all_reduce":
                for node in nodes:
                    self._put(node, reduced)
            elif kind == "reduce":
                self._put(nodes[nodes[0].entry["root"]], reduced)
            else:
                self._deal(nodes, reduced)
        elif kind == "broadcast":
            for node in nodes:
                self._put(node, given[node.entry["root"]])
        elif kind == "all_gather":
            whole = _after_each_other(given)
            for node in nodes:
                self._put(node, whole)
        elif kind == "all_to_all":
            self._exchange(nodes, given)

    def _exchange(self, nodes: list[RankOperation], given: list[list[Part[Sum]]]) -> None:
        cuts = [_cuts(node.entry["reads"], len(nodes)) for node in nodes]
        for place, node in enumerate(nodes):
            own = [_cut(parts, *cuts[at][place]) for at, parts in enumerate(given)]
            self._put(node, _after_each_other(own))

    def _deal(self, nodes: list[RankOperation], whole: list[Part[Sum]]) -> None:
        for (start, stop), node in zip(_cuts(nodes[0].entry["reads"], len(nodes)), nodes, strict=True):
            self._put(node, _cut(whole, start, stop))

    def _reduced(self, op: str, given: list[list[Part[Sum]]]) -> list[Part[Sum]]:
        if op in ("sum", "avg"):
            total = self._sum(given)
            by = Fraction(1, len(given))
            return [(a, b, _scaled(one, by)) for a, b, one in total] if op == "avg" else total
        return [(0, given[0][-1][1], _computed(op, 0, given))]

    def _sum(self, given: list[list[Part[Sum]]]) -> list[Part[Sum]]:
        result: list[Part[Sum]] = []
        for start, stop, sums in aligned(given, given[0][-1][1]):
            terms: dict[tuple[Source, int], Count] = {}
            for source, offset, count in (term for one in sums for term in one):
                terms[source, offset] = terms.get((source, offset), 0) + count
            self._count(len(sums) + sum(map(len, sums)))
            result.append((start, stop, _sorted(terms)))
        return result

    def _joined(self, rank: int, parts: Iterable[list[int]]) -> list[Part[Sum]]:
        return _after_each_other([self._read(rank, part) for part in parts])

    def _put(self, node: RankOperation, parts: list[Part[Sum]]) -> None:
        start = 0
        for region in node.entry["writes"]:
            stop = start + region[2] - region[1]
            self._write(node.rank, region, parts if (start, stop) == (0, parts[-1][1]) else _cut(parts, start, stop))
            start = stop

    def _read(self, rank: int, region: list[int]) -> list[Part[Sum]]:
        number, start, stop = region
        found = _cut(self.memory[rank][number], start, stop)
        self._count(len(found))
        return found

    def _write(self, rank: int, region: list[int], new: list[Part[Sum]]) -> None:
        parts = self.memory[rank][region[0]]
        write(parts, _moved(new, region[1]))
        self._count(len(new) + len(parts) // 64)

    def _count(self, visits: int) -> None:
        self._visits += visits
        if self._visits > _MAX_VISITS:
            raise ReplayError(
                "the programs split their tensors into too many parts to track",
                why="the contents of every part that is written separately are tracked",
                next="use fewer ranks, steps or chunks",
            )


def _initial(rank: int, number: int, form: TensorForm) -> list[Part[Sum]]:
    own: Source = (rank, number, form.name)
    held: dict[str, Sum] = {"own": ((own, 0, 1),), "zeros": (), "empty": ((NOTHING, 0, 1),)}
    return [(0, form.numel, held[form.fill])]


def _computed(name: str, number: int, read: list[list[Part[Sum]]]) -> Sum:
    digest = blake2b(repr((name, number, read)).encode(), digest_size=12).hexdigest()
    texts = dict.fromkeys(source[2] for parts in read for _, _, total in parts for source, _, _ in total)
    text = f"{name}({', '.join(texts)})"
    return (((-1, digest, text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"), 0, 1),)


def _scaled(total: Sum, by: Fraction) -> Sum:
    return tuple((source, offset, _short(count * by)) for source, offset, count in total) if by else ()


def _sorted(terms: dict[tuple[Source, int], Count]) -> Sum:
    kept = [(source, offset, _short(count)) for (source, offset), count in terms.items() if count]
    return tuple(sorted(kept, key=lambda term: (term[0][0], str(term[0][1]), term[1])))


def _short(count: Count) -> Count:
    """The same count, as a float where it has too many digits."""
    if isinstance(count, float):
        return count
    over, under = count.numerator, count.denominator
    if max(over.bit_length(), under.bit_length()) <= _EXACT_BITS:
        return count
    try:
        return over / under
    except OverflowError:
        return math.copysign(math.inf, over)


def _cut(parts: list[Part[Sum]], start: int, stop: int) -> list[Part[Sum]]:
    """Parts within bounds, in positions counted from the first."""
    return _moved(between(parts, start, stop), -start)


def _moved(parts: list[Part[Sum]], by: int) -> list[Part[Sum]]:
    """The same parts so many elements further on; what they hold stays what it is."""
    if not by:
        return parts
    return [(a + by, b + by, tuple((s, offset - by, n) for s, offset, n in total)) for a, b, total in parts]


def _after_each_other(several: list[list[Part[Sum]]]) -> list[Part[Sum]]:
    whole: list[Part[Sum]] = []
    for parts in several:
        whole += _moved(parts, whole[-1][1] if whole else 0)
    return whole


def _cuts(parts: list[list[int]], count: int) -> list[tuple[int, int]]:
    """Where each member's share of these parts lies, counted from the first element."""
    sizes = [elements(parts) // count] * count if len(parts) == 1 else [stop - start for _, start, stop in parts]
    return list(pairwise([0, *accumulate(sizes)]))


def _term(term: tuple[Source, int, Count]) -> ClusterTerm:
    (rank, _, text), offset, count = term
    return ClusterTerm(text, rank, offset, float(count))


__all__ = ["ClusterContents", "ClusterPart", "ClusterTerm"]
