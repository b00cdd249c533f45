"""How long a kernel takes on a machine, what limits it, and why: tiles and waves, bytes and caches, floors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from edl_labs.predict.efficiencies import Efficiencies
from edl_labs.predict.machine_card import MachineCard
from edl_labs.predict.step_kernels import Attention, Product, StepKernel

_TENSOR_TILES = (
    *((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64), (256, 32), (32, 256)),
    *((128, 32), (32, 128), (64, 32), (32, 64), (32, 32), (128, 16), (16, 128), (64, 16), (16, 64)),
)  # CUTLASS's menu
# The menu of cuBLAS's sgemm kernels.
_CUDA_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32), (64, 16), (16, 64))
# A tile loads (1/m + 1/n) of an element for each multiply-add. An A100's SM does 1024 of them in a clock and needs
# tiles of 128 x 128 to feed them; one of half the rate needs half the tile (128 bytes of shared memory a clock each).
_FED_LOADS, _FED_RATE = 1 / 64, 1024
_CUDA_RATE = 768  # that rate for sgemm: eight by eight results a thread need 128 bytes a clock for its 128
_STARVED = 0.55  # how the rate falls with loads beyond that: 64 x 64 at two thirds, as CUTLASS's profiles have it
_SPLITS = (1, 2, 4, 8, 16, 32)  # of k, as cuBLAS's heuristics offer
_GROUP_CHANNELS = 16  # tensor cores want as many channels of a group, padded


class KernelTime(NamedTuple):
    """Seconds on the device, what limits it ('compute', 'memory', 'launch'), its unit, and a reason in words."""

    seconds: float
    limiter: str
    reason: str


class KernelTimer:
    """Prices kernels on one machine."""

    def __init__(self, card: MachineCard, efficiencies: Efficiencies, *, compiled: bool = False) -> None:
        self.card, self.efficiencies, self.compiled = card, efficiencies, compiled
        self._rates: dict[str, tuple[float, str]] = {}
        self._known: dict[Any, KernelTime] = {}

    def time(self, kernel: StepKernel) -> KernelTime:
        """What one kernel takes once it runs; `kernel_s` of it is start and end."""
        key = (kernel.kind, kernel.dtype, kernel.product, kernel.attention, kernel.moved_bytes, kernel.calls)
        if key not in self._known:
            self._known[key] = self._time(kernel)
        return self._known[key]

    def _time(self, kernel: StepKernel) -> KernelTime:
        e = self.efficiencies
        compute_s, reason = self._compute(kernel)
        memory_s = self._memory(kernel)
        turned_s = self._turned(kernel)
        body = together(compute_s, memory_s, e.overlap) + turned_s
        if turned_s:
            # The library's search takes the quicker way: images turned round, or a kernel that reads them as they lie.
            straight_s = together(compute_s / e.nchw_straight, memory_s, e.overlap)
            if straight_s < body:
                body, turned_s, compute_s = straight_s, 0.0, compute_s / e.nchw_straight
        memory_s += turned_s
        floor_s = self.card.kernel_floor_s or e.kernel_s
        seconds = (body + floor_s) * kernel.calls
        if floor_s > body:
            return KernelTime(seconds, "launch", "it is shorter than the time to start and end a kernel")
        if compute_s > memory_s:
            return KernelTime(seconds, "compute", reason)
        size = f"{kernel.moved_bytes / 1e6:.3g} MB"
        if kernel.product is not None or kernel.attention is not None:
            return KernelTime(seconds, "memory", f"moving {size} takes longer than the product")
        return KernelTime(seconds, "memory", f"{size} of memory traffic, {kernel.kind}")

    def rate(self, dtype: str) -> tuple[float, str]:
        """FLOP/s that large products in `dtype` hold, and on which unit."""
        if dtype not in self._rates:
            self._rates[dtype] = _sustained(self.card, self.efficiencies, dtype)
        return self._rates[dtype]

    def _compute(self, kernel: StepKernel) -> tuple[float, str]:
        if kernel.attention is not None:
            return self._attention(kernel, kernel.attention)
        if kernel.product is None:
            return 0.0, ""
        product = kernel.product
        if product.groups > 1 and product.way != "gemm" and product.channels <= 2:
            return 0.0, ""
        return self._product(kernel, product)

    def _product(self, kernel: StepKernel, product: Product) -> tuple[float, str]:
        e = self.efficiencies
        rate, unit = self.rate(kernel.dtype)
        batch, m, n, k = product.batch, product.m, product.n, product.k
        share, why = (e.ordinary if unit == "tensor" else e.ordinary_fp32), []
        if product.way != "gemm":
            convolved, said = self._convolved(product, kernel.dtype, unit)
            share, why = share * convolved, [said]
            if unit == "tensor":
                batch, m, n, k = _padded(product)
        elif unit == "tensor" and not product.aligned:
            # Narrow loads feed so many multiply-adds an SM and clock, whatever its tensor cores could do: a third of an
            # A100's, all that a GeForce card does.
            share *= min(1.0, e.misaligned * _FED_RATE / min(_FED_RATE, self.card.tensor_fma or _FED_RATE))
            why.append("rows are not aligned to 16 bytes")
        fed = min(1024, self.card.tensor_fma or 1024) if unit == "tensor" else _CUDA_RATE
        tiles = _tiled(batch, m, n, k, unit == "tensor", self.card.sm_count, e.prologue, fed)
        useful = 2.0 * product.batch * product.m * product.n * product.k
        seconds = tiles.padded_flops / (rate * share)
        split = f", k split into {tiles.split} parts" if tiles.split > 1 else ""
        why.append(
            f"{kernel.dtype} on {unit} cores, tiles of {tiles.m} × {tiles.n}{split}: "
            f"{100 * useful / tiles.padded_flops:.0f} % of them is useful work"
        )
        return seconds + tiles.split_bytes / (self.card.stream_byte_per_s(e) * e.l2_speedup), "; ".join(
            filter(None, why)
        )

    def _convolved(self, product: Product, dtype: str, unit: str) -> tuple[float, str]:
        e = self.efficiencies
        share = {"conv": e.conv, "dgrad": e.dgrad, "wgrad": e.wgrad}[product.way]
        if unit == "cuda":
            share *= e.conv_fp32 / e.conv
            if product.taps == 9 and not product.strided and product.groups == 1:
                return share * e.winograd, "3 × 3 with Winograd's algorithm"
            return share, ""
        if dtype == "tf32":
            share *= e.tf32_conv
        if product.way == "dgrad" and product.strided:
            share *= e.strided_dgrad
        if product.groups > 1:
            share *= e.grouped
        if not product.nhwc and product.taps > 1 and not self.compiled and dtype != "tf32":
            return share * e.nchw_conv, "NCHW"
        return share, ""

    def _memory(self, kernel: StepKernel) -> float:
        e, moved = self.efficiencies, kernel.moved_bytes
        share = e.stream[kernel.kind]
        product = kernel.product
        if product is not None and product.way != "gemm" and product.groups > 1 and product.channels <= 2:
            share *= e.depthwise if product.way == "conv" else e.depthwise_back
        if self.compiled and kernel.product is None and kernel.attention is None:
            share *= e.compiled_stream
        rate = self.card.stream_byte_per_s(e) * share
        room = e.l2_share * self.card.l2_bytes
        # What fits into the L2 was mostly left there by the kernel before.
        near = max(0.0, min(1.0, 2 * (1 - moved / room) if room else 0.0))
        return moved * ((1 - near) + near / e.l2_speedup) / rate

    def _turned(self, kernel: StepKernel) -> float:
        """Seconds of writing NCHW images in NHWC and back, which 16-bit kernels of tensor cores want.

        A forward window of one place is a plain product in NCHW too; gradients go through NHWC always.
        """
        product, e = kernel.product, self.efficiencies
        if product is None or product.way == "gemm" or product.nhwc or product.groups > 1 or self.compiled:
            return 0.0
        if kernel.dtype not in ("fp16", "bf16") or self.rate(kernel.dtype)[1] != "tensor":
            return 0.0
        if product.way == "conv" and product.taps == 1:
            return 0.0
        passes = e.nchw_passes if product.way == "conv" else e.nchw_back
        return 2 * passes * kernel.moved_bytes / (self.card.stream_byte_per_s(e) * e.stream["copy"])

    def _attention(self, kernel: StepKernel, attention: Attention) -> tuple[float, str]:
        e = self.efficiencies
        rate, unit = self.rate(kernel.dtype)
        share = e.attention[self.card.family] if unit == "tensor" else 0.5 * e.ordinary_fp32
        if attention.backward:
            share *= e.attention_back
        if attention.dim < 64:
            share *= attention.dim / 64
        return kernel.flops / (rate * share), f"fused attention at {100 * share:.0f} % of the rate of matrix products"


def _sustained(card: MachineCard, e: Efficiencies, dtype: str) -> tuple[float, str]:
    measured = dict(card.product_flop_per_s).get(dtype)
    unit, peak = card.peak(dtype)
    if card.key.startswith("RTX-") and "A" not in card.key and not card.key.startswith("RTX-6000"):
        peak *= e.geforce_clock
    if measured:
        return measured / (e.ordinary if unit == "tensor" else e.ordinary_fp32), unit
    best = (e.tensor if unit == "tensor" else e.cuda)[card.family]
    joules = (e.tensor_j if unit == "tensor" else e.cuda_j)[card.family]
    if unit == "tensor" and dtype == "tf32":
        joules *= 2  # twice the bits for each product
    wanted = best * peak * joules
    given = card.power_w * (1 - e.idle_share)
    if card.half_rate:
        wanted /= 1.5  # half of each tensor core is switched off, not all of its power
    return best * peak * min(1.0, given / wanted) ** e.power_exponent, unit


class Tiles(NamedTuple):
    """A product cut into tiles: the FLOPs that the machine's SMs spend, waves and padding included."""

    m: int
    n: int
    split: int
    padded_flops: float
    split_bytes: float


