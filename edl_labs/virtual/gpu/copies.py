"""Copies as they are issued: both sides are checked and the way is priced once, and remembered by the stream."""

from __future__ import annotations

from typing import Any, cast

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.buffers import DEVICE, PAGEABLE, Buffer, Region, checked, plain
from edl_labs.virtual.gpu.machine import VirtualMachine, transfer_ps
from edl_labs.virtual.gpu.work_items import COMPUTE, TO_DEVICE, TO_HOST
from edl_labs.virtual.quantities import PER_SECOND

_REMEMBERED = 1024  # copies of a stream: loops over whole buffers have a few, and slices are new at every turn


class Copy:
    """A copy ready to be issued: its recorded entry, its engine (None: the host itself) and picoseconds.

    `blocks` says whether the call keeps the host until its end; `label` is the two regions, to be written when asked.
    """

    __slots__ = ("blocks", "engine", "entry", "label", "ps", "written")

    def __init__(
        self, entry: dict[str, Any], engine: int | None, ps: int, *, blocks: bool, label: Any, written: Buffer
    ) -> None:
        self.entry, self.engine, self.ps = entry, engine, ps
        self.blocks, self.label, self.written = blocks, label, written


def planned(machine: VirtualMachine, dst: Region, src: Region, *, non_blocking: bool, stream: Any) -> Copy:
    """The copy that a call asks for; VirtualGPUError where the two sides are no memory of one device and one size."""
    key = dst, src, non_blocking
    try:
        known = stream.copies.get(key)
    except TypeError:
        # Not hashable, so neither side is memory: the check says so.
        known = None
    if known is not None:
        return cast(Copy, known)
    gpu = stream.gpu
    dst, src = checked(gpu, dst, role="the destination"), checked(gpu, src, role="the source")
    if dst.nbytes != src.nbytes:
        raise VirtualGPUError(
            f"cannot copy {src!r} to {dst!r}: {src.nbytes} bytes do not fit into {dst.nbytes} bytes",
            why="both sides of a copy must have the same size",
            next="slice both buffers to the same size",
        )
    entry = {"op": "copy", "dst": plain(dst), "src": plain(src), "stream": stream.index, "non_blocking": non_blocking}
    engine, ps, pageable = _way(machine, dst, src)
    blocks = engine not in (None, COMPUTE) and (pageable or not non_blocking)
    made = Copy(entry, engine, ps, blocks=blocks, label=(dst, src), written=dst.buffer)
    if len(stream.copies) >= _REMEMBERED:
        stream.copies.clear()
    stream.copies[key] = made
    return made


def _way(machine: VirtualMachine, dst: Region, src: Region) -> tuple[int | None, int, bool]:
    """The engine of a copy (None: the host itself), its picoseconds, and whether pageable memory takes part."""
    from_device, to_device = src.buffer.where == DEVICE, dst.buffer.where == DEVICE
    pageable = PAGEABLE in (src.buffer.where, dst.buffer.where)
    latency_ps = round(machine.copy_latency_s * PER_SECOND)
    if from_device and to_device:
        # Each byte is read once and written once.
        return COMPUTE, latency_ps + transfer_ps(2 * src.nbytes, machine.memory_bandwidth_byte_per_s), False
    if not from_device and not to_device:
        return None, transfer_ps(src.nbytes, machine.pageable_byte_per_s), pageable
    rate = min(machine.pageable_byte_per_s, machine.link_byte_per_s) if pageable else machine.link_byte_per_s
    return TO_DEVICE if to_device else TO_HOST, latency_ps + transfer_ps(src.nbytes, rate), pageable
