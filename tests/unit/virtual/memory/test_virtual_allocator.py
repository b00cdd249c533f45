"""VirtualAllocator against an allocator written differently, its invariants, torch's rules one by one, its refusals."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, VirtualMemoryError
from edl_labs.virtual.memory import (
    AllocatorReplay,
    AllocatorSettings,
    OutOfMemory,
    VirtualAllocator,
    program_of_snapshot,
    replay_allocator,
)

MIB = 1 << 20


class Naive:
    """The allocator on a strip of cells: each segment a list of [size, number or None], searched from end to end."""

    def __init__(self, memory: int, limit: int) -> None:
        self.memory, self.limit = memory, limit or 1 << 60
        self.segments: list[tuple[int, bool, list[list]]] = []

    @property
    def reserved(self) -> int:
        return sum(cell[0] for _, _, cells in self.segments for cell in cells)

    @property
    def allocated(self) -> int:
        return sum(cell[0] for _, _, cells in self.segments for cell in cells if cell[1] is not None)

    def malloc(self, number: int, nbytes: int, stream: int) -> bool:
        size = 512 * max(1, (nbytes + 511) // 512)
        small = size <= MIB
        holes = [
            (cell[0], place, at, cells)
            for place, (owner, is_small, cells) in enumerate(self.segments)
            for at, cell in enumerate(cells)
            if (owner, is_small) == (stream, small) and cell[1] is None and cell[0] >= size
        ]
        best = min(holes, key=lambda hole: hole[:3], default=None)
        if best and ((size < self.limit <= best[0]) or (size >= self.limit and best[0] >= size + 20 * MIB)):
            best = None
        if best is None:
            wanted = 2 * MIB if small else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
            if self.reserved + wanted > self.memory and not self.release_large(size, stream, small, wanted):
                self.segments = [one for one in self.segments if len(one[2]) > 1 or one[2][0][1] is not None]
                if self.reserved + wanted > self.memory:
                    return False
            cells = [[wanted, None]]
            self.segments.append((stream, small, cells))
            best = (wanted, 0, 0, cells)
        whole, _, at, cells = best
        rest = whole - size
        if (small and rest >= 512) or (not small and rest > MIB and size < self.limit):
            cells[at : at + 1] = [[size, number], [rest, None]]
        else:
            cells[at][1] = number
        return True

    def release_large(self, size: int, stream: int, small: bool, wanted: int) -> bool:
        if self.limit == 1 << 60:
            return False
        target = max(size, self.limit)
        mine = [
            one
            for one in self.segments
            if one[:2] == (stream, small) and len(one[2]) == 1 and one[2][0][1] is None and one[2][0][0] >= self.limit
        ]
        enough = [one for one in mine if one[2][0][0] >= target]
        if enough:
            gone = [min(enough, key=lambda one: one[2][0][0])]
        else:
            gone, won = [], 0
            for one in sorted(mine, key=lambda one: -one[2][0][0]):
                if won < target:
                    gone.append(one)
                    won += one[2][0][0]
        self.segments = [one for one in self.segments if not any(one is other for other in gone)]
        return bool(gone) and sum(one[2][0][0] for one in gone) >= target and self.reserved + wanted <= self.memory

    def free(self, number: int) -> None:
        for _, _, cells in self.segments:
            for cell in cells:
                if cell[1] == number:
                    cell[1] = None
            at = 0
            while at + 1 < len(cells):
                if cells[at][1] is None and cells[at + 1][1] is None:
                    cells[at : at + 2] = [[cells[at][0] + cells[at + 1][0], None]]
                else:
                    at += 1

    def empty_cache(self) -> None:
        self.segments = [one for one in self.segments if any(cell[1] is not None for cell in one[2])]


def drawn_size(rng: random.Random) -> int:
    top = rng.choice((600, 40_000, MIB, 3 * MIB, 12 * MIB, 60 * MIB))
    return rng.choice((rng.randint(1, top), top, top + 1))


@pytest.mark.parametrize("seed", range(30))
def test_the_model_agrees_with_one_written_differently(seed: int) -> None:
    rng = random.Random(seed)
    memory, limit = rng.choice((150, 400, 2000)) * MIB, rng.choice((0, 0, 24 * MIB))
    allocator = VirtualAllocator(memory_bytes=memory, max_split_bytes=limit)
    naive, live = Naive(memory, limit), []
    for number in range(150):
        size, stream = drawn_size(rng), rng.randrange(2)
        fits = naive.malloc(number, size, stream)
        if fits:
            live.append(allocator.malloc(size, stream=stream))
        else:
            with pytest.raises(OutOfMemory):
                allocator.malloc(size, stream=stream)
        while live and rng.random() < 0.47:
            gone = live.pop(rng.randrange(len(live)))
            allocator.free(gone)
            naive.free(gone)
        if rng.random() < 0.02:
            allocator.empty_cache()
            naive.empty_cache()
        assert (naive.allocated, naive.reserved) == (allocator.allocated_bytes, allocator.reserved_bytes)

    replayed = replay_allocator(json.loads(json.dumps(allocator.program)), allocator.settings)
    assert (naive.allocated, naive.reserved) == (replayed.allocated_bytes, replayed.reserved_bytes)
    assert AllocatorReplay.from_json(replayed.to_json()) == replayed


@pytest.mark.parametrize("seed", range(12))
def test_segments_are_whole_and_nothing_overlaps(seed: int) -> None:
    rng = random.Random(seed)
    allocator = VirtualAllocator(memory_bytes=300 * MIB, expandable_segments=seed % 2 == 1)
    live: list[int] = []
    for _ in range(120):
        try:
            live.append(allocator.malloc(drawn_size(rng), stream=rng.randrange(3)))
        except OutOfMemory:
            allocator.finish(stream=7)
        while live and rng.random() < 0.48:
            gone = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.2:
                allocator.record_stream(gone, stream=7)
            allocator.free(gone)
        if rng.random() < 0.05:
            allocator.empty_cache()
    replayed = allocator.replay()

    blocks = [block for segment in replayed.segments for block in segment.blocks]
    assert sorted(live) == sorted(block.number for block in blocks if block.state == "in use")
    assert replayed.allocated_bytes == sum(block.size_bytes for block in blocks if block.state == "in use")
    assert replayed.reserved_bytes == sum(block.size_bytes for block in blocks) <= 300 * MIB
    assert all(block.size_bytes % 512 == 0 for block in blocks)
    ordered = sorted(blocks, key=lambda block: block.address)
    for one, other in itertools.pairwise(ordered):
        assert one.address + one.size_bytes <= other.address
    for segment in replayed.segments:
        for one, other in itertools.pairwise(segment.blocks):
            touching = one.address + one.size_bytes == other.address
            assert not (touching and {one.state, other.state} == {"free"}), "two free neighbours were not joined"
    before = allocator.reserved_bytes
    allocator.empty_cache()
    assert before - replayed.releasable_bytes == allocator.reserved_bytes


def test_the_rules_of_sizes_are_torchs() -> None:
    """Reserved MiB of one request, at both sides of each limit (CUDACachingAllocator.cpp, get_allocation_size)."""
    found = []
    for size in (1, MIB, MIB + 1, 10 * MIB - 512, 10 * MIB, 10 * MIB + 1, 12 * MIB + 1):
        allocator = VirtualAllocator()
        allocator.malloc(size)
        found.append(allocator.reserved_bytes / MIB)

    assert [2, 2, 20, 20, 10, 12, 14] == found


def test_a_large_block_is_split_only_when_more_than_a_mebibyte_is_left() -> None:
    sizes = []
    for rest in (MIB, MIB + 512):
        allocator = VirtualAllocator()
        first = allocator.malloc(12 * MIB)
        allocator.free(first)
        allocator.malloc(12 * MIB - rest)
        sizes.append(allocator.allocated_bytes)

    assert [12 * MIB, 11 * MIB - 512] == sizes


def test_blocks_stay_with_their_stream_and_cached_ones_of_others_do_not_help() -> None:
    allocator = VirtualAllocator(memory_bytes=45 * MIB)
    other = allocator.malloc(20 * MIB, stream=1)
    keep = allocator.malloc(2 * MIB, stream=1)
    allocator.free(other)

    assert keep == 1
    # Another stream's cache is released on the way to a second try.
    allocator.malloc(20 * MIB, stream=0)
    assert 1 == allocator.replay().retries
    with pytest.raises(OutOfMemory, match="20,971,520 bytes requested on stream 0, 5,242,880 left") as caught:
        allocator.malloc(20 * MIB, stream=0)
    assert "only in holes" in caught.value.why


def test_a_block_that_another_stream_uses_waits_for_it() -> None:
    allocator = VirtualAllocator()
    first = allocator.malloc(20 * MIB)
    allocator.record_stream(first, stream=1)
    allocator.free(first)
    assert 0 == allocator.allocated_bytes

    allocator.malloc(20 * MIB)
    assert 40 * MIB == allocator.reserved_bytes, "the first block was taken while stream 1 still read it"
    allocator.finish(stream=1)
    allocator.malloc(20 * MIB)
    assert 40 * MIB == allocator.reserved_bytes


def test_work_that_comes_after_a_finish_is_waited_for_again() -> None:
    allocator = VirtualAllocator()
    allocator.finish(stream=1)
    first = allocator.malloc(20 * MIB)
    allocator.record_stream(first, stream=1)
    allocator.free(first)
    allocator.malloc(20 * MIB)

    assert 40 * MIB == allocator.reserved_bytes


def test_expandable_segments_grow_where_plain_ones_fragment() -> None:
    """Eight blocks freed in a row serve a request of eight times the size only where they are one segment."""
    reserved = {}
    for expandable in (False, True):
        allocator = VirtualAllocator(memory_bytes=200 * MIB, expandable_segments=expandable)
        for block in [allocator.malloc(20 * MIB) for _ in range(8)]:
            allocator.free(block)
        allocator.malloc(160 * MIB)
        reserved[expandable] = allocator.reserved_bytes, allocator.replay().retries

    assert {False: (160 * MIB, 1), True: (160 * MIB, 0)} == reserved


def test_whole_pages_alone_leave_an_expandable_segment() -> None:
    allocator = VirtualAllocator(expandable_segments=True)
    blocks = [allocator.malloc(15 * MIB) for _ in range(4)]
    for block in blocks[1:]:
        allocator.free(block)
    allocator.empty_cache()

    assert 15 * MIB == allocator.allocated_bytes
    assert 20 * MIB == allocator.reserved_bytes


def test_empty_cache_does_not_move_blocks() -> None:
    allocator = VirtualAllocator()
    blocks = [allocator.malloc(4 * MIB) for _ in range(10)]
    for block in blocks[1:5] + blocks[6:]:
        allocator.free(block)
    replayed = allocator.replay()

    assert (8, 40) == (replayed.allocated_bytes // MIB, replayed.reserved_bytes // MIB)
    assert 0 == replayed.releasable_bytes
    assert 16 * MIB == replayed.largest_free_bytes[0]


def test_a_snapshot_of_torch_replays() -> None:
    """The events that torch 2.15 writes for: two tensors, one of them used by another stream, then empty_cache."""
    events = [
        ("segment_alloc", 0x7F00, 20 * MIB), ("alloc", 0x7F00, 4 * MIB - 100),
        ("alloc", 0x7F00 + 4 * MIB, 8 * MIB), ("free_requested", 0x7F00, 4 * MIB - 100),
        ("segment_alloc", 0x9F00, 2 * MIB), ("alloc", 0x9F00, 12), ("free_completed", 0x7F00, 4 * MIB - 100),
        ("free_requested", 0x9F00, 12), ("free_completed", 0x9F00, 12), ("segment_free", 0x9F00, 2 * MIB),
        ("snapshot", 0, 0),
    ]  # fmt: skip
    trace = [{"action": a, "addr": p, "size": s, "stream": 0, "time_us": 0, "frames": []} for a, p, s in events]
    program = program_of_snapshot(json.loads(json.dumps({"device_traces": [trace], "segments": []})))
    replayed = replay_allocator(program, AllocatorSettings())

    ops = [entry["op"] for entry in program]
    assert ["malloc", "malloc", "record_stream", "free", "malloc", "finish", "free", "empty_cache"] == ops
    assert (8, 20) == (replayed.allocated_bytes // MIB, replayed.reserved_bytes // MIB)
    assert 0x7F00 == replayed.segments[0].address
    for wrong in ({}, {"device_traces": [[{"action": "alloc"}]]}, {"device_traces": [trace[3:]]}):
        with pytest.raises(VirtualMemoryError, match="not a complete allocator trace"):
            program_of_snapshot(wrong)


def test_a_program_that_says_what_does_not_fit_is_refused() -> None:
    allocator = VirtualAllocator(memory_bytes=30 * MIB)
    allocator.malloc(20 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.malloc(20 * MIB)
    program = allocator.program
    assert (1,) == replay_allocator(program, allocator.settings).failed

    program[1]["value"] = True
    with pytest.raises(
        ReplayDisagreement, match="operation 1 of the program, malloc, was recorded with the value True"
    ):
        replay_allocator(program, allocator.settings)


@pytest.mark.parametrize(
    "program",
    [
        None, [None], [{"op": "malloc"}], [{"op": "free", "number": 0}], [{"op": "free", "number": -1}],
        [{"op": "malloc", "number": 0, "bytes": 0, "stream": 0, "value": None}],
        [{"op": "malloc", "number": 0, "bytes": 10**300, "stream": 0, "value": None}],
        [{"op": "malloc", "number": 0, "bytes": 8, "stream": 0, "value": "yes"}],
        [{"op": "malloc", "number": 0, "bytes": 8, "stream": 0, "value": None}] * 2,
        [{"op": "_of", "number": 0}], [{"op": "empty_cache", "x": 1}],
    ],
)  # fmt: skip
def test_what_is_not_a_program_is_a_replay_error(program) -> None:
    with pytest.raises(ReplayError):
        replay_allocator(program, AllocatorSettings())


@pytest.mark.parametrize(
    "options",
    [
        {"memory_bytes": -1}, {"max_split_bytes": MIB}, {"expandable_segments": 1}, {"large_segment_bytes": 1},
        {"memory_bytes": 1.5},
    ],
)  # fmt: skip
def test_settings_that_torch_refuses_are_refused(options) -> None:
    with pytest.raises(VirtualMemoryError) as caught:
        VirtualAllocator(**options)

    assert caught.value.why
    assert caught.value.next
