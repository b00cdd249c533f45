"""An accelerator's datasheet facts, and the peaks that follow: SMs x multiply-adds x clock, lanes x transfers."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError

# Transfers per second and lane. Generations 3 to 5 encode 128 bits in 130; 6 sends 242 bytes of 256 (PCI-SIG).
_PCIE_TRANSFER_PER_S = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9}
_PCIE_EFFICIENCY = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}

_DTYPE_NAMES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
_KNOWN = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
UNITS = ("tensor", "cuda")


@checked_arguments()
def flop_rate(*, sm_count: int, fma_per_clock_per_sm: float, clock_hz: float) -> float:
    """Peak FLOP/s of a processor: SMs x multiply-adds per clock and SM x 2 x clock (deck [002]).

    >>> round(flop_rate(sm_count=108, fma_per_clock_per_sm=1024, clock_hz=1.41e9) / 1e12, 2)
    311.87
    """
    for name, value in (
        ("sm_count", sm_count),
        ("fma_per_clock_per_sm", fma_per_clock_per_sm),
        ("clock_hz", clock_hz),
    ):
        if not (math.isfinite(value) and value > 0):
            raise EdlError(
                f"{name} is {value!r}",
                why="a peak rate is the product of three positive numbers",
                next="pass the SMs per chip, the multiply-adds per clock and SM, and the clock in Hz",
            )
    return sm_count * fma_per_clock_per_sm * 2 * clock_hz


@checked_arguments()
def pcie_byte_per_s(generation: int, lanes: int = 16) -> float:
    """Peak bytes per second of a PCIe link in one direction, after line encoding.

    >>> round(pcie_byte_per_s(4) / 1e9, 2)
    31.51
    """
    if generation not in _PCIE_TRANSFER_PER_S or lanes not in (1, 2, 4, 8, 16, 32):
        raise EdlError(
            f"there is no PCIe generation {generation!r} with {lanes!r} lanes",
            why="generations 1 to 6 exist, with 1, 2, 4, 8, 16 or 32 lanes",
            next="look up the link in the datasheet of the machine, or run `nvidia-smi -q`",
        )
    return _PCIE_TRANSFER_PER_S[generation] * _PCIE_EFFICIENCY[generation] * lanes / 8


def dtype_name(dtype: object) -> str:
    """The table's short name of a dtype: 'fp16' for 'float16', 'half' or torch.float16.

    >>> dtype_name("torch.bfloat16")
    'bf16'
    """
    text = str(dtype).removeprefix("torch.").lower()
    short = _DTYPE_NAMES.get(text, text)
    if short not in _KNOWN:
        raise EdlError(
            f"there is no dtype {str(dtype)[:40]!r} here",
            why=f"the hardware table knows {', '.join(_KNOWN)}",
            next="use one of these, or a torch dtype",
        )
    return short


@dataclass(frozen=True)
class Rate:
    """How many multiply-adds of one dtype an SM does per clock, on which unit, and at which clock."""

    unit: str
    dtype: str
    fma_per_clock_per_sm: int
    clock_hz: float
    sparse_factor: float = 1.0


@dataclass(frozen=True)
class Accelerator:
    """Datasheet facts of one accelerator; every peak is derived, dense unless `sparse=True` is said."""

    key: str
    name: str
    architecture: str
    memory_kind: str
    reported_names: tuple[str, ...]
    aliases: tuple[str, ...]
    sm_count: int
    boost_clock_hz: float
    tensor_clock_hz: float
    memory_bytes: int
    memory_bandwidth_byte_per_s: float
    l2_bytes: int
    pcie_generation: int
    pcie_lanes: int
    nvlink_byte_per_s: float
    rates: tuple[Rate, ...]
    sources: tuple[tuple[str, str], ...]

    @property
    def link_byte_per_s(self) -> float:
        """Peak bytes per second between host and device, in one direction."""
        return pcie_byte_per_s(self.pcie_generation, self.pcie_lanes)

    def dtypes(self, *, unit: str | None = None) -> tuple[str, ...]:
        """The dtypes that this accelerator has a rate for, on `unit` or on any."""
        return tuple(dict.fromkeys(rate.dtype for rate in self.rates if unit in (None, rate.unit)))

    def rate(self, dtype: object, *, unit: str | None = None) -> Rate:
        """The rate of `dtype` on `unit` ('tensor' or 'cuda'); without a unit, the faster one."""
        if unit is not None and unit not in UNITS:
            raise EdlError(
                f"there is no unit {unit!r}",
                why="an SM has CUDA cores and tensor cores",
                next="use 'cuda' or 'tensor'",
            )
        short = dtype_name(dtype)
        found = [rate for rate in self.rates if rate.dtype == short and unit in (None, rate.unit)]
        if not found:
            where = {"tensor": "tensor cores", "cuda": "CUDA cores", None: "units"}[unit]
            raise EdlError(
                f"{self.name} has no {short} rate on its {where}",
                why=f"the dtypes with a rate there are {', '.join(self.dtypes(unit=unit))}",
                next="choose one of these, or another accelerator",
            )
        return max(found, key=lambda rate: rate.fma_per_clock_per_sm)

    def peak_flop_per_s(self, dtype: object, *, unit: str | None = None, sparse: bool = False) -> float:
        """Peak FLOP/s (or OP/s) for `dtype`: SMs x multiply-adds per clock x 2 x clock.

        >>> from edl_labs.hardware import accelerator
        >>> round(accelerator("A100-80GB").peak_flop_per_s("fp16") / 1e12)
        312
        """
        rate = self.rate(dtype, unit=unit)
        if sparse and rate.sparse_factor == 1:
            raise EdlError(
                f"{self.name} has no sparse rate for {rate.dtype}",
                why="2:4 sparsity exists since the tensor cores of Ampere, but not for every dtype",
                next="omit sparse=True",
            )
        dense = flop_rate(
            sm_count=self.sm_count, fma_per_clock_per_sm=rate.fma_per_clock_per_sm, clock_hz=rate.clock_hz
        )
        return dense * rate.sparse_factor if sparse else dense

    def ridge_flop_per_byte(self, dtype: object, *, unit: str | None = None) -> float:
        """The arithmetic intensity from which `dtype` is limited by arithmetic rather than by memory."""
        return self.peak_flop_per_s(dtype, unit=unit) / self.memory_bandwidth_byte_per_s

    def source(self, figure: str) -> str:
        """Where a figure of this entry comes from."""
        known = dict(self.sources)
        if figure not in known:
            raise EdlError(
                f"there is no source for {figure!r}",
                why="the table has no figure with this name",
                next=f"use one of {', '.join(sorted(known))}",
            )
        return known[figure]

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data, with a schema number."""
        return {"schema": 1, **dataclasses.asdict(self)}
