"""What collectives cost, by algorithm: rounds of messages, each priced on the links that it uses.

In one round all messages run at once, and the round ends with the slowest: alpha + bytes / rate of its link, or longer
where several messages share a port. With P ranks on equal links and n bytes this gives the closed forms (Thakur,
Rabenseifner, Gropp 2005): ring 2(P-1)(a + n/(P b)), tree 2 ceil(log2 P)(a + n/b), halving-doubling
2 log2 P a + 2(P-1)/P n/b.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from edl_labs.virtual.cluster.machine import ClusterMachine
from edl_labs.virtual.errors import VirtualClusterError, shown

_MAX_MESSAGES = 8_000_000  # of all plans: half a minute of a judge's time
Message = tuple[int, int, float]  # from which member to which, and how much of the n bytes
Round = tuple[int, list[Message]]  # so many times the same messages


def _ring(members: Sequence[int], times: int, part: float) -> list[Round]:
    count = len(members)
    edges = [(member, members[(at + 1) % count], part) for at, member in enumerate(members)]
    return [(times, edges)] if times else []


def _halving(count: int) -> list[int]:
    """Powers of two below `count`, the largest first."""
    return [1 << bit for bit in reversed(range((count - 1).bit_length()))]


def _tree(count: int, *, root: int = 0, scattered: bool = False) -> list[Round]:
    """A binomial tree from the root: everything, or to each child what its own part of the tree keeps."""
    found: list[Round] = []
    for step in _halving(count):
        edges = []
        for sender in range(0, count - step, 2 * step):
            part = min(step, count - sender - step) / count if scattered else 1.0
            edges.append(((sender + root) % count, (sender + step + root) % count, part))
        found.append((1, edges))
    return found


def _back(rounds: Iterable[Round]) -> list[Round]:
    return [(times, [(dst, src, part) for src, dst, part in edges]) for times, edges in reversed(list(rounds))]


def _doubling(count: int) -> list[Round]:
    """Recursive halving among a power of two: with neighbours half of everything, then a quarter with those beyond."""
    found, step, part = [], 1, 0.5
    while step < count:
        found.append((1, [(member, member ^ step, part) for member in range(count)]))
        step, part = 2 * step, part / 2
    return found


def _folded(count: int) -> list[Round]:
    """Halving and doubling; members beyond a power of two hand theirs to one within, and get the result back."""
    within = 1 << (count.bit_length() - 1)
    fold: list[Round] = [(1, [(within + at, at, 1.0) for at in range(count - within)])] if count > within else []
    halving = _doubling(within)
    return fold + halving + _back(halving) + _back(fold)


def _levels(nodes: Sequence[Sequence[int]], *, inner: int, outer: int) -> tuple[list[Round], list[Round]]:
    """Rings in every node at once, and rings of equal places across the nodes, so many rounds times their size - 1."""
    size, count = len(nodes[0]), len(nodes)
    here = [edge for node in nodes for edge in _ring(node, 1, 1 / size)[0][1]]
    across = [edge for place in zip(*nodes, strict=True) for edge in _ring(place, 1, 1 / (size * count))[0][1]]
    return [(inner * (size - 1), here)], [(outer * (count - 1), across)]


def _hierarchical(kind: str, nodes: Sequence[Sequence[int]]) -> list[Round]:
    if kind == "all_reduce":
        here, across = _levels(nodes, inner=1, outer=2)
        return here + across + here
    here, across = _levels(nodes, inner=1, outer=1)
    return here + across if kind == "reduce_scatter" else across + here


def _pairs(count: int) -> list[Round]:
    return [(1, [(at, (at + step) % count, 1 / count) for at in range(count)]) for step in range(1, count)]


_Maker = Callable[[int, int], list[Round]]  # from the number of members and the root's place
_EVERYONE = range
_ALGORITHMS: dict[str, dict[str, _Maker]] = {
    "all_reduce": {
        "ring": lambda count, root: _ring(_EVERYONE(count), 2 * (count - 1), 1 / count),
        "tree": lambda count, root: _back(_tree(count)) + _tree(count),
        "halving-doubling": lambda count, root: _folded(count),
    },
    "reduce_scatter": {
        "ring": lambda count, root: _ring(_EVERYONE(count), count - 1, 1 / count),
        "halving-doubling": lambda count, root: _doubling(count),
    },
    "all_gather": {
        "ring": lambda count, root: _ring(_EVERYONE(count), count - 1, 1 / count),
        "halving-doubling": lambda count, root: _back(_doubling(count)),
    },
    "broadcast": {
        "tree": lambda count, root: _tree(count, root=root),
        "ring": lambda count, root: (
            _tree(count, root=root, scattered=True) + _ring(_EVERYONE(count), count - 1, 1 / count)
        ),
    },
    "reduce": {
        "tree": lambda count, root: _back(_tree(count, root=root)),
        "ring": lambda count, root: (
            _ring(_EVERYONE(count), count - 1, 1 / count) + _back(_tree(count, root=root, scattered=True))
        ),
    },
    "all_to_all": {"pairwise": lambda count, root: _pairs(count)},
    "barrier": {"tree": lambda count, root: _back(_tree(count)) + _tree(count)},
}
KINDS = tuple(_ALGORITHMS)
_LEVELLED = ("all_reduce", "reduce_scatter", "all_gather")
AUTO = "auto"
ALGORITHMS = (AUTO, "ring", "tree", "halving-doubling", "hierarchical", "pairwise")


@dataclass(frozen=True)
class CollectivePlan:
    """One collective of a group by one algorithm: what it costs for n bytes, and which links carry which part of them.

    `rounds` are (times, ((alpha_s, seconds per byte), ...)); `sent` maps (level, port) to the share of n that it sends.
    """

    algorithm: str
    rounds: tuple[tuple[int, tuple[tuple[float, float], ...]], ...]
    sent: Mapping[tuple[int, int], float]

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The levels whose links it uses."""
        return tuple(sorted({level for level, _ in self.sent}))

    def seconds(self, nbytes: float) -> float:
        """How long it takes once all ranks have arrived."""
        return sum(times * max(alpha + nbytes * byte_s for alpha, byte_s in ways) for times, ways in self.rounds)


