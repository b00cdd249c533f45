"""What a message and a collective cost by the alpha-beta model, in closed form: rounds, bytes, seconds.

A message of n bytes takes alpha + n * beta (Hockney, "The communication challenge for MPP", 1994): alpha is what it
costs before its first byte, 1 / beta the link's rate. Every rank sends one message and receives one at a time, both
at once; sums are free. `message_bytes` is the whole vector: what each rank puts into an all_reduce, a reduce_scatter
or an all_to_all, what each rank has after an all_gather, and what the root of a broadcast sends.

| | ring | tree | halving-doubling |
|---|---|---|---|
| all_reduce | 2(P-1) rounds of n/P | 2 log2 P rounds of n | 2 log2 P rounds, 2(P-1)/P n in all |
| reduce_scatter, all_gather | P-1 rounds of n/P | - | log2 P rounds, (P-1)/P n, powers of two only |
| broadcast | binomial scatter, ring all_gather | log2 P rounds of n | - |
| all_to_all | - ("pairwise": P-1 rounds of n/P) | - | - |
| barrier | - | 2 log2 P rounds of nothing | - |

log2 is rounded up. An all_reduce by halving and doubling folds ranks beyond a power of two into it and back: two more
rounds of n. "hierarchical" is a ring inside each group, rings between groups, each with a part of the vector, and a
ring inside again. Formulas: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH"
(2005); the same names and messages as VirtualCluster's. Bus bandwidth: nccl-tests, PERFORMANCE.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edl_labs.errors import UsageError
from edl_labs.roofline.sizes import check_amount, check_rate, check_sizes
from edl_labs.values import Value


@dataclass(frozen=True)
class GroupLinks:
    """One level of links: it joins `ranks` members, which are ranks on the innermost level and whole groups above.

    A message costs `alpha_s` + bytes / `byte_per_s`; `ranks_per_port` ranks share a port, and its rate when all send.
    """

    ranks: int
    alpha_s: float
    byte_per_s: float
    ranks_per_port: int = 1
    name: str = "link"

    def __post_init__(self) -> None:
        check_sizes(ranks=self.ranks, ranks_per_port=self.ranks_per_port)
        check_amount("alpha_s", self.alpha_s)
        check_rate("byte_per_s", self.byte_per_s)

    def seconds(self, rounds: float, path_bytes: float) -> float:
        """So many messages after one another, with so many bytes together, while all ranks send."""
        return rounds * self.alpha_s + path_bytes * self.ranks_per_port / self.byte_per_s


@dataclass(frozen=True, repr=False)
class LevelCost(Value):
    """What a collective does on one level: messages and bytes that follow one another on the slowest path."""

    level: str
    rounds: int
    path_bytes: float
    seconds: float


@dataclass(frozen=True, repr=False)
class CollectiveCost(Value):
    """A collective's price: `by_level` holds the innermost level first, and their seconds add up."""

    DERIVED = ("rounds", "path_bytes", "seconds", "bus_byte_per_s")

    operation: str
    algorithm: str
    ranks: int
    message_bytes: float
    by_level: tuple[LevelCost, ...]

    @property
    def rounds(self) -> int:
        """Messages that follow one another: how often alpha is paid."""
        return sum(level.rounds for level in self.by_level)

    @property
    def path_bytes(self) -> float:
        """Bytes that follow one another on the slowest path."""
        return sum(level.path_bytes for level in self.by_level)

    @property
    def seconds(self) -> float:
        """From the first message to the last byte."""
        return sum(level.seconds for level in self.by_level)

    @property
    def bus_byte_per_s(self) -> float:
        """The rate that a link must have at least (nccl-tests' bus bandwidth); NaN where nothing is sent."""
        if not self.seconds or not self.message_bytes:
            return math.nan
        share = 1 if self.operation == "broadcast" else (self.ranks - 1) / self.ranks
        return (2 if self.operation == "all_reduce" else 1) * share * self.message_bytes / self.seconds


def point_to_point_s(message_bytes: float, links: GroupLinks) -> float:
    """Seconds of one message between two ranks (Hockney): alpha + n / rate.

    >>> point_to_point_s(6e6, GroupLinks(2, 20e-6, 6e9))
    0.00102
    """
    check_amount("message_bytes", message_bytes)
    return links.seconds(1, message_bytes)


def collective_cost(
    operation: str, message_bytes: float, levels: Sequence[GroupLinks] | GroupLinks, *, algorithm: str = "auto"
) -> CollectiveCost:
    """What `operation` costs all ranks of `levels` (innermost first) together; "auto" is the cheapest algorithm.

    Over several levels a ring goes at the pace of the slowest. Trees, and halving and doubling, go level by level where
    the levels join powers of two; elsewhere they are priced as if each round crossed the slowest. Between groups one
    rank of each sends in a ring and in a tree; otherwise all ranks send, and share the ports.

    >>> link = GroupLinks(8, alpha_s=20e-6, byte_per_s=6e9)
    >>> for algorithm in ("ring", "tree"):
    ...     cost = collective_cost("all_reduce", 6e6, link, algorithm=algorithm)
    ...     print(algorithm, cost.rounds, f"{cost.seconds:.5f}")
    ring 14 0.00203
    tree 6 0.00612
    """
    levels = _checked(operation, message_bytes, levels)
    ranks = math.prod(level.ranks for level in levels)
    known = algorithms_for(operation, ranks=[level.ranks for level in levels])
    if algorithm not in (*known, "auto"):
        raise UsageError(
            f"no {operation} of {ranks} ranks by {str(algorithm)[:40]!r}",
            why="halving-doubling wants a power of two but in an all_reduce, hierarchical several levels",
            next=f"use one of {', '.join((*known, 'auto'))}",
        )
    names = known if algorithm == "auto" else (algorithm,)
    # min keeps the first of equals, so that the table's order decides, alike everywhere.
    prices = (
        CollectiveCost(operation, name, ranks, message_bytes, _by_level(name, operation, message_bytes, levels))
        for name in names
    )
    return min(prices, key=lambda one: one.seconds)


