"""What the caching allocator does with each call: best fit, split, coalesce, grow, release, try again."""

from __future__ import annotations

from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory.allocator.allocator_pools import (
    LARGE_SEGMENT,
    MIN_BLOCK,
    SMALL_SIZE,
    AllocatorSettings,
    Block,
    Growth,
    Pool,
    Segment,
    cut,
    merge,
    rounded,
    segment_bytes,
    spaced,
)


class AllocatorEngine:
    """One device's allocator. `allocated_bytes` are blocks in use, `reserved_bytes` all that the driver gave."""

    def __init__(self, settings: AllocatorSettings) -> None:
        self.settings = settings
        self.growth = Growth(settings)
        self.pools = Pool(small=True), Pool(small=False)
        self.segments: list[Segment] = []
        self.blocks: dict[int, Block] = {}
        self.pending: list[Block] = []
        self.finished: set[int] = set()
        self.allocated_bytes = self.reserved_bytes = self.requested_bytes = 0
        self.retries = self.made = 0

    def malloc(self, number: int, nbytes: int, stream: int, at: int | None = None) -> bool:
        """Find or make a block for `nbytes` as allocation `number`; whether there was room."""
        self._process_events()
        size = rounded(nbytes)
        pool = self.pools[0 if size <= SMALL_SIZE else 1]
        block = self._free_block(pool, size, stream)
        block = block or self._driver_block(pool, size, stream, at)
        if block is None and self._release_oversize(pool, size, stream):
            block = self._driver_block(pool, size, stream, at)
        if block is None:
            self.empty_cache()
            self.retries += 1
            block = self._driver_block(pool, size, stream, at)
        if block is None:
            return False
        if self._should_split(block, size):
            block, rest = cut(block, size), block
            pool.insert(rest)
        block.allocated, block.requested = True, nbytes
        self.blocks[number] = block
        self.allocated_bytes += block.size
        self.requested_bytes += nbytes
        return True

    def free(self, number: int) -> None:
        """The block of an allocation goes back to its pool, or waits for the streams that use it."""
        block = self._of(number)
        del self.blocks[number]
        block.allocated = False
        self.allocated_bytes -= block.size
        self.requested_bytes -= block.requested
        if block.uses:
            block.pending = True
            self.pending.append(block)
            self.finished -= block.uses
        else:
            self._free_completed(block)

    def record_stream(self, number: int, stream: int) -> None:
        """Another stream uses the block: freed, it waits until that stream has got so far."""
        block = self._of(number)
        if stream != block.stream:
            block.uses.add(stream)

    def finish(self, stream: int) -> None:
        """All work of a stream is done; the next request sees it."""
        self.finished.add(stream)
        for block in self.pending:
            block.uses.discard(stream)

    def empty_cache(self) -> None:
        """Give back to the driver each segment, or whole page, that nothing uses; waits for streams first."""
        for block in self.pending:
            block.uses.clear()
        self._process_events()
        for pool in self.pools:
            for entry in list(pool.free):
                block = entry[3]
                if block.segment.expandable:
                    self._unmap(block, pool)
                elif not block.is_split:
                    self._release(block, pool)

    def _of(self, number: int) -> Block:
        if number not in self.blocks:
            raise VirtualMemoryError(
                f"allocation {number} is not in use",
                why="it was never allocated, did not fit, or has already been freed",
                next="pass the value that malloc returned, and free it only once",
            )
        return self.blocks[number]

    def _process_events(self) -> None:
        for block in [block for block in self.pending if not block.uses]:
            self.pending.remove(block)
            block.pending = False
            self._free_completed(block)

    def _free_completed(self, block: Block) -> None:
        pool = self._pool(block)
        for other in (block.before, block.after):
            merge(block, other, pool)
        pool.insert(block)

    def _pool(self, block: Block) -> Pool:
        return self.pools[0 if block.segment.small else 1]

    def _free_block(self, pool: Pool, size: int, stream: int) -> Block | None:
        """The best fit among the cached blocks of a stream, if torch would take it."""
        fitting = list(pool.of_stream(stream, size))
        if not fitting:
            return None
        place = 0
        if self.settings.expandable_segments:
            # A block counts as large as it can grow: one that cannot is taken before one that can.
            while place + 1 < len(fitting) and _grown(fitting[place + 1]) < _grown(fitting[place]):
                place += 1
        block, limit = fitting[place], self.settings.max_split_bytes
        # No oversize block for a request below the limit, and none much larger than one above it.
        largest = (limit if size < limit else size + LARGE_SEGMENT) if limit else None
        if largest is not None and block.size >= largest:
            return None
        pool.remove(block)
        return block

    def _should_split(self, block: Block, size: int) -> bool:
        rest, limit = block.size - size, self.settings.max_split_bytes
        if block.segment.small or self.settings.expandable_segments:
            return rest >= MIN_BLOCK
        return rest > SMALL_SIZE and (not limit or size < limit)

    def _driver_block(self, pool: Pool, size: int, stream: int, at: int | None) -> Block | None:
        """A block of new memory, None where the device has no more."""
        if self.settings.expandable_segments:
            return self._grow(pool, size, stream)
        wanted = segment_bytes(size, self.settings.large_segment_bytes)
        if self.reserved_bytes + wanted > self.settings.memory_bytes:
            return None
        segment = self._segment(pool, stream, at)
        segment.first = Block(segment.address, wanted, stream, segment)
        self.reserved_bytes += wanted
        return segment.first

    def _segment(self, pool: Pool, stream: int, at: int | None, *, expandable: bool = False) -> Segment:
        segment = Segment(spaced(self.made) if at is None else at, stream, pool.small, expandable)
        self.made += 1
        self.segments.append(segment)
        return segment

    def _grow(self, pool: Pool, size: int, stream: int) -> Block | None:
        start = self.growth.candidate(pool, stream, size)
        if start is None:
            segment = self._segment(pool, stream, None, expandable=True)
            page = self.growth.page(pool)
            start = Block(segment.address, -(-self.growth.room // page) * page, stream, segment, mapped=False)
            segment.first = start
            pool.unmapped.append(start)
        grown = start if start.mapped else None
        for block, wanted in self.growth.missing(start, pool, size):
            if self.reserved_bytes + wanted > self.settings.memory_bytes:
                return None
            grown = self._map(block, wanted, pool)
        assert grown is not None
        pool.remove(grown)
        return grown

    def _map(self, block: Block, wanted: int, pool: Pool) -> Block:
        pool.unmapped.remove(block)
        if wanted < block.size:
            block, rest = cut(block, wanted), block
            pool.unmapped.append(rest)
        block.mapped = True
        self.reserved_bytes += block.size
        for other in (block.before, block.after):
            merge(block, other, pool)
        pool.insert(block)
        return block

    def _unmap(self, block: Block, pool: Pool) -> None:
        """Give back the whole pages of a free block."""
        page, origin = self.growth.page(pool), block.segment.address
        first = -(-(block.address - origin) // page) * page + origin
        last = (block.address + block.size - origin) // page * page + origin
        if last <= first:
            return
        pool.remove(block)
        if block.address < first:
            pool.insert(cut(block, first - block.address))
        if last < block.address + block.size:
            block, rest = cut(block, last - block.address), block
            pool.insert(rest)
        block.mapped = False
        self.reserved_bytes -= block.size
        for other in (block.before, block.after):
            merge(block, other, pool)
        if block.is_split:
            pool.unmapped.append(block)
        else:
            self.segments.remove(block.segment)

    def _release(self, block: Block, pool: Pool) -> None:
        pool.remove(block)
        self.segments.remove(block.segment)
        self.reserved_bytes -= block.size

    def _release_oversize(self, pool: Pool, size: int, stream: int) -> bool:
        """With a limit of splitting: free just enough oversize blocks of the stream; whether that was enough."""
        limit = self.settings.max_split_bytes
        if not limit:
            return False
        wanted = max(limit, size)
        large = next(pool.of_stream(stream, wanted), None)
        if large is not None:
            self._release(large, pool)
            return True
        won = 0
        for block in reversed(list(pool.of_stream(stream, limit))):
            if won >= wanted:
                break
            won += block.size
            self._release(block, pool)
        return won >= wanted


def _grown(block: Block) -> int:
    after = block.after
    return block.size + (after.size if after is not None and not after.mapped else 0)
