"""What a device reaches (rates by dtype, the cost of a launch), and whether its fp32 products may run in TF32."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from edl_labs.arguments import checked_arguments, require_positive
from edl_labs.clock import HostClock
from edl_labs.device import cpu_model
from edl_labs.errors import UsageError
from edl_labs.hardware import Accelerator
from edl_labs.numerics._float_format import float_format
from edl_labs.roofline import Ceiling, Machine, MemoryLevel
from edl_labs.roofline.microbenchmarks.kernels import TimedKernel, measure_all, memory_kernels, product_kernel
from edl_labs.values import Value

# What a kernel costs the host in eager torch: the launch itself and the dispatch before it.
LAUNCH_S = 5e-6
# The sizes of `rates_here`: a product as small layers have it, and a copy beyond most caches.
_SIDE, _COPIED_BYTES = 512, 32_000_000


@dataclass(frozen=True, repr=False)
class Rates(Value):
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
        machine = Machine.of(chip)
        products = {dtype: ceiling.rate for dtype, ceiling in machine.matmul.items() if dtype != "int8"}
        others = machine.vector["fp32"].rate
        return cls(machine.name, products, others, machine.memory_bandwidth_byte_per_s, launch_s)

    def machine(self) -> Machine:
        """The same rates as roofs: products on one unit, all else, and products without tensor cores, on another."""
        products = {dtype: Ceiling(rate) for dtype, rate in self.product_flop_per_s.items()}
        others = {dtype: Ceiling(min(self.other_flop_per_s, product.rate)) for dtype, product in products.items()}
        memory = MemoryLevel("memory", math.inf, {"copy": Ceiling(self.byte_per_s)})
        return Machine(self.name, (memory,), products, {"fp32": Ceiling(self.other_flop_per_s), **others})


@checked_arguments()
def rates_here(dtype: Any, *, budget_s: float = 0.3) -> Rates:
    """What this CPU reaches, measured: products of 512 x 512 in fp32 and `dtype`, a copy, the cost of a small call.

    Takes about `budget_s`, and six rounds of all four at least.
    """
    require_positive(budget_s=budget_s)
    clock, small = HostClock(), torch.ones(1)
    kinds = ("fp32", float_format(dtype).name)
    products = {kind: product_kernel(kind, (_SIDE,) * 3, device="cpu") for kind in kinds}
    (copy,) = memory_kernels("copy", _COPIED_BYTES, device="cpu", workers=None)
    kernels = {**products, "copy": copy, "launch": TimedKernel("a small call", 1.0, lambda: small + small)}
    found = measure_all(kernels, clock, until_s=clock.now_s() + budget_s)
    return Rates(
        name=cpu_model(),
        product_flop_per_s={name: found[name].rate for name in products},
        other_flop_per_s=found["fp32"].rate,
        byte_per_s=found["copy"].rate,
        launch_s=1.0 / found["launch"].rate,
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
        f"{str(rates)[:40]!r} is not a machine",
        why="a prediction needs a machine's rates",
        next='use machine="A100-80GB", or pass your own Rates(...)',
    )


@dataclass(frozen=True, repr=False)
class TF32State(Value):
    """Whether fp32 matrix products and convolutions may run in TF32 on a GPU that has it."""

    matmul: bool
    convolution: bool

    def __str__(self) -> str:
        def said(on: bool) -> str:
            return "TF32" if on else "fp32"

        return (
            f"fp32 matrix products run in {said(self.matmul)}, convolutions in {said(self.convolution)} "
            "where the GPU has TF32 (Ampere and later)"
        )


def tf32_state() -> TF32State:
    """What torch is set to. Unless changed, products run in fp32 and convolutions in TF32 (since torch 1.12).

    torch 2.9 and later answer by `fp32_precision`, whose own setting may be inherited; older ones by `allow_tf32`.
    """
    from torch import backends

    return TF32State(
        matmul=_may(backends.cuda.matmul, "allow_tf32"),
        convolution=_may(getattr(backends.cudnn, "conv", backends.cudnn), "allow_tf32", backends.cudnn),
    )


def _may(setting: Any, old_name: str, old_home: Any = None) -> bool:
    # The old flag raises once the new one was used, and the new one does not exist before 2.9.
    try:
        return str(setting.fp32_precision) == "tf32"
    except (AttributeError, RuntimeError):
        return bool(getattr(old_home or setting, old_name))
