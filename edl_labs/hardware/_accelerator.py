"""One accelerator of the datasheet table, as a frozen value that derives its own peaks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.hardware.peak import dtype_name, flop_rate, pcie_byte_per_s

UNITS = ("tensor", "cuda")


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
                f"no unit is called {unit!r}",
                why="an SM has CUDA cores and tensor cores",
                next="say 'cuda' or 'tensor'",
            )
        short = dtype_name(dtype)
        found = [rate for rate in self.rates if rate.dtype == short and unit in (None, rate.unit)]
        if not found:
            where = {"tensor": "tensor cores", "cuda": "CUDA cores", None: "units"}[unit]
            raise EdlError(
                f"{self.name} has no {short} rate on its {where}",
                why=f"it has {', '.join(self.dtypes(unit=unit))} there",
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
                why="2:4 sparsity came with Ampere's tensor cores, and not for every dtype",
                next="leave out sparse=True",
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
                f"no source for {figure!r}", why="the table has no figure of that name", next=f"one of {sorted(known)}"
            )
        return known[figure]

    def to_dict(self) -> dict[str, Any]:
        """The entry as plain data, with a schema number."""
        return {"schema": 1, **dataclasses.asdict(self)}
