"""Streaming multiprocessors: how kernels of blocks share the compute engine, block by block.

The law, in whole picoseconds and whole shares of an SM, so that it is the same to the bit on every computer:

1. A kernel becomes ready when all before it in its stream, and all that its stream waits for, is over. Then it joins a
   line: by the priority of its stream (a lower number is further in front), then by the time at which it became ready,
   then in the order of launch.
2. Only the first in line places blocks. A block of a kernel of which an SM holds k takes 1/k of an SM for the time of
   one block, and is placed as soon as such a share is free: as many blocks at once as there is room for. When the last
   one is placed, the next in line goes on in what is left. No kernel passes the first, even where it has no room.
3. What is placed runs to its end. A kernel of higher priority that becomes ready takes over the next free shares.
4. A kernel without blocks, and a copy within the device, takes all SMs at once.

So a kernel alone takes ceil(blocks / (SMs x k)) waves. It is a model: SMs are one pool, so that shares which are free
on several SMs add up, and blocks that share an SM do not slow each other down. That blocks are placed kernel by kernel,
those of high-priority streams first and never at the cost of running ones, is what the CUDA programming guide says of
streams' priorities; that the first in line holds up the others was measured (Amert et al., GPU Scheduling on the
NVIDIA TX2: Hidden Details Revealed, RTSS 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from edl_labs.virtual.gpu.work_items import Blocks, Operation

MAX_PER_SM = 32  # resident blocks per SM, compute capability 9.0 (CUDA C++ Programming Guide, technical specifications)
MAX_BLOCKS = 2**31 - 1  # of a grid in x (the same table)
_SHARES = math.lcm(*range(1, MAX_PER_SM + 1))  # of an SM: blocks of every size take a whole number of them
_SKIP_FROM = 4  # rounds that are worth looking for more of

# Blocks placed at one time: when they end, a number that keeps equal ones apart, the shares that they hold, of whom.
_Batch = tuple[int, int, int, Operation | None]


class Multiprocessors:
    """The SMs of a device, the batches of blocks on them, and the line of kernels that have blocks to place."""

    def __init__(self, sm_count: int, *, busy_until: int = 0) -> None:
        self._all = self._free = sm_count * _SHARES
        self._batches: list[_Batch] = []
        self._number = 0
        self._left: dict[int, int] = {}
        self.line: list[tuple[int, int, int, Operation]] = []
        if busy_until:
            self._hold(busy_until, self._all, None)

    def join(self, ready: int, operation: Operation) -> None:
        """Put a kernel that became ready into the line."""
        heappush(self.line, (operation.lane.rank, ready, operation.sequence, operation))

    def next_change(self) -> int | None:
        """When shares are freed that a kernel waits for; None where none waits."""
        return self._batches[0][0] if self.line and self._batches else None

    def place(self, moment: int, block_ps: Callable[[Operation], int]) -> tuple[Operation, int] | None:
        """Place blocks of the first in line at `moment`: the kernel and its end once all are placed, else None."""
        while self._batches and self._batches[0][0] <= moment:
            self._free += heappop(self._batches)[2]
        if not self.line:
            return None
        operation = self.line[0][3]
        share, left = self._share(operation), self._left.get(operation.sequence)
        if left is None:
            left = operation.cost.count if isinstance(operation.cost, Blocks) else 1
        count = min(left, self._free // share)
        if not count:
            return None
        if operation.sequence not in self._left:
            operation.start = moment
        end = moment + block_ps(operation)
        self._hold(end, count * share, operation)
        if count < left:
            self._left[operation.sequence] = left - count
            return None
        heappop(self.line)
        self._left.pop(operation.sequence, None)
        return operation, end

    def skip_rounds(self, horizon: int) -> None:
        """Run whole rounds of the first in line at once, in which each of its batches makes place for one like it.

        Up to `horizon` no other kernel becomes ready; until a batch of another kernel ends, nothing but its own is
        freed.
        """
        operation = self.line[0][3] if self.line else None
        if operation is None or not isinstance(operation.cost, Blocks):
            return
        share, left = self._share(operation), self._left.get(operation.sequence, 0)
        if left < _SKIP_FROM * (self._all // share):
            return
        mine = [batch for batch in self._batches if batch[3] is operation]
        others = [batch for batch in self._batches if batch[3] is not operation]
        last, held, ps = (
            max(b[0] for b in mine) if mine else 0,
            sum(b[2] for b in mine) // share,
            operation.cost.block_ps,
        )
        horizon = min([horizon, *(batch[0] - 1 for batch in others)])
        if not mine or last > horizon:
            return
        rounds = (left - 1) // held
        if ps:
            rounds = min(rounds, (horizon - last) // ps + 1)
        self._left[operation.sequence] = left - rounds * held
        self._batches = others + [(end + rounds * ps, number, shares, of) for end, number, shares, of in mine]
        heapify(self._batches)

    def _share(self, operation: Operation) -> int:
        return _SHARES // operation.cost.per_sm if isinstance(operation.cost, Blocks) else self._all

    def _hold(self, end: int, shares: int, operation: Operation | None) -> None:
        self._free -= shares
        self._number += 1
        heappush(self._batches, (end, self._number, shares, operation))