def algorithms_for(operation: str, *, ranks: Sequence[int]) -> tuple[str, ...]:
    """The algorithms of `operation` for so many members on each level."""
    together = math.prod(ranks)
    found = [
        name for name in _FLAT[operation] if name != "halving-doubling" or operation == "all_reduce" or _power(together)
    ]
    levelled = operation in _LEVELLED and sum(count > 1 for count in ranks) > 1
    return (*found, *(["hierarchical"] if levelled else []))


def _by_level(
    algorithm: str, operation: str, message_bytes: float, levels: Sequence[GroupLinks]
) -> tuple[LevelCost, ...]:
    ranks = [level.ranks for level in levels]
    if algorithm == "hierarchical":
        return _rings_by_level(operation, message_bytes, levels)
    even = all(map(_power, ranks[:-1] if algorithm == "tree" else ranks))
    if len(levels) > 1 and even and algorithm in ("tree", "halving-doubling"):
        shares = [1 / math.prod(ranks[:at]) if algorithm == "halving-doubling" else 1.0 for at in range(len(ranks))]
        ports = [_port(level, alone=at > 0 and algorithm == "tree") for at, level in enumerate(levels)]
        return tuple(
            _priced(algorithm, operation, share * message_bytes, port)
            for share, port in zip(shares, ports, strict=True)
        )
    # One rank a group sends across the border, in a ring at its seam and in a tree at the root of a part.
    alone = algorithm in ("ring", "tree")
    ports = [_port(level, alone=at > 0 and alone) for at, level in enumerate(levels)]
    used = [port for port in ports if port.ranks > 1] or ports[:1]
    slowest, dearest = max(used, key=lambda port: port.seconds(0, 1.0)), max(used, key=lambda port: port.alpha_s)
    bound = dataclasses.replace(slowest, ranks=math.prod(ranks), alpha_s=dearest.alpha_s)
    return (_priced(algorithm, operation, message_bytes, bound),)


def _rings_by_level(operation: str, message_bytes: float, levels: Sequence[GroupLinks]) -> tuple[LevelCost, ...]:
    """Each level has its part of the vector: an all_reduce scatters on the way out and gathers on the way back."""
    parts = [message_bytes / math.prod(level.ranks for level in levels[:at]) for at in range(len(levels))]
    return tuple(_priced("ring", operation, part, level) for part, level in zip(parts, levels, strict=True))


def _port(level: GroupLinks, *, alone: bool) -> GroupLinks:
    return dataclasses.replace(level, ranks_per_port=1) if alone else level


def _priced(algorithm: str, operation: str, message_bytes: float, level: GroupLinks) -> LevelCost:
    rounds, share = _FLAT[operation][algorithm](level.ranks)
    return LevelCost(level.name, rounds, share * message_bytes, level.seconds(rounds, share * message_bytes))


def _depth(ranks: int) -> int:
    return (ranks - 1).bit_length()


def _power(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def _others(ranks: int) -> float:
    return (ranks - 1) / ranks


def _folded(ranks: int) -> tuple[int, float]:
    within = 1 << (ranks.bit_length() - 1)
    folds = 0 if within == ranks else 2
    return 2 * _depth(within) + folds, 2 * _others(within) + folds


# From the number of ranks to rounds, and bytes on the slowest path as a multiple of n.
_FLAT: dict[str, dict[str, Callable[[int], tuple[int, float]]]] = {
    "all_reduce": {
        "ring": lambda p: (2 * (p - 1), 2 * _others(p)),
        "tree": lambda p: (2 * _depth(p), 2.0 * _depth(p)),
        "halving-doubling": _folded,
    },
    "reduce_scatter": {
        "ring": lambda p: (p - 1, _others(p)),
        "halving-doubling": lambda p: (_depth(p), _others(p)),
    },
    "all_gather": {
        "ring": lambda p: (p - 1, _others(p)),
        "halving-doubling": lambda p: (_depth(p), _others(p)),
    },
    "broadcast": {
        "tree": lambda p: (_depth(p), float(_depth(p))),
        "ring": lambda p: (_depth(p) + p - 1, 2 * _others(p)),
    },
    "all_to_all": {"pairwise": lambda p: (p - 1, _others(p))},
    "barrier": {"tree": lambda p: (2 * _depth(p), 0.0)},
}
_LEVELLED = ("all_reduce", "reduce_scatter", "all_gather")
OPERATIONS = tuple(_FLAT)


def _checked(operation: str, message_bytes: float, levels: Sequence[GroupLinks] | GroupLinks) -> tuple[GroupLinks, ...]:
    if operation not in OPERATIONS:
        raise UsageError(
            f"no collective is called {str(operation)[:40]!r}",
            why="the names are torch.distributed's",
            next=f"use one of {', '.join(OPERATIONS)}",
        )
    check_amount("message_bytes", message_bytes)
    found = (levels,) if isinstance(levels, GroupLinks) else tuple(levels)
    if not found or not all(isinstance(level, GroupLinks) for level in found):
        raise UsageError(
            "a collective without links",
            why="what it costs depends on how its ranks are joined",
            next="give GroupLinks(ranks, alpha_s, byte_per_s), or several, the innermost first",
        )
    return found
