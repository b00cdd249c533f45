"""The state of torch's caching allocator: segments of blocks, pools of free ones, and the rules that move them.

Constants are those of c10/core/AllocatorConfig.h in torch 2.15, rules those of c10/cuda/CUDACachingAllocator.cpp in
earlier releases.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError, shown

MIB = 1 << 20  # the unit of the allocator's settings
# From c10/core/AllocatorConfig.h; the large segment is the default of `large_segment_size_mb`.
MIN_BLOCK, SMALL_SIZE, SMALL_SEGMENT, LARGE_SEGMENT = 512, MIB, 2 * MIB, 20 * MIB
MIN_LARGE_ALLOC, ROUND_LARGE = 10 * MIB, 2 * MIB  # c10/core/AllocatorConfig.h
_APART = 1 << 40  # a model's address: segments lie further apart than any is large


@dataclass(frozen=True, repr=False)
class AllocatorSettings(Value):
    """A device's memory, and what PYTORCH_ALLOC_CONF may say: sizes in bytes, no limit of splitting when 0.

    `max_split_bytes` (`max_split_size_mb`): larger blocks are not split, nor given to smaller requests.
    `expandable_segments`: one segment a pool and stream that grows by pages, of 2 MiB or of `large_segment_bytes`.
    """

    memory_bytes: int = 80 * 10**9
    max_split_bytes: int = 0
    expandable_segments: bool = False
    large_segment_bytes: int = LARGE_SEGMENT

    def __post_init__(self) -> None:
        whole = ("memory_bytes", "max_split_bytes", "large_segment_bytes")
        odd = [name for name in whole if type(getattr(self, name)) is not int or getattr(self, name) < 0]
        why = "it must be a whole number of bytes, 0 or more"
        if not odd and type(self.expandable_segments) is not bool:
            odd, why = ["expandable_segments"], "it must be True or False"
        if not odd and 0 < self.max_split_bytes < self.large_segment_bytes:
            odd, why = ["max_split_bytes"], "it must be at least as large as a large segment (20 MiB), as in torch"
        if not odd and self.large_segment_bytes < SMALL_SEGMENT:
            odd, why = (
                ["large_segment_bytes"],
                "a large segment must be at least as large as a small one, which has 2 MiB",
            )
        if odd:
            raise VirtualMemoryError(
                f"{odd[0]} is {shown(getattr(self, odd[0]))}", why=why, next=f"pass a different {odd[0]}"
            )


@dataclass(eq=False)
class Block:
    """Bytes of a segment: in use (`requested` of them by the program), free in a pool, or not mapped to memory."""

    address: int
    size: int
    stream: int
    segment: Segment
    allocated: bool = False
    requested: int = 0
    mapped: bool = True
    before: Block | None = None
    after: Block | None = None
    uses: set[int] = field(default_factory=set)
    pending: bool = False

    @property
    def is_split(self) -> bool:
        """Whether it has a neighbour in its segment."""
        return self.before is not None or self.after is not None


@dataclass(eq=False)
class Segment:
    """One allocation of the driver, or a range of addresses that grows."""

    address: int
    stream: int
    small: bool
    expandable: bool = False
    first: Block | None = None

    @property
    def blocks(self) -> Iterator[Block]:
        """Its blocks by address, without what is not mapped."""
        block = self.first
        while block is not None:
            if block.mapped:
                yield block
            block = block.after

    @property
    def mapped_bytes(self) -> int:
        """The memory that it takes."""
        return sum(block.size for block in self.blocks)


class Pool:
    """The free blocks of one pool, small or large, of all streams: ordered by stream, size and address."""

    def __init__(self, *, small: bool) -> None:
        self.small = small
        self.free: list[tuple[int, int, int, Block]] = []
        self.unmapped: list[Block] = []

    def insert(self, block: Block) -> None:
        """A block becomes free."""
        insort(self.free, (block.stream, block.size, block.address, block), key=lambda entry: entry[:3])

    def remove(self, block: Block) -> None:
        """A block is no longer free."""
        key = (block.stream, block.size, block.address)
        del self.free[bisect_left(self.free, key, key=lambda entry: entry[:3])]

    def of_stream(self, stream: int, at_least: int) -> Iterator[Block]:
        """The free blocks of a stream from a size on, the smallest first, then the lowest address."""
        start = bisect_left(self.free, (stream, at_least, -1), key=lambda entry: entry[:3])
        for entry in self.free[start:]:
            if entry[0] != stream:
                return
            yield entry[3]


def rounded(nbytes: int) -> int:
    """What a request takes: a multiple of 512 bytes, 512 at least.

    >>> rounded(1), rounded(512), rounded(513)
    (512, 512, 1024)
    """
    return max(MIN_BLOCK, -(-nbytes // MIN_BLOCK) * MIN_BLOCK)


def segment_bytes(size: int, large_segment: int = LARGE_SEGMENT) -> int:
    """The driver's request when no cached block fits a rounded size.

    >>> [segment_bytes(size) // MIB for size in (512, MIB, MIB + 512, 10 * MIB - 512, 10 * MIB, 11 * MIB)]
    [2, 2, 20, 20, 10, 12]
    """
    if size <= SMALL_SIZE:
        return SMALL_SEGMENT
    return large_segment if size < MIN_LARGE_ALLOC else -(-size // ROUND_LARGE) * ROUND_LARGE


def merge(block: Block, other: Block | None, pool: Pool) -> int:
    """Join a free neighbour to `block`; the bytes won, 0 where the neighbour is in use or of another kind."""
    if other is None or other.allocated or other.pending or other.mapped != block.mapped:
        return 0
    if other.mapped:
        pool.remove(other)
    else:
        pool.unmapped.remove(other)
    if block.before is other:
        block.address, block.before = other.address, other.before
        if other.before is not None:
            other.before.after = block
        else:
            block.segment.first = block
    else:
        block.after = other.after
        if other.after is not None:
            other.after.before = block
    block.size += other.size
    return other.size


def cut(block: Block, size: int) -> Block:
    """Cut the first `size` bytes of a block off, as a block of its own before it; gives the new one."""
    head = Block(block.address, size, block.stream, block.segment, mapped=block.mapped)
    head.before, head.after = block.before, block
    if block.before is not None:
        block.before.after = head
    else:
        block.segment.first = head
    block.before = head
    block.address, block.size = block.address + size, block.size - size
    return head


class Growth:
    """Expandable segments of one allocator: a range of addresses a pool and stream, mapped page by page."""

    def __init__(self, settings: AllocatorSettings) -> None:
        self.settings = settings
        # torch reserves an eighth more addresses than the device has memory.
        self.room = settings.memory_bytes + settings.memory_bytes // 8

    def page(self, pool: Pool) -> int:
        """Bytes of a page: the unit in which memory is mapped."""
        return SMALL_SEGMENT if pool.small else self.settings.large_segment_bytes

    def candidate(self, pool: Pool, stream: int, size: int) -> Block | None:
        """The lowest free or unmapped block that can grow to `size` where it stands."""
        for block in sorted(pool.unmapped, key=lambda block: block.address):
            if block.stream != stream:
                continue
            before = block.before
            start = before if before is not None and before.mapped and not _busy(before) else block
            if _room(start) >= size:
                return start
        return None

    def missing(self, start: Block, pool: Pool, size: int) -> list[tuple[Block, int]]:
        """The unmapped blocks from `start` on, with the bytes of each that whole pages must cover for `size`."""
        found, have, block = [], 0, start
        while have < size:
            if block.mapped:
                have += block.size
            else:
                page = self.page(pool)
                wanted = min(block.size, -(-(size - have) // page) * page)
                found.append((block, wanted))
                have += wanted
            if have < size:
                assert block.after is not None
                block = block.after
        return found


def _busy(block: Block) -> bool:
    return block.allocated or block.pending


def _room(block: Block) -> int:
    """Bytes from a block on that are free or not mapped, up to the next one in use."""
    total, at = 0, block if not _busy(block) else None
    while at is not None and not _busy(at):
        total += at.size
        at = at.after
    return total


def spaced(number: int) -> int:
    """The address of a model's segment: in the order of their making."""
    return (number + 1) * _APART
