"""Whether AMP can help a step at all, from shapes, datasheet rates and the cost of a launch: no GPU needed.

Each kernel takes roofline's bound (decks [002], [004]) at the rate of the dtype that it runs in, read off a trace; the
host issues one launch after another, and a step takes what is longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.numerics._alignment import alignment_multiple
from edl_labs.numerics._rates_here import Rates, tf32_state
from edl_labs.numerics.autocast_trace import TorchCall, TracedKernel, trace
from edl_labs.roofline import Machine, Work, bound
from edl_labs.roofline.operators.counted_call import short_dtype
from edl_labs.units import percent, seconds
from edl_labs.values import Value

# Backward computes two products for each forward one; other operators read and write about as much once more.
_BACKWARD_PRODUCTS, _BACKWARD_OTHERS = 2, 1
_WORTH = 1.1  # less would be within the error of such a prediction
_LOW_BYTES = {"fp32": 4, "fp64": 8, "fp16": 2, "bf16": 2}


@dataclass(frozen=True, repr=False)
class StepCost(Value):
    """A step's predicted cost: on the device, for the host's launches, and which limit the device's time is under."""

    device_s: float
    host_s: float
    launches: int
    compute_s: float
    memory_s: float
    asynchronous: bool

    @property
    def time_s(self) -> float:
        """What the step takes: the longer of host and device, or both in turn where one processor does both."""
        return max(self.device_s, self.host_s) if self.asynchronous else self.device_s + self.host_s

    @property
    def memory_share(self) -> float:
        """The fraction of the device's time in kernels that wait for memory."""
        return self.memory_s / self.device_s if self.device_s else 0.0

    @property
    def launch_share(self) -> float:
        """The fraction of the step that is spent waiting for launches."""
        waits = self.host_s >= self.device_s if self.asynchronous else True
        return min(1.0, self.host_s / self.time_s) if waits and self.time_s else 0.0


@dataclass(frozen=True, repr=False)
class AmpPrediction(Value):
    """What AMP should do to a step: `speedup` if every product runs at its dtype's rate, `speedup_low` if misaligned
    ones do not; `reasons` are what stands in its way, the largest first."""

    DERIVED = ("speedup", "speedup_low")

    device: str
    dtype: str
    full: StepCost
    low: StepCost
    low_misaligned: StepCost
    reasons: tuple[str, ...]
    tf32: bool
    misaligned: tuple[str, ...]
    misaligned_share: float
    casts: int

    @property
    def speedup(self) -> float:
        """The predicted time in full precision over that under AMP."""
        return self.full.time_s / self.low.time_s if self.low.time_s else 1.0

    @property
    def speedup_low(self) -> float:
        """The same if misaligned products cannot use tensor cores."""
        return self.full.time_s / self.low_misaligned.time_s if self.low_misaligned.time_s else 1.0

    @property
    def can_help(self) -> bool:
        """Whether AMP is worth trying: a tenth faster or more, even with misaligned products at their slowest."""
        return self.speedup_low >= _WORTH

    @property
    def limit(self) -> str:
        """The first reason, or 'compute-bound': what decides about AMP here."""
        return self.reasons[0] if self.reasons else "compute-bound"

    def __repr__(self) -> str:
        low, high = f"{self.speedup_low:.2f}", f"{self.speedup:.2f}"
        lines = [
            f"{self.device}, {self.dtype}: {low if low == high else f'{low} to {high}'} times as fast, predicted "
            f"({seconds(self.full.time_s)} → {seconds(self.low.time_s)})",
            *(f"  {reason}: {_EXPLAINED[reason](self)}" for reason in self.reasons),
        ]
        return "\n".join(
            lines if self.reasons else [*lines, "  compute-bound: products dominate, and they become faster"]
        )


@checked_arguments()
def predict_amp(
    model: Any, inputs: Any, rates: Rates, *, dtype: Any, backward: bool = True, device_type: str = "cuda"
) -> AmpPrediction:
    """What AMP to `dtype` should do to one step of `model(*inputs)` on a device with these rates."""
    low_dtype = short_dtype(dtype)
    before = trace(model, inputs, device_type=device_type)
    after = trace(model, inputs, device_type=device_type, autocast=dtype)
    tf32 = tf32_state()
    allowed = {"matmul_tf32": tf32.matmul, "convolution_tf32": tf32.convolution}
    pricing = _Pricing(rates, rates.machine(), **allowed, backward=backward)
    full, low = pricing.cost(before), pricing.cost(after)
    misaligned = pricing.misaligned(after)
    slow = pricing.cost(after, strict=True)
    products = sum(kernel.flops for call in after for kernel in call.kernels)
    share = sum(flop for _, flop in misaligned) / products if products else 0.0
    used_tf32 = pricing.uses_tf32(before)
    return AmpPrediction(
        device=rates.name,
        dtype=low_dtype,
        full=full,
        low=low,
        low_misaligned=slow,
        reasons=_reasons(full, low, rates=rates, dtype=low_dtype, tf32=used_tf32, misaligned=share),
        tf32=used_tf32,
        misaligned=tuple(dict.fromkeys(name for name, _ in misaligned)),
        misaligned_share=share,
        casts=sum(kernel.is_cast for call in after for kernel in call.kernels),
    )


