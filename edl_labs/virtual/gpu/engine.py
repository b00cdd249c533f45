"""The discrete-event core: in-order lanes share one compute engine and one copy engine each way, in whole picoseconds.

The device is simulated lazily, never past the host's time unless the host waits. So an engine's choice, the operation
that was ready first, is final when it is made: whatever is issued later becomes ready no earlier than the host's time.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush

from edl_labs.virtual.quantities import PER_SECOND

NO_ENGINE, COMPUTE, TO_DEVICE, TO_HOST = range(4)
_FOREVER = 10**40  # picoseconds: beyond any sum of operations that a program may hold

Regions = tuple[tuple[object, int], ...]


class KernelWork:
    """What a kernel does, priced when it starts: arithmetic overlaps memory traffic, part of which hits the L2."""

    __slots__ = ("arithmetic_ps", "moved_bytes", "regions")

    def __init__(self, *, arithmetic_ps: int, moved_bytes: int, regions: Regions) -> None:
        self.arithmetic_ps, self.moved_bytes, self.regions = arithmetic_ps, moved_bytes, regions


class Operation:
    """A kernel or copy: its lane, its engine, a label, and what it costs, in picoseconds or as work to be priced."""

    __slots__ = ("arrived", "called", "cost", "done", "engine", "label", "lane", "sequence", "start")

    # Positional throughout: this is made once per issued operation, and keywords cost a fifth of the whole path.
    def __init__(self, lane: Lane, engine: int, label: str, cost: int | KernelWork) -> None:
        self.lane = lane
        self.engine = engine
        self.label = label
        self.cost = cost
        self.done: int | None = None
        self.arrived: int
        self.called: int
        self.sequence: int
        self.start: int


class Mark(Operation):
    """A point in a lane that takes no time: what an event records, or, with `awaits`, a wait for such a point."""

    __slots__ = ("awaits", "waiters")

    def __init__(self, lane: Lane, label: str, *, awaits: Operation | None = None) -> None:
        super().__init__(lane, NO_ENGINE, label, 0)
        self.awaits = awaits
        # None until somebody waits: there is one mark for each event and wait.
        self.waiters: list[Mark] | None = None


class Lane:
    """One stream's queue: its operations run in the order of issue."""

    __slots__ = ("done", "head", "in_flight", "index", "pending")

    def __init__(self, index: int) -> None:
        self.index, self.done = index, 0
        self.head: Operation | None = None
        self.pending: deque[Operation] = deque()
        self.in_flight: deque[Operation] = deque()