@lru_cache(maxsize=65536)
def _tiled(batch: int, m: int, n: int, k: int, tensor: bool, sms: int, prologue: float, rate: int) -> Tiles:
    best: Tiles | None = None
    cost = math.inf
    for rows, columns in _TENSOR_TILES if tensor else _CUDA_TILES:
        share = min(1.0, _FED_LOADS * _FED_RATE / rate / (1 / rows + 1 / columns)) ** _STARVED
        across = batch * -(-m // rows) * -(-n // columns)
        for split in _SPLITS:
            if split > 1 and (k / split < 128 or across * split > 4 * sms):
                break
            # Tiles of a wave share its SMs; the last wave is as long as a full one.
            waves = -(-across * split // sms)
            depth = k / split + prologue
            flops = waves * sms * 2.0 * rows * columns * depth / share
            again = 8.0 * batch * m * n * split if split > 1 else 0.0
            if flops + again * 50 < cost:
                cost, best = flops + again * 50, Tiles(rows, columns, split, flops, again)
    assert best is not None
    return best


def _padded(product: Product) -> tuple[int, int, int, int]:
    """A convolution's product with channels padded as tensor cores take them."""
    batch, m, n, k = product.batch, product.m, product.n, product.k
    if product.groups > 1:
        wide = max(1, _GROUP_CHANNELS // max(1, product.channels))
        groups = max(1, product.groups // wide)
        # Neighbouring groups share a product whose off-diagonal blocks are zeros.
        if product.way == "wgrad":
            return groups, m * wide, n * wide, k
        return groups, m, n * wide, k * wide
    if product.channels % 8:
        pad = -(-product.channels // 8) * 8 / product.channels
        if product.way == "wgrad":
            return batch, m, round(n * pad), k
        if product.way == "conv":
            return batch, m, n, round(k * pad)
    return batch, m, n, k


def together(compute_s: float, memory_s: float, p: float) -> float:
    longest = max(compute_s, memory_s)
    if longest <= 0:
        return 0.0
    return longest * (1 + (min(compute_s, memory_s) / longest) ** p) ** (1 / p)
