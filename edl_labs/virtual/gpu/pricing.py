"""What kernels and copies cost on a machine, from the amount of work."""

from __future__ import annotations

from typing import Any

from edl_labs.hardware import dtype_name
from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.buffers import DEVICE, PAGEABLE, Region
from edl_labs.virtual.gpu.engine import COMPUTE, TO_DEVICE, TO_HOST, KernelWork, Regions
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.quantities import PER_SECOND, flop_count, picoseconds, whole_bytes


def kernel_cost(
    machine: VirtualMachine,
    entry: dict[str, Any],
    *,
    duration_s: float | None,
    flops: float,
    moved_bytes: int | None,
    dtype: object,
    touched: tuple[Region, ...],
) -> int | KernelWork:
    """What a kernel costs, in picoseconds or as work to be priced when it starts; the entry records what was given."""
    if duration_s is None:
        size = sum(part.nbytes for part in touched) if moved_bytes is None else moved_bytes
        entry["flops"], entry["moved_bytes"] = flop_count(flops), whole_bytes(size, "traffic", lowest=0)
        entry["dtype"] = short = dtype_name(dtype)
        return _work(machine, entry["name"], flops=flops, moved_bytes=size, dtype=short, touched=touched)
    if flops or moved_bytes is not None:
        raise VirtualGPUError(
            f"{entry['name']} has a duration and an amount of work",
            why="the machine prices work by itself",
            next="give duration_s, or flops and moved_bytes",
        )
    ps, entry["duration_s"] = picoseconds(duration_s, "duration_s"), float(duration_s)
    return ps


def copy_plan(machine: VirtualMachine, dst: Region, src: Region) -> tuple[int | None, int, bool]:
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


def transfer_ps(nbytes: int, byte_per_s: float) -> int:
    """How long so many bytes take at a rate, in whole picoseconds."""
    return round(nbytes / byte_per_s * PER_SECOND)


def _work(
    machine: VirtualMachine, name: str, *, flops: float, moved_bytes: int, dtype: str, touched: tuple[Region, ...]
) -> KernelWork:
    """A kernel's work on a machine: its arithmetic in time, its traffic in bytes, and the regions it touches."""
    arithmetic_ps = round(flops / _peak(machine, dtype) * PER_SECOND) if flops else 0
    if touched:
        regions: Regions = tuple(
            ((part.buffer.index, part.start, part.stop), part.nbytes) for part in dict.fromkeys(touched)
        )
    else:
        regions = ((name, moved_bytes),) if moved_bytes else ()
    return KernelWork(arithmetic_ps=arithmetic_ps, moved_bytes=moved_bytes, regions=regions)


def _peak(machine: VirtualMachine, dtype: str) -> float:
    peak = machine.peak_flop_per_s.get(dtype)
    if peak is None:
        raise VirtualGPUError(
            f"{machine.name} has no {dtype} rate",
            why=f"it has {', '.join(machine.peak_flop_per_s)}",
            next="choose one of these, or set peak_flop_per_s of the machine",
        )
    return peak
