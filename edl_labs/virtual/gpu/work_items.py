"""What lanes hold and engines run: operations with their costs, and marks that take no time."""

from __future__ import annotations

from collections import deque
from typing import Any

NO_ENGINE, COMPUTE, TO_DEVICE, TO_HOST = range(4)

Regions = tuple[tuple[object, int], ...]


class KernelWork:
    """What a kernel does, priced when it starts: arithmetic overlaps memory traffic, part of which hits the L2."""

    __slots__ = ("arithmetic_ps", "moved_bytes", "regions")

    def __init__(self, *, arithmetic_ps: int, moved_bytes: int, regions: Regions) -> None:
        self.arithmetic_ps, self.moved_bytes, self.regions = arithmetic_ps, moved_bytes, regions


class Blocks:
    """What a kernel of `count` blocks takes: each runs for `block_ps` on an SM that holds up to `per_sm` of them."""

    __slots__ = ("block_ps", "count", "per_sm")

    def __init__(self, *, count: int, per_sm: int, block_ps: int) -> None:
        self.count, self.per_sm, self.block_ps = count, per_sm, block_ps


Cost = int | KernelWork | Blocks


class Operation:
    """A kernel or copy: its lane, its engine, a label, and what it costs, in picoseconds or as work to be priced."""

    __slots__ = ("_label", "arrived", "called", "cost", "done", "engine", "lane", "sequence", "start")

    # Positional throughout: this is made once per issued operation, and keywords cost a fifth of the whole path.
    def __init__(self, lane: Lane, engine: int, label: Any, cost: Cost) -> None:
        self.lane = lane
        self.engine = engine
        self._label = label
        self.cost = cost
        self.done: int | None = None
        self.arrived: int
        self.called: int
        self.sequence: int
        self.start: int

    @property
    def label(self) -> str:
        """The kernel's name, or what is copied where: written when somebody asks."""
        if type(self._label) is tuple:
            dst, src = self._label
            self._label = f"{src!r} to {dst!r}"
        return str(self._label)


class Mark(Operation):
    """A point in a lane that takes no time: what an event records, or, with `awaits`, a wait for such a point."""

    __slots__ = ("awaits", "waiters")

    def __init__(self, lane: Lane, label: str, awaits: Mark | None = None) -> None:
        self.lane = lane
        self.engine = NO_ENGINE
        self._label = label
        self.cost = 0
        self.done = None
        self.awaits = awaits
        # None until somebody waits: there is one mark for each event and wait.
        self.waiters: list[Mark] | None = None


class Lane:
    """One stream's queue: its operations run in the order of issue; of two lanes the lower `rank` goes first."""

    __slots__ = ("_head", "_pending", "alone", "done", "in_flight", "index", "rank")

    def __init__(self, index: int, rank: int = 0) -> None:
        self.index, self.rank, self.done = index, rank, 0
        self._head: Operation | None = None
        self._pending: deque[Operation] = deque()
        # Operations, or kernels that ran alone, as `core` keeps them.
        self.in_flight: deque[Any] = deque()
        self.alone: Any = None

    # While a lane runs alone its core keeps the kernels; who looks here wants to see them as operations.
    @property
    def head(self) -> Operation | None:
        """The first operation whose end is not known."""
        if self.alone is not None:
            self.alone.leave()
        return self._head

    @head.setter
    def head(self, operation: Operation | None) -> None:
        self._head = operation

    @property
    def pending(self) -> deque[Operation]:
        """What comes after the head."""
        if self.alone is not None:
            self.alone.leave()
        return self._pending