class CollectiveCosts:
    """Plans for collectives on a machine; each group's are worked out once. `slow` are factors by (level, rank)."""

    def __init__(self, machine: ClusterMachine, slow: Mapping[tuple[int, int], float] | None = None) -> None:
        self.machine, self._slow = machine, slow or {}
        self._plans: dict[tuple[str, tuple[int, ...], int], dict[str, CollectivePlan]] = {}
        self._healthy = CollectiveCosts(machine) if self._slow else self
        self._messages = 0

    def plans(self, kind: str, ranks: tuple[int, ...], *, root: int = 0) -> dict[str, CollectivePlan]:
        """Every algorithm that this group can use for a collective, by name; `root` is a place in the group."""
        key = kind, ranks, root
        if key not in self._plans:
            made = {
                name: make(len(ranks), root) for name, make in _ALGORITHMS[kind].items() if _fits(kind, name, ranks)
            }
            if kind in _LEVELLED and (nodes := self._nodes(ranks)):
                made["hierarchical"] = _hierarchical(kind, nodes)
            self._messages += sum(len(edges) for rounds in made.values() for _, edges in rounds)
            if self._messages > _MAX_MESSAGES:
                raise VirtualClusterError(
                    "the program has so many different collectives that their costs cannot be computed",
                    why=f"the messages of each collective are simulated one by one, and at most {_MAX_MESSAGES:,} can "
                    "be simulated",
                    next="use fewer groups, or fewer ranks",
                )
            self._plans[key] = {name: self._plan(name, rounds, ranks) for name, rounds in made.items()}
        return self._plans[key]

    def plan(
        self, kind: str, ranks: tuple[int, ...], nbytes: float, *, algorithm: str = AUTO, root: int = 0
    ) -> CollectivePlan:
        """The plan by this algorithm; `auto` is the cheapest on a machine without faults."""
        plans = self.plans(kind, ranks, root=root)
        if algorithm == AUTO:
            healthy = self._healthy.plans(kind, ranks, root=root)
            return plans[min(healthy, key=lambda name: healthy[name].seconds(nbytes))]
        if algorithm not in plans:
            raise VirtualClusterError(
                f"{kind} of {len(ranks)} ranks cannot use the algorithm {shown(algorithm)}",
                why=f"this group can use {', '.join(plans)} (halving-doubling needs a power of two as the "
                "number of ranks, and hierarchical needs several whole nodes)",
                next=f"use algorithm={next(iter(plans))!r}, or omit algorithm= to use the cheapest",
            )
        return plans[algorithm]

    def _nodes(self, ranks: tuple[int, ...]) -> list[list[int]]:
        """Places of the members by node, if there are several nodes with equally many, each more than one."""
        nodes: dict[int, list[int]] = defaultdict(list)
        for place, rank in enumerate(ranks):
            nodes[rank // self.machine.levels[0].span].append(place)
        sizes = {len(node) for node in nodes.values()}
        return list(nodes.values()) if len(nodes) > 1 and len(sizes) == 1 and 1 not in sizes else []

    def _plan(self, name: str, rounds: list[Round], ranks: tuple[int, ...]) -> CollectivePlan:
        sent: dict[tuple[int, int], float] = defaultdict(float)
        priced = []
        for times, edges in rounds:
            messages = [(ranks[src], ranks[dst], part) for src, dst, part in edges]
            out: dict[tuple[int, int], float] = defaultdict(float)
            came: dict[tuple[int, int], float] = defaultdict(float)
            levels = [self.machine.level_between(src, dst) for src, dst, _ in messages]
            for level, (src, dst, part) in zip(levels, messages, strict=True):
                shared = self.machine.levels[level].ranks_per_port
                out[level, src // shared] += part
                came[level, dst // shared] += part
            ways = {self._way(level, message, out, came) for level, message in zip(levels, messages, strict=True)}
            priced.append((times, _worst(ways)))
            for port, part in out.items():
                sent[port] += times * part
        return CollectivePlan(name, tuple(one for one in priced if one[0] and one[1]), dict(sent))

    def _way(self, number: int, message: Message, out: Mapping, came: Mapping) -> tuple[float, float]:
        level, (src, dst, part) = self.machine.levels[number], message
        slow = max(self._slow.get((number, src), 1.0), self._slow.get((number, dst), 1.0))
        shared = level.ranks_per_port
        load = max(part, out[number, src // shared], came[number, dst // shared])
        return level.alpha_s, load * slow / level.byte_per_s


def _fits(kind: str, algorithm: str, ranks: tuple[int, ...]) -> bool:
    is_power = len(ranks) & (len(ranks) - 1) == 0
    return algorithm != "halving-doubling" or kind == "all_reduce" or is_power


def _worst(ways: set[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Those of (alpha, seconds per byte) that can be the slowest for some number of bytes."""
    kept = [one for one in ways if not any(o != one and o[0] >= one[0] and o[1] >= one[1] for o in ways)]
    return tuple(sorted(kept))