@dataclass(frozen=True)
class _Pricing:
    """Turns traced calls into time."""

    rates: Rates
    machine: Machine
    matmul_tf32: bool
    convolution_tf32: bool
    backward: bool

    def cost(self, calls: list[TorchCall], *, strict: bool = False) -> StepCost:
        compute = memory = 0.0
        launches = 0
        for call in calls:
            for kernel in call.kernels:
                times = 1 + (_BACKWARD_PRODUCTS if kernel.flops else _BACKWARD_OTHERS) * self.backward
                compute_s, memory_s = self._kernel_s(kernel, strict=strict)
                launches += times
                compute += times * compute_s if compute_s >= memory_s else 0.0
                memory += times * memory_s if compute_s < memory_s else 0.0
        return StepCost(
            device_s=compute + memory,
            host_s=launches * self.rates.launch_s,
            launches=launches,
            compute_s=compute,
            memory_s=memory,
            asynchronous=self.rates.asynchronous,
        )

    def misaligned(self, calls: list[TorchCall]) -> list[tuple[str, int]]:
        """The products in a 16-bit dtype whose sizes break the 16-byte rule: where, and how many FLOP."""
        return [
            (call.module or call.operator, kernel.flops)
            for call in calls
            for kernel in call.kernels
            if kernel.flops and kernel.ran_in in ("fp16", "bf16") and not _aligned(kernel)
        ]

    def uses_tf32(self, calls: list[TorchCall]) -> bool:
        """Whether most of the work in fp32 products runs in TF32 already."""
        flop = {True: 0, False: 0}
        for kernel in (kernel for call in calls for kernel in call.kernels if kernel.flops):
            flop[self._tf32(kernel)] += kernel.flops
        return flop[True] > flop[False]

    def _tf32(self, kernel: TracedKernel) -> bool:
        allowed = self.convolution_tf32 if "conv" in kernel.counted.name else self.matmul_tf32
        return allowed and kernel.ran_in == "fp32" and "tf32" in self.machine.matmul

    def _kernel_s(self, kernel: TracedKernel, *, strict: bool) -> tuple[float, float]:
        """Seconds of arithmetic and of moving bytes."""
        found = bound(self.machine, self._work(kernel, strict=strict))
        return found.compute_s, found.memory_s

    def _work(self, kernel: TracedKernel, *, strict: bool) -> Work:
        dtype = "tf32" if self._tf32(kernel) else kernel.ran_in
        products, other = kernel.flops, kernel.counted.other_flops or 0.0
        if dtype is None or dtype not in self.machine.matmul:
            return Work(0, products + other, kernel.counted.moved_bytes, "fp32")
        if strict and products and not _aligned(kernel):
            # The old rule: misaligned products run as if there were no tensor cores.
            products, other = 0, products + other
        return Work(products, other, kernel.counted.moved_bytes, dtype)


def _aligned(kernel: TracedKernel) -> bool:
    """Whether the sizes that lie contiguously in the product's operands are multiples of 16 bytes.

    For a matrix product they are the last two sizes of each operand, for a convolution its channels, for fused
    attention the size of a head.
    """
    multiple = alignment_multiple(kernel.ran_in if kernel.ran_in in _LOW_BYTES else "fp32")
    name = kernel.counted.name
    matrices = [spec.shape for spec in (*kernel.given, *kernel.made) if len(spec.shape) >= 2]
    if "attention" in name:
        sizes = [shape[-1] for shape in matrices[:3]]  # queries, keys and values lie by head
    elif "conv" in name:
        sizes = [size for shape in matrices[1:2] for size in shape[:2]]  # the weight: outputs, inputs of a group
    else:
        sizes = [size for shape in matrices for size in shape[-2:]]
    return all(size % multiple == 0 for size in sizes)


def _reasons(
    full: StepCost, low: StepCost, *, rates: Rates, dtype: str, tf32: bool, misaligned: float
) -> tuple[str, ...]:
    reasons = []
    if low.launch_share > 0.5:
        reasons.append("launch-bound")
    if rates.product_flop_per_s.get(dtype, 0.0) <= rates.product_flop_per_s.get("fp32", rates.other_flop_per_s):
        reasons.append("no faster unit")
    if full.memory_share > 0.5:
        reasons.append("memory-bound")
    if misaligned > 0.5:
        reasons.append("misaligned")
    if tf32:
        reasons.append("already TF32")
    return tuple(reasons)


_EXPLAINED: dict[str, Any] = {
    "launch-bound": lambda p: (
        f"the host needs {seconds(p.low.host_s)} for {p.low.launches} launches, and the device needs "
        f"{seconds(p.low.device_s)}; "
        f"AMP adds {p.casts} casts in the forward pass"
    ),
    "no faster unit": lambda p: f"this device multiplies {p.dtype} no faster than fp32",
    "memory-bound": lambda p: (
        f"{percent(p.full.memory_share)} of the device's time is spent waiting for memory; with half the bytes this "
        "part is at best halved, and does not speed up by the tensor cores' factor"
    ),
    "misaligned": lambda p: (
        f"{percent(p.misaligned_share)} of the FLOPs break the 16-byte rule ({', '.join(p.misaligned[:3])}): pad them"
    ),
    "already TF32": lambda p: "fp32 products already run on tensor cores, so 16 bits give at most a factor of two",
}
