"""What recorded requests do to an allocator: the bytes in use and reserved after each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.units import byte_count
from edl_labs.values import Value
from edl_labs.virtual.memory.allocator.allocator_pools import AllocatorSettings
from edl_labs.virtual.memory.allocator.engine import AllocatorEngine
from edl_labs.virtual.memory.allocator.program import PROGRAM
from edl_labs.virtual.program import MAX_REPLAYED, Entry


@dataclass(frozen=True, repr=False)
class BlockView(Value):
    """A block of a segment: in use by the allocation `number` (`requested_bytes` of it requested), or free (-1)."""

    address: int
    size_bytes: int
    state: str
    number: int
    requested_bytes: int


@dataclass(frozen=True, repr=False)
class SegmentView(Value):
    """A segment: memory that the driver gave, of one pool ('small' or 'large') and stream, with its blocks in order."""

    address: int
    stream: int
    pool: str
    expandable: bool
    size_bytes: int
    blocks: tuple[BlockView, ...]


@dataclass(frozen=True, repr=False)
class AllocatorReplay(Value, Plottable):
    """What the allocator held, from its operations alone. `history` has (allocated, reserved) after each of them.

    `allocated_bytes` are blocks in use, 512 B rounding included; `reserved_bytes` all segments; `largest_free_bytes`
    the largest cached block by stream; `releasable_bytes` what `empty_cache` would give back now.
    """

    OMITTED = ("program",)
    ROWS = "segments"

    settings: AllocatorSettings
    allocated_bytes: int
    reserved_bytes: int
    requested_bytes: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    largest_free_bytes: Mapping[int, int]
    releasable_bytes: int
    retries: int
    failed: tuple[int, ...]
    history: tuple[tuple[int, int], ...]
    segments: tuple[SegmentView, ...]
    program: tuple[Entry, ...] = field(default=(), repr=False, compare=False)

    @property
    def cached_bytes(self) -> int:
        """Reserved and not in use: holes that later requests may fill."""
        return self.reserved_bytes - self.allocated_bytes

    def __str__(self) -> str:
        return (
            f"{byte_count(self.allocated_bytes)} in use, of {byte_count(self.reserved_bytes)} reserved in "
            f"{len(self.segments)} segments, {byte_count(self.releasable_bytes)} of which empty_cache could release"
        )


def replay_allocator(
    program: object, settings: AllocatorSettings | Mapping[str, Any], *, max_operations: int = MAX_REPLAYED
) -> AllocatorReplay:
    """What the recorded requests do to an allocator of these settings.

    Raises ReplayDisagreement where a request is said to fit that does not, or not to, and ReplayError where `program`
    is not one.
    """
    known = settings if isinstance(settings, AllocatorSettings) else AllocatorSettings.from_json(settings)
    engine = AllocatorEngine(known)
    history: list[tuple[int, int]] = []
    failed = []
    for index, entry, fits in PROGRAM.replayed(engine, program, at_most=max_operations):
        failed += [index] if "value" in entry and not fits else []
        history.append((engine.allocated_bytes, engine.reserved_bytes))
    assert isinstance(program, list)
    return _result(engine, tuple(history), tuple(failed), [dict(entry) for entry in program])


def _result(
    engine: AllocatorEngine, history: tuple[tuple[int, int], ...], failed: tuple[int, ...], program: list[Entry]
) -> AllocatorReplay:
    largest: dict[int, int] = {}
    for pool in engine.pools:
        for stream, size, _, _ in pool.free:
            largest[stream] = max(largest.get(stream, 0), size)
    held = {
        "allocated_bytes": engine.allocated_bytes,
        "reserved_bytes": engine.reserved_bytes,
        "requested_bytes": engine.requested_bytes,
    }
    segments = tuple(_views(engine))
    before = engine.reserved_bytes
    # Last of all, since it changes what is held.
    engine.empty_cache()
    return AllocatorReplay(
        settings=engine.settings,
        **held,
        peak_allocated_bytes=max((one[0] for one in history), default=0),
        peak_reserved_bytes=max((one[1] for one in history), default=0),
        largest_free_bytes=largest,
        releasable_bytes=before - engine.reserved_bytes,
        retries=engine.retries,
        failed=failed,
        history=history,
        segments=segments,
        program=tuple(program),
    )


def _views(engine: AllocatorEngine) -> Iterator[SegmentView]:
    numbers = {id(block): number for number, block in engine.blocks.items()}
    for segment in sorted(engine.segments, key=lambda one: one.address):
        blocks = []
        for block in segment.blocks:
            state = "in use" if block.allocated else "awaiting a stream" if block.pending else "free"
            asked = block.requested if block.allocated else 0
            blocks.append(BlockView(block.address, block.size, state, numbers.get(id(block), -1), asked))
        pool = "small" if segment.small else "large"
        yield SegmentView(
            segment.address, segment.stream, pool, segment.expandable, segment.mapped_bytes, tuple(blocks)
        )
