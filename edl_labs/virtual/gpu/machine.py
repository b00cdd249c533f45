"""The parameters of a VirtualGPU, as one frozen value, and what kernels and copies cost on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.hardware import Accelerator, accelerator, dtype_name
from edl_labs.virtual.errors import VirtualGPUError, shown
from edl_labs.virtual.gpu.buffers import Region
from edl_labs.virtual.gpu.work_items import KernelWork, Regions
from edl_labs.virtual.quantities import MAX_SECONDS, PER_SECOND, flop_count, is_number, picoseconds, whole_bytes

_MAX_RATE = 1e18  # an exabyte a second, or a thousand chips in one

# What no datasheet prints: host costs of an eager framework's calls, and the rate of staged copies. Typical values of
# the hosts that carry these chips; tests/gpu compares them with a real machine.
_HOSTS: dict[str, dict[str, float]] = {
    "Kepler": {"launch_overhead_s": 6e-6, "copy_overhead_s": 9e-6, "pageable_byte_per_s": 5e9},
    "Pascal": {"launch_overhead_s": 6e-6, "copy_overhead_s": 9e-6, "pageable_byte_per_s": 5e9},
    "Turing": {"launch_overhead_s": 6e-6, "copy_overhead_s": 9e-6, "pageable_byte_per_s": 5e9},
    "Volta": {"launch_overhead_s": 6e-6, "copy_overhead_s": 9e-6, "pageable_byte_per_s": 5e9},
    "Ampere": {"launch_overhead_s": 5e-6, "copy_overhead_s": 8e-6, "pageable_byte_per_s": 8e9},
    "Hopper": {"launch_overhead_s": 4e-6, "copy_overhead_s": 7e-6, "pageable_byte_per_s": 12e9},
    "Ada": {"launch_overhead_s": 4e-6, "copy_overhead_s": 7e-6, "pageable_byte_per_s": 10e9},
    "Blackwell": {"launch_overhead_s": 4e-6, "copy_overhead_s": 7e-6, "pageable_byte_per_s": 12e9},
    "CDNA2": {"launch_overhead_s": 7e-6, "copy_overhead_s": 10e-6, "pageable_byte_per_s": 8e9},
    "CDNA3": {"launch_overhead_s": 7e-6, "copy_overhead_s": 10e-6, "pageable_byte_per_s": 12e9},
    "CDNA4": {"launch_overhead_s": 7e-6, "copy_overhead_s": 10e-6, "pageable_byte_per_s": 12e9},
    "RDNA3": {"launch_overhead_s": 7e-6, "copy_overhead_s": 10e-6, "pageable_byte_per_s": 10e9},
}
# Large pinned copies reach about this share of a PCIe link: packet headers take the rest.
_LINK_EFFICIENCY = 0.85
_L2_SPEEDUP = 2.5  # typical: the L2 of an A100 or H100 is two to three times as fast as its HBM


# Streaming multiprocessors (compute units for CDNA) of the chips as sold, from their datasheets and white papers.
_SM_COUNTS = {
    **dict.fromkeys(("V100-16GB", "V100-32GB", "V100-PCIe-16GB"), 80),
    **dict.fromkeys(("A100-40GB", "A100-80GB", "A100-80GB-PCIe", "A100-40GB-PCIe"), 108),
    **dict.fromkeys(("H100-SXM", "H100-NVL", "H200"), 132),
    "H100-PCIe": 114,
    "T4": 40,
    "A10": 72,
    "A6000": 84,
    "RTX-3090": 82,
    "L4": 58,
    "L40S": 142,
    "RTX-4090": 128,
    "RTX-5090": 170,
    "B200": 148,
    "GB200": 148,
    "MI250X-GCD": 110,
    "MI300X": 304,
}


@dataclass(frozen=True)
class VirtualMachine:
    """A machine's parameters, in SI. The defaults are an ideal machine: what you do not set costs nothing.

    >>> VirtualMachine(launch_overhead_s=5e-6).launch_overhead_s
    5e-06
    >>> VirtualMachine.of("H200").l2_bytes
    52428800
    """

    name: str = "ideal"
    launch_overhead_s: float = 0.0
    copy_overhead_s: float = 0.0
    event_overhead_s: float = 0.0
    sync_overhead_s: float = 0.0
    copy_latency_s: float = 0.0
    kernel_floor_s: float = 0.0
    context_init_s: float = 0.0
    module_load_s: float = 0.0
    clock_resolution_s: float = 1e-12
    clock_read_cost_s: float = 0.0
    queue_depth: int | None = None
    link_byte_per_s: float = 10e9
    pageable_byte_per_s: float = 5e9
    memory_bandwidth_byte_per_s: float = 1e12
    l2_bandwidth_byte_per_s: float = 2e12
    l2_bytes: int = 0
    memory_bytes: int = 80_000_000_000
    sm_count: int = 100
    peak_flop_per_s: Mapping[str, float] = field(default_factory=lambda: {"fp32": 1e12}, hash=False)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _check(name, value)
        object.__setattr__(self, "peak_flop_per_s", _checked_peaks(self.peak_flop_per_s))

    @classmethod
    @checked_arguments(entry='Name an accelerator, such as VirtualMachine.of("H200").')
    def of(cls, entry: str | Accelerator, **overrides: Any) -> VirtualMachine:
        """The modelled machine around an accelerator of the hardware table, such as 'H200'."""
        chip = accelerator(entry) if isinstance(entry, str) else entry
        base = cls(
            name=chip.key,
            event_overhead_s=1e-6,
            sync_overhead_s=4e-6,
            copy_latency_s=1.5e-6,
            kernel_floor_s=1.5e-6,
            context_init_s=0.25,
            module_load_s=4e-4,
            clock_resolution_s=1e-9,
            clock_read_cost_s=6e-8,
            queue_depth=1024,
            link_byte_per_s=_LINK_EFFICIENCY * chip.link_byte_per_s,
            memory_bandwidth_byte_per_s=chip.memory_bandwidth_byte_per_s,
            l2_bandwidth_byte_per_s=_L2_SPEEDUP * chip.memory_bandwidth_byte_per_s,
            l2_bytes=chip.l2_bytes,
            memory_bytes=chip.memory_bytes,
            sm_count=_SM_COUNTS.get(chip.key, cls.sm_count),
            peak_flop_per_s={dtype: chip.peak_flop_per_s(dtype) for dtype in chip.dtypes()},
        )
        return base.replace(**{**_HOSTS[chip.architecture], **overrides})

    def replace(self, **overrides: Any) -> VirtualMachine:
        """The same machine with some parameters changed."""
        known = [parameter.name for parameter in dataclasses.fields(self)]
        strange = sorted(set(overrides) - set(known))
        if strange:
            raise VirtualGPUError(
                f"a VirtualGPU has no parameter {strange[0]!r}",
                why=f"its parameters are {', '.join(known)}",
                next="use one of these parameters",
            )
        return dataclasses.replace(self, **overrides)

    def warm(self) -> VirtualMachine:
        """The same machine with its context made and its kernels loaded: first calls cost no more than others."""
        return self.replace(context_init_s=0.0, module_load_s=0.0)

    def to_dict(self) -> dict[str, Any]:
        """The machine as plain data; the SMs are left out where they are those of the chip that it is called after."""
        data = {**vars(self), "peak_flop_per_s": dict(self.peak_flop_per_s)}
        if self.sm_count == _SM_COUNTS.get(self.name, VirtualMachine.sm_count):
            del data["sm_count"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> VirtualMachine:
        """The machine from what `to_dict` returned."""
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            raise VirtualGPUError(
                "this does not describe a machine",
                why="this value does not map the names of parameters to values",
                next="pass the dictionary that VirtualMachine.to_dict() returned",
            )
        name = data.get("name")
        sm_count = _SM_COUNTS.get(name, cls.sm_count) if isinstance(name, str) else cls.sm_count
        return cls().replace(**{"sm_count": sm_count, **data})


def machine(value: str | Accelerator | VirtualMachine | Mapping[str, Any], **overrides: Any) -> VirtualMachine:
    """A machine from a hardware key, a table entry, plain data, or a machine; `overrides` set parameters."""
    if isinstance(value, VirtualMachine):
        return value.replace(**overrides)
    if isinstance(value, Mapping):
        return VirtualMachine.from_dict(value).replace(**overrides)
    return VirtualMachine.of(value, **overrides)


def _check(name: str, value: Any) -> None:
    if name == "name":
        good, want = type(value) is str and len(value) <= 100, "a string of at most 100 characters"
    elif name == "queue_depth":
        good, want = (
            value is None or (type(value) is int and 1 <= value <= 10**9),
            "a whole number of 1 or more, or None",
        )
    elif name == "sm_count":
        good, want = type(value) is int and 1 <= value <= 10**6, "a whole number of 1 or more"
    elif name == "peak_flop_per_s":
        good, want = isinstance(value, Mapping), "a mapping from dtype to FLOP/s"
    elif name.endswith("_bytes"):
        good, want = type(value) is int and 0 <= value <= 10**18, "a whole number of bytes"
    elif name.endswith("_s") and not name.endswith("_per_s"):
        lowest = 1e-12 if name == "clock_resolution_s" else 0.0
        good, want = is_number(value, lowest, MAX_SECONDS), f"seconds from {lowest:g} to {MAX_SECONDS:g}"
    else:
        good, want = is_number(value, 1.0, _MAX_RATE), f"a rate from 1 to {_MAX_RATE:g}"
    if not good:
        raise VirtualGPUError(
            f"{name} is {shown(value)}", why=f"it must be {want}", next=f"pass such a value for {name}"
        )


def _checked_peaks(peaks: Mapping[str, float]) -> dict[str, float]:
    checked = {dtype_name(dtype): rate for dtype, rate in peaks.items()}
    for rate in checked.values():
        _check("peak_flop_per_s of a dtype", rate)
    return checked


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
            f"{entry['name']} was launched with both a duration and an amount of work",
            why="the machine computes the duration from the amount of work",
            next="pass either duration_s, or flops and moved_bytes",
        )
    ps, entry["duration_s"] = picoseconds(duration_s, "duration_s"), float(duration_s)
    return ps


def transfer_ps(nbytes: int, byte_per_s: float) -> int:
    """How long a number of bytes takes at a rate, in whole picoseconds."""
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
            f"{machine.name} has no peak rate for {dtype}",
            why=f"it has rates for {', '.join(machine.peak_flop_per_s)}",
            next="choose one of these, or set peak_flop_per_s of the machine",
        )
    return peak
