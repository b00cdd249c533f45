"""Kernels as they are launched: what a call says is checked and priced once, and remembered by the stream."""

from __future__ import annotations

from typing import Any, TypedDict, cast

from edl_labs.virtual.errors import VirtualGPUError, shown
from edl_labs.virtual.gpu.buffers import Buffer, Region, declare_kernel
from edl_labs.virtual.gpu.machine import VirtualMachine, kernel_cost
from edl_labs.virtual.gpu.multiprocessors import MAX_BLOCKS, MAX_PER_SM
from edl_labs.virtual.gpu.work_items import Blocks, Cost
from edl_labs.virtual.quantities import label

_REMEMBERED = 1024  # kernels of a stream: a model has some hundreds, and a loop over slices starts anew now and then
# What may be part of a key: two of these that are equal and of one type mean the same kernel.
_PLAIN = frozenset({str, int, float, bool, type(None), Buffer, Region, tuple})
_NOTHING: tuple[Region, ...] = ()


class KernelOptions(TypedDict, total=False):
    """What `launch` takes besides a name, a duration and a stream."""

    flops: float
    moved_bytes: int | None
    dtype: object
    reads: Any
    writes: Any
    elementwise: bool
    blocks: int | None
    blocks_per_sm: int


class LaunchedKernel:
    """A kernel ready to be launched: its recorded entry, what it costs, the buffers that it writes.

    `ps` is what a kernel takes that has a known duration and the device for itself, and None for others.
    """

    __slots__ = ("cost", "duration_s", "entry", "ps", "written")

    def __init__(
        self, entry: dict[str, Any], cost: Cost, duration_s: float | None = None, written: tuple[Buffer, ...] = ()
    ) -> None:
        self.entry, self.cost, self.duration_s, self.written = entry, cost, duration_s, written
        self.ps: Any = cost if isinstance(cost, int) else None


def kernel(
    machine: VirtualMachine, name: str, *, stream: Any, duration_s: float | None, work: KernelOptions
) -> LaunchedKernel:
    """The kernel that a call of `launch` asks for; VirtualGPUError where no GPU could run it."""
    key = _key(name, duration_s, work)
    known = stream.known.get(key) if key is not None else None
    if known is not None and (work or known.duration_s == duration_s):
        return cast(LaunchedKernel, known)
    label(name)
    made = _launched(machine, stream, {"op": "launch", "name": name, "stream": stream.index}, duration_s, **work)
    if key is not None:
        if len(stream.known) >= _REMEMBERED:
            stream.known.clear()
        stream.known[key] = made
    return made


def _key(name: str, duration_s: float | None, work: KernelOptions) -> Any:
    if type(name) is not str:
        return None
    if not work:
        # The latest duration under a name, so that a launch in a loop is found by the name alone.
        return name if type(duration_s) is float else None
    values = tuple(work.values())
    types = tuple(map(type, values))
    if not _PLAIN.issuperset(types):
        return None
    return name, duration_s, type(duration_s), *work, *values, *types


def _launched(
    machine: VirtualMachine,
    stream: Any,
    entry: dict[str, Any],
    duration_s: float | None,
    *,
    flops: float = 0.0,
    moved_bytes: int | None = None,
    dtype: object = "fp32",
    reads: Any = _NOTHING,
    writes: Any = _NOTHING,
    elementwise: bool = False,
    blocks: int | None = None,
    blocks_per_sm: int = 1,
) -> LaunchedKernel:
    read = written = _NOTHING
    if elementwise or reads is not _NOTHING or writes is not _NOTHING:
        read, written = declare_kernel(stream.gpu, entry, reads, writes, elementwise=elementwise)
    cost: Cost = kernel_cost(
        machine,
        entry,
        duration_s=duration_s,
        flops=flops,
        moved_bytes=moved_bytes,
        dtype=dtype,
        touched=read + written,
    )
    if blocks is not None:
        cost = _blocks(entry, cost, blocks, blocks_per_sm)
    elif blocks_per_sm != 1:
        raise VirtualGPUError(
            f"{entry['name']} was launched with {shown(blocks_per_sm)} blocks per SM, but without blocks=",
            why="without blocks=, a kernel occupies the whole device",
            next="pass blocks= as well",
        )
    return LaunchedKernel(entry, cost, entry.get("duration_s"), tuple(part.buffer for part in written))


def _blocks(entry: dict[str, Any], cost: Cost, blocks: int, per_sm: int) -> Blocks:
    for value, what, highest in ((blocks, "blocks", MAX_BLOCKS), (per_sm, "blocks per SM", MAX_PER_SM)):
        if type(value) is not int or not 1 <= value <= highest:
            raise VirtualGPUError(
                f"{entry['name']} was launched with {shown(value)} {what}",
                why=f"the number of {what} must be a whole number from 1 to {highest:,}",
                next="pass the size of the grid as blocks=, and the number that the occupancy allows as blocks_per_sm=",
            )
    if not isinstance(cost, int):
        raise VirtualGPUError(
            f"{entry['name']} was launched with both blocks= and an amount of work",
            why="a launch with blocks= needs the time of one block, but an amount of work gives only the time of the "
            "whole device",
            next="pass duration_s, the time of one block",
        )
    entry["blocks"], entry["blocks_per_sm"] = blocks, per_sm
    return Blocks(count=blocks, per_sm=per_sm, block_ps=cost)
