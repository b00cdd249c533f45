"""Bins with a tree of maxima over them, recorded and replayed: comparisons that a judge can count and believe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.values import Value
from edl_labs.virtual.errors import ReplayError

# A replay asks after each earlier bin at every put: this many take a second or two.
MAX_LEAVES, MAX_ACTIONS = 1 << 16, 400_000


class BinTree:
    """Empty bins of one capacity, and a tree whose nodes store the largest free room of all bins below them.

    Node 1 is the root, node n has the children 2n and 2n + 1, and bin i is node `leaves` + i. Looking at a node and
    putting something into a bin are all there is to do; both are kept in `program`.

    >>> tree = BinTree(100, bins=3)
    >>> tree.leaves, tree.room(1)
    (4, 100)
    >>> tree.put(0, 70)
    >>> tree.room(4), tree.room(2), tree.program
    (30, 100, [[1], [0, 70], [4], [2]])
    """

    def __init__(self, capacity: int, *, bins: int) -> None:
        self.capacity = capacity
        self.leaves = 1 << max(0, bins - 1).bit_length()
        if not 0 < bins <= MAX_LEAVES or capacity <= 0:
            raise UsageError(
                f"cannot make a tree of {bins} bins of capacity {capacity}",
                why=f"a tree has 1 to {MAX_LEAVES:,} bins, and their capacity must be positive",
                next="pass two positive whole numbers",
            )
        self._room = [capacity] * (2 * self.leaves)
        self._recorded: list[list[int]] = []

    def room(self, node: int) -> int:
        """The largest free room of any bin below `node`; this counts as one comparison."""
        if type(node) is not int or not 0 < node < 2 * self.leaves:
            raise UsageError(
                f"the tree has no node {node!r}",
                why=f"nodes are numbered from 1 to {2 * self.leaves - 1}",
                next="use node 1 for the root",
            )
        self._recorded.append([node])
        return self._room[node]

    def put(self, place: int, length: int) -> None:
        """Put something of `length` into bin `place`, and update the nodes above it."""
        if type(place) is not int or not 0 <= place < self.leaves or type(length) is not int or length < 0:
            raise UsageError(
                f"cannot put a length of {length!r} into bin {place!r}",
                why=f"bins are numbered from 0 to {self.leaves - 1}, and a length must be 0 or more",
                next="pass whole numbers",
            )
        node = self.leaves + place
        if length > self._room[node]:
            raise UsageError(
                f"a length of {length} does not fit into bin {place}",
                why=f"bin {place} has room for {self._room[node]}",
                next="call look() before put() to see how much room a bin has",
            )
        self._recorded.append([place, length])
        self._room[node] -= length
        while node > 1:
            node //= 2
            self._room[node] = max(self._room[2 * node], self._room[2 * node + 1])

    @property
    def program(self) -> list[list[int]]:
        """Everything done, in order: `[node]` for a look, `[bin, length]` for a put (a copy)."""
        return [list(action) for action in self._recorded]


@dataclass(frozen=True, repr=False)
class PackedBins(Value):
    """What a program of looks and puts did: `bins` holds lengths in order, `looks` counts comparisons.

    `unproven` is the first put (counted from 0) before which the looks did not show that no earlier bin had room, None
    when all were shown; `skipped` is the first put that had room in an earlier bin; `unsorted` the first that was
    longer than the one before.
    """

    bins: tuple[tuple[int, ...], ...]
    looks: int
    unproven: int | None
    skipped: int | None
    unsorted: int | None


def replay_bins(program: Any, capacity: int, *, bins: int) -> PackedBins:
    """What a program does on a fresh tree; ReplayError where it is not one.

    >>> replay_bins([[2], [4], [0, 60], [4], [5], [1, 50]], 100, bins=4).unproven is None
    True
    >>> replay_bins([[0, 60], [1, 30]], 100, bins=4).skipped
    1
    """
    if type(program) is not list or len(program) > MAX_ACTIONS:
        raise ReplayError(
            "this is not a recorded program of look() and put() calls",
            why=f"a program must be a list of at most {MAX_ACTIONS:,} actions",
            next="return tree.program",
        )
    tree, known = BinTree(capacity, bins=bins), _Known(capacity, bins=bins)
    placed: dict[int, list[int]] = {}
    puts, looks = 0, 0
    first: dict[str, int | None] = {"unproven": None, "skipped": None, "unsorted": None}
    before: int | None = None
    for index, action in enumerate(program):
        try:
            if len(action) == 1:
                known.upper[action[0]] = tree.room(action[0])
                looks += 1
                continue
            place, length = action
            faults = _faults(tree, known, place, length, before)
            tree.put(place, length)
        except (UsageError, TypeError, ValueError, LookupError) as error:
            raise ReplayError(
                f"action {index} is not possible: {getattr(error, 'what', 'it is malformed')}",
                why="only a program that a BinTree recorded can be replayed",
                next="call only look() and put() of the tree",
            ) from None
        for fault in faults:
            first[fault] = puts if first[fault] is None else first[fault]
        placed.setdefault(place, []).append(length)
        puts, before = puts + 1, length
    return PackedBins(tuple(tuple(placed[place]) for place in sorted(placed)), looks, **first)


class _Known:
    """What the looks so far have shown: an upper bound of the room below each node. Room only shrinks."""

    def __init__(self, capacity: int, *, bins: int) -> None:
        self.leaves = 1 << max(0, bins - 1).bit_length()
        self.upper = [capacity] * (2 * self.leaves)

    def shows_none(self, node: int, low: int, high: int, *, before: int, length: int) -> bool:
        """Whether no bin of [low, high) that lies in front of bin `before` can have room for `length`."""
        if low >= before or self.upper[node] < length:
            return True
        if high - low == 1:
            return False
        middle = (low + high) // 2
        return self.shows_none(2 * node, low, middle, before=before, length=length) and self.shows_none(
            2 * node + 1, middle, high, before=before, length=length
        )


def _faults(tree: BinTree, known: _Known, place: int, length: int, before: int | None) -> list[str]:
    faults = ["unsorted"] if before is not None and length > before else []
    if any(tree._room[tree.leaves + bin_] >= length for bin_ in range(place)):
        faults.append("skipped")
    if not known.shows_none(1, 0, tree.leaves, before=place, length=length):
        faults.append("unproven")
    return faults