class L2Cache:
    """Least recently used regions, up to a capacity in bytes; a region is resident as a whole or not at all.

    A region larger than the cache evicts everything and stays out itself: a sweep through it, repeated, finds nothing.

    >>> cache = L2Cache(100)
    >>> cache.touch([("x", 60)]), cache.touch([("x", 60)]), cache.touch([("y", 60)]), cache.touch([("x", 60)])
    (0, 60, 0, 0)
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._resident: OrderedDict[Hashable, int] = OrderedDict()
        self._used = 0

    def touch(self, regions: Iterable[tuple[Hashable, int]]) -> int:
        """How many bytes of `regions`, pairs of a key and bytes, were resident; then they are the latest ones."""
        hits = 0
        for key, size in regions:
            found = self._resident.pop(key, 0)
            self._used -= found
            hits += found
            self._keep(key, size)
        return hits

    def _keep(self, key: Hashable, size: int) -> None:
        if size > self._capacity:
            self._resident.clear()
            self._used = 0
            return
        self._resident[key] = size
        self._used += size
        while self._used > self._capacity:
            self._used -= self._resident.popitem(last=False)[1]


class Engines:
    """Runs submitted operations. `last_done` is when the last operation whose end is known ends."""

    def __init__(self, *, l2_bytes: int, memory_byte_per_s: float, l2_byte_per_s: float, floor_ps: int) -> None:
        self._free = [0, 0, 0, 0]
        self._ready: tuple[list[tuple[int, int, Operation]], ...] = ([], [], [], [])
        self._cache = L2Cache(l2_bytes)
        self._memory_byte_per_s, self._l2_byte_per_s, self._floor_ps = memory_byte_per_s, l2_byte_per_s, floor_ps
        # What is ready alone needs no queue; this is the common case of one busy stream, and twice as fast.
        self._lone: Operation | None = None
        self._lone_ready = 0
        self._queued = 0
        self._issued = 0
        self.last_done = 0

    def submit(self, operation: Operation, now: int) -> None:
        """Put an operation at the end of its lane at the time `now`, which never runs backwards."""
        operation.arrived = now
        operation.sequence = self._issued = self._issued + 1
        lane = operation.lane
        if lane.head is not None:
            lane.pending.append(operation)
            return
        lane.head = operation
        self._admit(operation, now if now > lane.done else lane.done)

    def run_until(self, moment: int) -> None:
        """Start everything that starts at `moment` or before."""
        self._run(moment, None)

    def run_all(self) -> None:
        """Run until nothing is left."""
        self._run(_FOREVER, None)

    def finish(self, operation: Operation, now: int) -> int:
        """Run to `now`, and on until the end of `operation` is known; say when that is."""
        self._run(now, operation)
        assert operation.done is not None
        return operation.done

    def idle_at(self, moment: int) -> bool:
        """Whether everything submitted is over at `moment`, which must not lie before the last submission."""
        self._run(moment, None)
        return self.last_done <= moment and self._lone is None and not self._queued

    def _run(self, until: int, target: Operation | None) -> None:
        while True:
            operation = self._lone
            if operation is not None:
                free = self._free[operation.engine]
                begin = free if free > self._lone_ready else self._lone_ready
            elif self._queued:
                begin, engine = self._next_start()
            else:
                return
            limit = until if target is None or target.done is not None else _FOREVER
            if begin > limit:
                return
            if operation is None:
                operation = heappop(self._ready[engine])[2]
                self._queued -= 1
            if self._queued:
                self._start(operation, begin)
            else:
                self._lone = None
                self._run_alone(operation, begin, limit=limit, target=target, until=until)

    def _next_start(self) -> tuple[int, int]:
        """When something starts next, and on which engine."""
        starts = [(max(queue[0][0], self._free[engine]), engine) for engine, queue in enumerate(self._ready) if queue]
        return min(starts)

    def _start(self, operation: Operation, begin: int) -> None:
        operation.start = begin
        cost = operation.cost
        end = begin + (self._price(cost) if isinstance(cost, KernelWork) else cost)
        operation.done = self._free[operation.engine] = end
        self.last_done = max(self.last_done, end)
        lane = operation.lane
        lane.done = end
        lane.head = following = lane.pending.popleft() if lane.pending else None
        if following is not None:
            self._admit(following, max(end, following.arrived))

    def _run_alone(self, operation: Operation, begin: int, *, target: Operation | None, limit: int, until: int) -> None:
        """Run one lane while nothing else is ready anywhere: there is no choice to make, so no queue to keep."""
        lane, engine = operation.lane, operation.engine
        pending = lane.pending
        while True:
            cost = operation.cost
            operation.start = begin
            operation.done = end = begin + (self._price(cost) if isinstance(cost, KernelWork) else cost)
            if operation is target:
                limit = until
            following = pending.popleft() if pending else None
            if following is None:
                break
            begin = end if end > following.arrived else following.arrived
            if following.engine != engine or begin > limit:
                break
            operation = following
        self._free[engine] = lane.done = end
        if end > self.last_done:
            self.last_done = end
        lane.head = following
        if following is not None:
            self._admit(following, begin)

    def _admit(self, operation: Operation, ready: int) -> None:
        """Take a lane's first operation, whose lane and arrival allow it from `ready` on."""
        if operation.engine == NO_ENGINE:
            self._pass_marks(operation, ready)
        elif self._lone is None and not self._queued:
            self._lone, self._lone_ready = operation, ready
        else:
            self._enqueue(operation, ready)

    def _enqueue(self, operation: Operation, ready: int) -> None:
        if self._lone is not None:
            lone, self._lone = self._lone, None
            self._enqueue(lone, self._lone_ready)
        heappush(self._ready[operation.engine], (ready, operation.sequence, operation))
        self._queued += 1

    def _pass_marks(self, mark: Operation, ready: int) -> None:
        """Pass marks along lanes and to the lanes that wait for them; a list, since such chains can be long."""
        reached = [(mark, ready)]
        while reached:
            mark, end = reached.pop()
            if mark.engine != NO_ENGINE:
                self._admit(mark, end)
                continue
            assert isinstance(mark, Mark)
            if mark.awaits is not None:
                if mark.awaits.done is None:
                    assert isinstance(mark.awaits, Mark)
                    mark.awaits.waiters = [*(mark.awaits.waiters or ()), mark]
                    continue
                end = max(end, mark.awaits.done)
                mark.awaits = None
            mark.start = mark.done = end
            self.last_done = max(self.last_done, end)
            if mark.waiters is not None:
                reached.extend((waiter, max(waiter.lane.done, waiter.arrived)) for waiter in mark.waiters)
                mark.waiters = None
            lane = mark.lane
            lane.done = end
            lane.head = lane.pending.popleft() if lane.pending else None
            if lane.head is not None:
                reached.append((lane.head, max(end, lane.head.arrived)))

    def _price(self, work: KernelWork) -> int:
        hits = min(self._cache.touch(work.regions), work.moved_bytes)
        seconds = (work.moved_bytes - hits) / self._memory_byte_per_s + hits / self._l2_byte_per_s
        return max(work.arithmetic_ps, round(seconds * PER_SECOND), self._floor_ps)
