"""The discrete-event core: in-order lanes share a compute engine and one copy engine each way, in whole picoseconds.

An engine serves operations in the order in which they became ready, at equal times in the order of issue. The device is
simulated lazily: what became ready by the host's time is settled, since whatever is issued later becomes ready no
earlier. Kernels of blocks share the compute engine as `multiprocessors` says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from heapq import heappop, heappush, heappushpop

from edl_labs.virtual.gpu.multiprocessors import Multiprocessors
from edl_labs.virtual.gpu.work_items import (
    COMPUTE,
    NO_ENGINE,
    TO_DEVICE,
    TO_HOST,
    Blocks,
    KernelWork,
    Lane,
    Mark,
    Operation,
)
from edl_labs.virtual.quantities import PER_SECOND

__all__ = ["COMPUTE", "NO_ENGINE", "TO_DEVICE", "TO_HOST", "Engines", "KernelWork", "L2Cache", "Operation"]

_FOREVER = 10**40  # picoseconds: beyond any sum of operations that a program may hold
_Ready = tuple[int, int, Lane]


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
        resident = self._resident
        for key, size in regions:
            if key in resident:
                # A region's size belongs to its key, but for the working set that a kernel's name stands for.
                found = resident[key]
                hits += found
                if found == size:
                    resident.move_to_end(key)
                    continue
                del resident[key]
                self._used -= found
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
        # Lanes whose first operation has an engine to wait for, by when it is ready and by its number.
        self._ready: list[_Ready] = []
        self._cache = L2Cache(l2_bytes)
        self._memory_byte_per_s, self._l2_byte_per_s, self._floor_ps = memory_byte_per_s, l2_byte_per_s, floor_ps
        self._shared: Multiprocessors | None = None
        self._ranked = False
        self._issued = 0
        self.last_done = 0

    def submit(self, operation: Operation, now: int) -> None:
        """Put an operation at the end of its lane at the time `now`, which never runs backwards."""
        operation.arrived = now
        operation.sequence = self._issued = self._issued + 1
        lane = operation.lane
        if lane._head is not None:
            lane._pending.append(operation)
            return
        lane._head = operation
        ready = now if now > lane.done else lane.done
        if operation.engine:
            heappush(self._ready, (ready, operation.sequence, lane))
        else:
            self._pass_marks(operation, ready)

    def share(self, sm_count: int, now: int, *, ranked: bool) -> None:
        """From `now` on the compute engine is `sm_count` multiprocessors, and with `ranked` streams have priorities.

        Kernels that were ready by `now` keep the times that they had.
        """
        if self._shared is None:
            self._run(now, None)
            self._shared = Multiprocessors(sm_count, busy_until=self._free[COMPUTE])
        elif ranked and not self._ranked:
            self._run(now, None)
        self._ranked = self._ranked or ranked

    def run_until(self, moment: int) -> None:
        """Settle everything that becomes ready at `moment` or before."""
        self._run(moment, None)

    def run_all(self) -> None:
        """Run until nothing is left."""
        self._run(_FOREVER, None)

    def finish(self, operation: Operation, now: int) -> int:
        """Run to `now`, and on until the end of `operation` is known; say when that is."""
        if operation.done is None:
            self._run(now, operation)
        assert operation.done is not None
        return operation.done

    def is_empty(self) -> bool:
        """Whether the end of everything submitted is known."""
        return not self._ready and (self._shared is None or not self._shared.line)

    def idle_at(self, moment: int) -> bool:
        """Whether everything submitted is over at `moment`, which must not lie before the last submission."""
        self._run(moment, None)
        return self.last_done <= moment and self.is_empty()

    def alone_from(self, done: int, moment: int) -> bool:
        """Whether nothing is on its way that a kernel, ready when its lane is `done` or later, would wait for."""
        return not self._ready and self._shared is None and self._free[COMPUTE] <= max(done, moment)

    def settle(self, end: int) -> None:
        """Take note that kernels which were alone on the device ran until `end`."""
        self._free[COMPUTE] = max(self._free[COMPUTE], end)
        self.last_done = max(self.last_done, end)

    def _run(self, until: int, target: Operation | None) -> None:
        if self._shared is not None:
            self._run_shared(self._shared, until, target)
            return
        heap, free = self._ready, self._free
        while heap:
            item: _Ready | None = heappop(heap)
            while item is not None:
                ready, _, lane = item
                if ready > until and (target is None or target.done is not None):
                    heappush(heap, item)
                    return
                operation = lane._head
                if operation is None:
                    break
                engine, cost = operation.engine, operation.cost
                begin = free[engine]
                if ready > begin:
                    begin = ready
                operation.start = begin
                operation.done = free[engine] = end = begin + (cost if type(cost) is int else self._price(cost))  # type: ignore[arg-type]
                if end > self.last_done:
                    self.last_done = end
                lane.done = end
                if not lane._pending:
                    lane._head = item = None
                    continue
                lane._head = following = lane._pending.popleft()
                if following.arrived > end:
                    end = following.arrived
                if following.engine:
                    item = heappushpop(heap, (end, following.sequence, lane))
                else:
                    item = None
                    self._pass_marks(following, end)

    def _run_shared(self, shared: Multiprocessors, until: int, target: Operation | None) -> None:
        """The same with kernels of blocks: what is ready joins a line, whose first places blocks when there is room."""
        # Among streams of different rank, who comes at this very moment may go first: it is left open.
        until -= self._ranked
        heap = self._ready
        while True:
            limit = until if target is None or target.done is not None else _FOREVER
            moment = shared.next_change()
            if heap and (moment is None or heap[0][0] <= moment):
                moment = heap[0][0]
            if moment is None or moment > limit:
                return
            while heap and heap[0][0] == moment:
                ready, _, lane = heappop(heap)
                operation = lane._head
                if operation is None:
                    continue
                if operation.engine == COMPUTE:
                    shared.join(ready, operation)
                else:
                    operation.start = max(ready, self._free[operation.engine])
                    assert type(operation.cost) is int
                    self._free[operation.engine] = operation.start + operation.cost
                    self._end(operation, operation.start + operation.cost)
            while (placed := shared.place(moment, self._kernel_ps)) is not None:
                self._end(*placed)
                if heap and heap[0][0] <= moment:
                    break
            shared.skip_rounds(min(limit, heap[0][0] - 1) if heap else limit)

    def _kernel_ps(self, operation: Operation) -> int:
        cost = operation.cost
        if isinstance(cost, Blocks):
            return cost.block_ps
        return cost if isinstance(cost, int) else self._price(cost)

    def _end(self, operation: Operation, end: int) -> None:
        operation.done = operation.lane.done = end
        self.last_done = max(self.last_done, end)
        lane = operation.lane
        lane._head = following = lane._pending.popleft() if lane._pending else None
        if following is not None:
            self._admit(following, max(end, following.arrived))

    def _admit(self, operation: Operation, ready: int) -> None:
        """Take a lane's first operation, whose lane and arrival allow it from `ready` on."""
        if operation.engine == NO_ENGINE:
            self._pass_marks(operation, ready)
        else:
            heappush(self._ready, (ready, operation.sequence, operation.lane))

    def _pass_marks(self, mark: Operation, ready: int) -> None:
        """Pass marks along lanes and to the lanes that wait for them; a list, since such chains can be long."""
        reached: list[tuple[Operation, int]] = []
        while True:
            if mark.engine:
                heappush(self._ready, (ready, mark.sequence, mark.lane))
            else:
                assert isinstance(mark, Mark)
                awaits = mark.awaits
                awaited = 0 if awaits is None else awaits.done
                if awaited is None:
                    assert awaits is not None
                    awaits.waiters = [*(awaits.waiters or ()), mark]
                else:
                    mark.awaits = None
                    if awaited > ready:
                        ready = awaited
                    mark.start = mark.done = ready
                    if ready > self.last_done:
                        self.last_done = ready
                    if mark.waiters is not None:
                        reached.extend((other, max(other.lane.done, other.arrived)) for other in mark.waiters)
                        mark.waiters = None
                    lane = mark.lane
                    lane.done = ready
                    if lane._pending:
                        lane._head = mark = lane._pending.popleft()
                        if mark.arrived > ready:
                            ready = mark.arrived
                        continue
                    lane._head = None
            if not reached:
                return
            mark, ready = reached.pop()

    def _price(self, work: KernelWork) -> int:
        hits = min(self._cache.touch(work.regions), work.moved_bytes)
        seconds = (work.moved_bytes - hits) / self._memory_byte_per_s + hits / self._l2_byte_per_s
        return max(work.arithmetic_ps, round(seconds * PER_SECOND), self._floor_ps)
