"""VirtualAllocator and its replay: requests as a program of plain data, and the bytes in use and reserved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from edl_labs.presenters import Drawn
from edl_labs.units import byte_count
from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.memory.allocator.allocator_pools import AllocatorSettings
from edl_labs.virtual.memory.allocator.engine import AllocatorEngine
from edl_labs.virtual.program import MAX_REPLAYED, Entry, ProgramForm, require_same
from edl_labs.virtual.quantities import MAX_BYTES

MOST_STREAMS = 1 << 62  # a stream's number may be its address, as in torch's snapshots


class OutOfMemory(VirtualMemoryError):
    """No block fits, the driver has no more, and releasing the cache did not help."""


@dataclass(frozen=True, repr=False)
class BlockView(Value):
    """A block of a segment: in use by the allocation `number` (`requested_bytes` of it asked for), or free (-1)."""

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
class AllocatorReplay(Value, Drawn):
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
            f"{byte_count(self.allocated_bytes)} in use of {byte_count(self.reserved_bytes)} reserved in "
            f"{len(self.segments)} segments, {byte_count(self.releasable_bytes)} of them for empty_cache to give back"
        )


class VirtualAllocator:
    """torch's caching allocator as a model: same rounding, pools, segments and splits, without a GPU.

    Rules: c10/cuda/CUDACachingAllocator.cpp, without graphs' private pools, garbage collection and power-of-two
    rounding. Constants are those of torch 2.15; the logic was read in earlier releases; no GPU confirmed it yet.

    >>> allocator = VirtualAllocator()
    >>> small, large = allocator.malloc(1000), allocator.malloc(3 << 20)
    >>> allocator.allocated_bytes, allocator.reserved_bytes >> 20
    (3146752, 22)
    >>> allocator.free(large); allocator.empty_cache(); allocator.reserved_bytes >> 20
    2
    """

    def __init__(self, settings: AllocatorSettings | None = None, **options: Any) -> None:
        self.settings = settings if settings is not None else AllocatorSettings(**options)
        self._engine = AllocatorEngine(self.settings)
        self._program: list[Entry] = []
        self._made = 0

    @property
    def allocated_bytes(self) -> int:
        """What `torch.cuda.memory_allocated()` says."""
        return self._engine.allocated_bytes

    @property
    def reserved_bytes(self) -> int:
        """What `torch.cuda.memory_reserved()` says."""
        return self._engine.reserved_bytes

    def malloc(self, nbytes: int, *, stream: int = 0) -> int:
        """The number of a new allocation for work of `stream`; OutOfMemory where it does not fit."""
        number, self._made = self._made, self._made + 1
        entry: Entry = {"op": "malloc", "number": number, "bytes": nbytes, "stream": stream}
        if not self._do({**entry, "value": None}):
            raise self._out_of_memory(nbytes, stream)
        return number

    def free(self, number: int) -> None:
        """Give an allocation back to the cache, not to the driver."""
        self._do({"op": "free", "number": number})

    def record_stream(self, number: int, *, stream: int) -> None:
        """Tell that another stream uses an allocation: freed, it is not reused before that stream has finished."""
        self._do({"op": "record_stream", "number": number, "stream": stream})

    def finish(self, *, stream: int) -> None:
        """All work issued to `stream` is over, which the next malloc notices."""
        self._do({"op": "finish", "stream": stream})

    def empty_cache(self) -> None:
        """Give each segment without a block in use back to the driver."""
        self._do({"op": "empty_cache"})

    @property
    def program(self) -> list[Entry]:
        """Everything asked for, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._program]

    def replay(self) -> AllocatorReplay:
        """What the allocator holds now, and held before."""
        return replay_allocator(self.program, self.settings)

    def _do(self, entry: Entry) -> Any:
        wrong = _wrong_field(entry)
        if wrong:
            raise VirtualMemoryError(
                f"{entry['op']} cannot be", why=wrong, next="sizes and numbers are whole, from 0; streams too"
            )
        value = _play(self._engine, entry)
        self._program.append({**entry, "value": value} if "value" in entry else entry)
        return value

    def _out_of_memory(self, nbytes: int, stream: int) -> OutOfMemory:
        held = self._engine
        left = self.settings.memory_bytes - held.reserved_bytes
        return OutOfMemory(
            f"out of memory: {nbytes:,} bytes asked for on stream {stream}, {left:,} left on the device",
            why=f"{held.allocated_bytes:,} bytes are in use, {held.reserved_bytes - held.allocated_bytes:,} more are "
            "reserved in holes too small or of other streams",
            next="look at replay(): free more, ask for less at once, or use expandable segments",
        )


FIELDS: dict[str, tuple[str, ...]] = {
    "malloc": ("number", "bytes", "stream", "value"), "free": ("number",), "record_stream": ("number", "stream"),
    "finish": ("stream",), "empty_cache": (),
}  # fmt: skip
_OPTIONAL = {"malloc": ("segment_at",)}
_FORM = ProgramForm("VirtualAllocator", "allocator.program", FIELDS)


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
    for index, entry in _FORM.entries(program, _checked, lambda _: 1, at_most=max_operations):
        value = _FORM.done_again(lambda entry: _play(engine, entry), index, entry)
        if "value" in entry:
            if entry["value"] is not None:
                require_same(index, entry, value)
            failed += [] if value else [index]
        history.append((engine.allocated_bytes, engine.reserved_bytes))
    assert isinstance(program, list)
    return _result(engine, tuple(history), tuple(failed), [dict(entry) for entry in program])


def _play(engine: AllocatorEngine, entry: Entry) -> Any:
    op = entry["op"]
    if op == "malloc":
        if entry["number"] in engine.blocks:
            raise VirtualMemoryError("a number is given twice", why="its first block is in use", next="free it before")
        return engine.malloc(entry["number"], entry["bytes"], entry["stream"], entry.get("segment_at"))
    return getattr(engine, op)(*(entry[name] for name in FIELDS[op]))


def _checked(index: int, entry: Any) -> Entry:
    name = _FORM.name_of(index, entry)
    for extra in entry:
        if type(extra) is not str or extra not in ("op", *FIELDS[name], *_OPTIONAL.get(name, ())):
            raise _FORM.malformed(index, f"is a {name} with a field {shown(extra)}, which it does not have")
    for missing in FIELDS[name]:
        if missing not in entry:
            raise _FORM.malformed(index, f"is a {name} without its {missing}")
    wrong = _wrong_field(entry)
    if wrong:
        raise _FORM.malformed(index, f"is a {name}, but {wrong}")
    return cast(Entry, entry)


def _wrong_field(entry: Entry) -> str:
    highest = {"number": 10**9, "bytes": MAX_BYTES, "stream": MOST_STREAMS, "segment_at": 1 << 63}
    for name, most in highest.items():
        if name in entry and (type(entry[name]) is not int or not (name == "bytes") <= entry[name] <= most):
            return f"its {name} is {shown(entry[name])}"
    if "value" in entry and entry["value"] is not None and type(entry["value"]) is not bool:
        return f"whether it fits is {shown(entry['value'])}"
    return ""


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
