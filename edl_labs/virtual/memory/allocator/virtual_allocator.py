"""VirtualAllocator: requests for memory as a program of plain data, and the bytes in use and reserved."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.errors import VirtualMemoryError, shown
from edl_labs.virtual.memory.allocator.allocator_pools import AllocatorSettings
from edl_labs.virtual.memory.allocator.engine import AllocatorEngine
from edl_labs.virtual.memory.allocator.program import OPERATIONS
from edl_labs.virtual.memory.allocator.replay import AllocatorReplay, replay_allocator
from edl_labs.virtual.program import Entry


class OutOfMemory(VirtualMemoryError):
    """No block fits, the driver has no more, and releasing the cache did not help."""


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
        """Return an allocation to the cache, not to the driver."""
        self._do({"op": "free", "number": number})

    def record_stream(self, number: int, *, stream: int) -> None:
        """Note that another stream uses an allocation: once freed, it is reused only after that stream has finished."""
        self._do({"op": "record_stream", "number": number, "stream": stream})

    def finish(self, *, stream: int) -> None:
        """All work issued to `stream` is over, which the next malloc notices."""
        self._do({"op": "finish", "stream": stream})

    def empty_cache(self) -> None:
        """Return each segment without a block in use to the driver."""
        self._do({"op": "empty_cache"})

    @property
    def program(self) -> list[Entry]:
        """All requests, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._program]

    def replay(self) -> AllocatorReplay:
        """What the allocator holds now, and what it held before."""
        return replay_allocator(self.program, self.settings)

    def _do(self, entry: Entry) -> Any:
        wrong = _wrong_field(entry)
        if wrong:
            raise VirtualMemoryError(
                f"this call of {entry['op']} is not possible",
                why=wrong,
                next="pass sizes, numbers and streams as whole numbers of 0 or more",
            )
        value = OPERATIONS[entry["op"]].play(self._engine, entry)
        self._program.append({**entry, "value": value} if "value" in entry else entry)
        return value

    def _out_of_memory(self, nbytes: int, stream: int) -> OutOfMemory:
        held = self._engine
        left = self.settings.memory_bytes - held.reserved_bytes
        return OutOfMemory(
            f"out of memory: {nbytes:,} bytes requested on stream {stream}, {left:,} left on the device",
            why=f"{held.allocated_bytes:,} bytes are in use, {held.reserved_bytes - held.allocated_bytes:,} more are "
            "reserved, but only in holes that are too small or belong to other streams",
            next="look at replay(), then free more, allocate less at a time, or use expandable segments",
        )


def _wrong_field(entry: Entry) -> str:
    wrong = OPERATIONS[entry["op"]].wrong(entry)
    return f"its {wrong[0]} is {shown(entry[wrong[0]])}" if wrong else ""
