"""Memory of a VirtualGPU and its host: it has sizes and locations, but no contents."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError

DEVICE, PINNED, PAGEABLE = "device", "pinned", "pageable"
# Followed by races and data flow one by one; a fused kernel of a real network touches about ten.
MAX_REGIONS = 64


class Region:
    """Bytes `start` to `stop` of a buffer. Slicing gives a part: `buffer[0:4096]`."""

    __slots__ = ("buffer", "nbytes", "start", "stop")

    def __init__(self, buffer: Buffer, start: int, stop: int) -> None:
        self.buffer, self.start, self.stop = buffer, start, stop
        self.nbytes = stop - start

    def __getitem__(self, part: slice) -> Region:
        low, high, step = _bounds(part, self.nbytes)
        if step != 1 or not 0 <= low < high <= self.nbytes:
            raise VirtualGPUError(
                f"bytes {low} to {high} are outside this buffer of {self.nbytes} bytes",
                why="a part is buffer[start:stop] with 0 <= start < stop <= the buffer's size in bytes",
                next="count in bytes, and check whether the last chunk is smaller than the others",
            )
        return Region(self.buffer, self.start + low, self.start + high)

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{self.start}:{self.stop}]"


class Buffer(Region):
    """A piece of memory: on the device, or pinned or pageable on the host. As a region, it is the whole buffer."""

    __slots__ = ("freed", "gpu", "home", "index", "name", "versions", "where")

    def __init__(self, gpu: Any, *, index: int, nbytes: int, where: str, name: str, home: int = 0) -> None:
        super().__init__(self, 0, nbytes)
        self.gpu, self.index, self.where, self.name, self.home = gpu, index, where, name, home
        self.freed = False
        self.versions = 0

    @property
    def is_pinned(self) -> bool:
        """Whether a copy engine can reach this host memory directly."""
        return self.where == PINNED

    def record_stream(self, stream: Any) -> None:
        """Say that `stream` uses this memory: after `free`, it is not reused before that work is over."""
        self.gpu.record_stream(self, stream)


def regions(gpu: object, given: object, *, role: str) -> tuple[Region, ...]:
    """`given`, a buffer, a part of one, or several, as regions of this GPU's live memory."""
    several = (given,) if isinstance(given, Region) or not isinstance(given, Iterable) else tuple(given)
    for one in several:
        checked(gpu, one, role=role)
    return several


def checked(gpu: object, given: object, *, role: str) -> Region:
    """`given` as a region of this GPU's live memory; VirtualGPUError for anything else."""
    if not isinstance(given, Region):
        raise VirtualGPUError(
            f"{role} is {type(given).__name__}, not a buffer",
            why="a VirtualGPU can use only memory that it allocated",
            next="allocate a buffer with gpu.empty(nbytes) on the device, or with gpu.host_empty(nbytes, "
            "pin_memory=True) on the host",
        )
    if given.buffer.gpu is not gpu:
        raise VirtualGPUError(
            f"{role} {given!r} belongs to another VirtualGPU",
            why="each device has its own memory",
            next="allocate the buffer on the device that uses it",
        )
    if given.buffer.freed:
        raise VirtualGPUError(
            f"{role} {given!r} has been freed",
            why="its memory has been released",
            next="free a buffer only after its last use",
        )
    return given


def plain(part: Region) -> list[int]:
    """A region as plain data: the buffer's number and the bounds."""
    return [part.buffer.index, part.start, part.stop]


def declare(entry: dict[str, Any], read: tuple[Region, ...], written: tuple[Region, ...]) -> None:
    """Note in a recorded operation what it reads and writes."""
    if len(read) + len(written) > MAX_REGIONS:
        raise VirtualGPUError(
            f"one operation reads and writes {len(read) + len(written)} regions",
            why=f"at most {MAX_REGIONS} can be tracked",
            next="pass whole buffers instead of many parts",
        )
    if read:
        entry["reads"] = [plain(part) for part in read]
    if written:
        entry["writes"] = [plain(part) for part in written]


def declare_kernel(
    gpu: object, entry: dict[str, Any], reads: object, writes: object, *, elementwise: bool
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """What a kernel reads and writes, checked, and noted in its recorded operation."""
    read, written = regions(gpu, reads, role="a kernel's input"), regions(gpu, writes, role="a kernel's output")
    for part in read + written:
        refuse_pageable(part)
    declare(entry, read, written)
    if elementwise:
        entry["elementwise"] = one_size(read + written)
    return read, written


def refuse_pageable(part: Region) -> None:
    """VirtualGPUError for memory that a kernel cannot reach."""
    if part.buffer.where == PAGEABLE:
        raise VirtualGPUError(
            f"a kernel cannot access {part!r}",
            why="this is pageable host memory, which the device cannot access",
            next="copy the data to a device buffer first",
        )


def refuse_device(part: Region) -> None:
    """VirtualGPUError for memory that the host cannot reach."""
    if part.buffer.where == DEVICE:
        raise VirtualGPUError(
            f"the host cannot access {part!r}",
            why="this buffer is in device memory",
            next="copy the data to the host first",
        )


def one_size(touched: tuple[Region, ...]) -> bool:
    """True; VirtualGPUError unless all regions have one size."""
    if len({part.nbytes for part in touched}) != 1:
        raise VirtualGPUError(
            "an elementwise kernel needs inputs and outputs of the same size",
            why="byte i of an output depends on byte i of each input",
            next="declare reads= and writes= of the same number of bytes, or leave out elementwise=True",
        )
    return True


def _bounds(part: object, size: int) -> tuple[int, int, int]:
    if not isinstance(part, slice):
        raise VirtualGPUError(
            f"[{part!r}] does not name a part of a buffer",
            why="a buffer is indexed by a slice of bytes",
            next="use buffer[start:stop]",
        )
    given = (0 if part.start is None else part.start, size if part.stop is None else part.stop, part.step or 1)
    try:
        low, high, step = (index(value) for value in given)  # whole numbers of every kind, numpy's too
    except TypeError:
        raise VirtualGPUError(
            f"a buffer cannot be sliced from {part.start!r} to {part.stop!r}",
            why="slice bounds must be whole numbers of bytes",
            next="round the chunk size with int(...) or //",
        ) from None
    return low, high, step
