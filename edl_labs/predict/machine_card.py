"""The machine of a prediction: datasheet figures, the power that they run at, and what was measured of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from edl_labs.errors import EdlError, UsageError
from edl_labs.hardware import Accelerator, accelerator
from edl_labs.predict.efficiencies import BOARD_POWER_W, Efficiencies, family
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class MachineCard(Value):
    """What `predict` knows of a GPU. `peaks` are (unit, dtype, FLOP/s) of the datasheet,
    `tensor_fma` the multiply-adds of an SM's tensor cores in a clock at 16 bits.

    `product_flop_per_s`, `stream_measured_byte_per_s`, `kernel_floor_s` and `host_op_s` were measured by `edl-labs
    calibrate` where they are given (0 or empty: assumed from tables). `price_per_hour` is yours, in any currency.
    """

    key: str
    name: str
    family: str
    memory_kind: str
    sm_count: int
    memory_bytes: int
    memory_byte_per_s: float
    l2_bytes: int
    power_w: float
    link_byte_per_s: float
    peaks: tuple[tuple[str, str, float], ...]
    half_rate: bool = False
    tensor_fma: int = 0
    product_flop_per_s: tuple[tuple[str, float], ...] = ()
    stream_measured_byte_per_s: float = 0.0
    kernel_floor_s: float = 0.0
    host_op_s: float = 0.0
    price_per_hour: float = 0.0

    @classmethod
    def of(cls, machine: str | Accelerator | MachineCard, **changes: Any) -> MachineCard:
        """The card of a GPU of the hardware table: 'H100', 'A100-80GB', 'A100-80GB-330W' for another power limit.

        >>> MachineCard.of("T4").power_w, MachineCard.of("A100-80GB-330W").power_w
        (70.0, 330.0)
        """
        if isinstance(machine, MachineCard):
            return replace(machine, **changes) if changes else machine
        if isinstance(machine, str):
            limit = re.fullmatch(r"(.+)-(\d+)W", machine)
            if limit is not None:
                return cls.of(_found(limit[1]), **{"power_w": float(limit[2]), "key": machine, **changes})
            machine = _found(machine)
        if not isinstance(machine, Accelerator):
            raise UsageError(
                f"a {type(machine).__name__} is not a machine",
                why="a prediction needs the specifications of a GPU",
                next='use a name such as "H100", or pass a MachineCard',
            )
        peaks = tuple(
            (rate.unit, rate.dtype, machine.peak_flop_per_s(rate.dtype, unit=rate.unit)) for rate in machine.rates
        )
        kind = family(machine.key, machine.architecture)
        half = machine.key.startswith(("RTX-30", "RTX-40", "RTX-50", "A10G")) or machine.key == "L40"
        power = BOARD_POWER_W.get(machine.key.split(" MIG")[0], 300.0)
        fma = max((r.fma_per_clock_per_sm for r in machine.rates if (r.unit, r.dtype) == ("tensor", "fp16")), default=0)
        made = cls(
            machine.key, machine.name, kind, machine.memory_kind, machine.sm_count, machine.memory_bytes,
            machine.memory_bandwidth_byte_per_s, machine.l2_bytes, float(power), machine.nvlink_byte_per_s, peaks, half,
            fma,
        )  # fmt: skip
        return replace(made, **changes)

    @property
    def measured(self) -> tuple[str, ...]:
        """Which figures were measured; all others are assumed from datasheets and tables."""
        found = [f"products in {dtype}" for dtype, _ in self.product_flop_per_s]
        names = {"stream": self.stream_measured_byte_per_s, "kernel floor": self.kernel_floor_s, "host": self.host_op_s}
        return (*found, *(name for name, value in names.items() if value))

    def peak(self, dtype: str) -> tuple[str, float]:
        """The unit on which products in `dtype` run, and its datasheet FLOP/s.

        Without tensor cores for bf16 or TF32, products run on CUDA cores in fp32.
        """
        units = {(unit, name): rate for unit, name, rate in self.peaks}
        if dtype in ("fp16", "bf16", "tf32", "fp8", "int8") and ("tensor", dtype) in units:
            return "tensor", units["tensor", dtype]
        if dtype == "fp16" and ("cuda", "fp16") in units:
            return "cuda", units["cuda", "fp16"]
        if dtype == "fp64":
            best = max((u for u in units if u[1] == "fp64"), key=lambda u: units[u], default=None)
            if best:
                return best[0], units[best]
        return "cuda", units["cuda", "fp32"]

    def stream_byte_per_s(self, efficiencies: Efficiencies) -> float:
        """Bytes per second of a stream over large tensors."""
        if self.stream_measured_byte_per_s:
            return self.stream_measured_byte_per_s
        shares = efficiencies.dram
        return self.memory_byte_per_s * shares.get(self.memory_kind, 0.85)


def _found(name: str) -> Accelerator:
    try:
        return accelerator(name)
    except EdlError:
        # A name that leaves the memory open, as "A100" does: the smallest card that goes by it.
        named = {"A100": "A100-40GB", "V100": "V100-16GB", "H100": "H100-SXM"}.get(name.strip().upper())
        if named is None:
            raise
        return accelerator(named)
