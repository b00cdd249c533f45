"""What a device reaches: rates of matrix products by dtype, of memory, and the cost of a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from edl_labs.errors import UsageError
from edl_labs.hardware import Accelerator, accelerator
from edl_labs.numerics import autocast_trace
from edl_labs.units import flop_rate

# What a kernel costs the host in eager torch: the launch itself and the dispatch before it.
LAUNCH_S = 5e-6


@dataclass(frozen=True)
class Rates:
    """What a device reaches: FLOP/s of matrix products by dtype, of anything else, bytes/s, and the cost of a launch.

    `asynchronous` devices work while the host issues the next launch; a CPU does one after the other.
    """

    name: str
    product_flop_per_s: dict[str, float]
    other_flop_per_s: float
    byte_per_s: float
    launch_s: float = LAUNCH_S
    asynchronous: bool = True
    source: str = "datasheet"

    @classmethod
    def of(cls, chip: Accelerator | str, *, launch_s: float = LAUNCH_S) -> Rates:
        """The datasheet's rates of an accelerator, by its key such as 'A100-80GB'."""
        chip = chip if isinstance(chip, Accelerator) else accelerator(chip)
        products = {dtype: chip.peak_flop_per_s(dtype) for dtype in chip.dtypes() if dtype != "int8"}
        return cls(
            chip.name, products, chip.peak_flop_per_s("fp32", unit="cuda"), chip.memory_bandwidth_byte_per_s, launch_s
        )

    def product(self, dtype: str, *, tf32: bool, aligned: bool) -> float:
        """FLOP/s of a matrix product in `dtype`; misaligned ones run as if without tensor cores (the old rule)."""
        name = "tf32" if dtype == "fp32" and tf32 and "tf32" in self.product_flop_per_s else dtype
        slow = min(self.other_flop_per_s, self.product_flop_per_s.get(name, self.other_flop_per_s))
        return self.product_flop_per_s.get(name, self.other_flop_per_s) if aligned else slow


def rates_text(rates: Rates) -> str:
    """One line on what a device reaches.

    >>> print(rates_text(Rates.of("V100-16GB")))
    NVIDIA V100 SXM2 16 GB (datasheet): fp16 125 TFLOP/s, fp32 15.7 TFLOP/s, fp64 7.83 TFLOP/s
    """
    shown = ", ".join(f"{name} {flop_rate(rate)}" for name, rate in sorted(rates.product_flop_per_s.items()))
    return f"{rates.name} ({rates.source}): {shown}"


def rates_here(dtype: Any, *, budget_s: float = 0.3) -> Rates:
    """What this CPU reaches, measured: products of 512 x 512 in fp32 and `dtype`, a copy, the cost of a small call."""
    from edl_labs.bench import measure
    from edl_labs.device import cpu_model

    size, each = 512, budget_s / 4
    products = {}
    for kind in (torch.float32, dtype):
        a, b = torch.ones(size, size, dtype=kind), torch.ones(size, size, dtype=kind)
        median_s = float(measure(lambda a=a, b=b: torch.mm(a, b), budget_s=each, detect=False))
        products[autocast_trace.dtype_text(kind)] = 2 * size**3 / median_s
    source = torch.ones(4_000_000)
    target = torch.empty_like(source)
    copy_s = float(measure(lambda: target.copy_(source), budget_s=each, detect=False))
    small = torch.ones(1)
    launch_s = float(measure(lambda: small + small, budget_s=each, detect=False))
    return Rates(
        name=cpu_model(),
        product_flop_per_s=products,
        other_flop_per_s=products["fp32"],
        byte_per_s=2 * source.nbytes / copy_s,
        launch_s=launch_s,
        asynchronous=False,
        source="measured here",
    )


def check_rates(rates: Any) -> Rates:
    """`rates` as Rates: an accelerator's key or entry becomes its datasheet's rates."""
    if isinstance(rates, Rates):
        return rates
    if isinstance(rates, (str, Accelerator)):
        return Rates.of(rates)
    raise UsageError(
        f"no machine: {str(rates)[:40]!r}",
        why="a prediction needs rates",
        next='machine="A100-80GB", or Rates(...) of your own',
    )
