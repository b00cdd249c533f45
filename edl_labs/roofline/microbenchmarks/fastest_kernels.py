"""The search for what is worth a careful look: a sweep of working sets, the fastest kernel of each level and dtype."""

from __future__ import annotations

import math
from collections.abc import Mapping

from edl_labs.clock import AcceleratorClock, Clock
from edl_labs.device import Device
from edl_labs.errors import EdlError
from edl_labs.roofline.microbenchmarks import memory_levels
from edl_labs.roofline.microbenchmarks.highest_rates import best_of, block_rate
from edl_labs.roofline.microbenchmarks.kernels import STREAMS, Kernel, Workers, memory_kernels, product_kernel

# Small enough for the slowest processor, large enough that a product is more than its call.
_PROBE = (128, 128, 128)
_LONGEST_PRODUCT_S = 0.04  # six rounds of three blocks of it stay below a second
# From what fits in L2 to what a core takes tens of milliseconds for; rates hardly rise beyond.
_CPU_SIDES = (256, 384, 512, 768, 1024, 1536, 2048)
# Large powers of two, at which a GPU comes closest to its peak; the search takes the fastest.
_GPU_SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 4096), (8192, 8192, 8192), (16384, 8192, 8192))


def sweep(
    stamp: Device, clock: Clock, workers: Workers | None, *, largest_bytes: int
) -> dict[str, list[tuple[int, float]]]:
    """Rate by working set for each pattern, quickly: which sizes are worth a careful look."""
    smallest = (16 << 10) * workers.count if workers is not None else 4 << 20
    found: dict[str, list[tuple[int, float]]] = {pattern: [] for pattern in STREAMS}
    for size in memory_levels.sizes(largest_bytes, smallest_bytes=smallest):
        for pattern in STREAMS:
            candidates = memory_kernels(pattern, size, device=stamp.device, workers=workers)
            found[pattern].append(
                (size, max(block_rate(_ready(kernel, stamp, clock), clock, blocks=2) for kernel in candidates))
            )
    return found


def fastest_memory_kernels(
    stamp: Device,
    clock: Clock,
    workers: Workers | None,
    *,
    capacities: list[tuple[str, float]],
    sweep: Mapping[str, list[tuple[int, float]]],
) -> dict[str, Kernel]:
    """For each level and pattern the fastest kernel, at the working set of that level that was fastest in the sweep."""
    chosen = {}
    for name in [*(name for name, _ in capacities), "main"]:
        for pattern, points in sweep.items():
            size = _best_size(points, capacities, name)
            if size is not None:
                candidates = memory_kernels(pattern, size, device=stamp.device, workers=workers)
                ready = [_ready(kernel, stamp, clock) for kernel in candidates]
                chosen[f"{name} {pattern}"] = best_of(ready, clock)
    return chosen


def _best_size(points: list[tuple[int, float]], capacities: list[tuple[str, float]], name: str) -> int | None:
    if name == "main":
        # Well beyond the last cache: what is left of it there would flatter main memory.
        last = capacities[-1][1] if capacities else 0.0
        low, high = min(4 * last, points[-1][0]), math.inf
    else:
        low, high = memory_levels.within(capacities, name)
    inside = [(rate, size) for size, rate in points if low <= size <= high]
    return max(inside)[1] if inside else None


def _ready(kernel: Kernel, stamp: Device, clock: Clock) -> Kernel:
    """On CUDA, many calls in one graph: launches would otherwise be what is timed."""
    if stamp.kind != "cuda":
        return kernel
    from edl_labs.bench.timing.cuda_graph import captured

    calls = max(1, min(64, int(1e9 / kernel.amount)))

    def several() -> None:
        for _ in range(calls):
            kernel.run()

    replay = captured(several, None, AcceleratorClock(stamp.device))
    return Kernel(kernel.name, kernel.amount * calls, replay)


def fastest_products(device: str, dtypes: tuple[str, ...], clock: Clock) -> tuple[dict[str, Kernel], dict[str, str]]:
    """The fastest shape for each dtype, and why dtypes are missing."""
    found: dict[str, Kernel] = {}
    refused: dict[str, str] = {}
    for dtype in dtypes:
        try:
            found[dtype] = _product(dtype, device, clock)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
            refused[dtype] = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
    if not found:
        raise EdlError(
            f"{device} multiplied no matrices",
            why="; ".join(f"{dtype}: {why}" for dtype, why in refused.items()),
            next="give dtypes= that torch has kernels for here, such as ['fp32']",
        )
    return found, refused


def _product(dtype: str, device: str, clock: Clock) -> Kernel:
    best = product_kernel(dtype, _PROBE, device=device)
    rate = block_rate(best, clock)
    shapes = [(side, side, side) for side in _CPU_SIDES] if device == "cpu" else _GPU_SHAPES
    for place, (m, n, k) in enumerate(shapes):
        # The probe may be all launch: only a real shape tells how long the next one takes.
        if place and 2.0 * m * n * k / rate > _LONGEST_PRODUCT_S:
            break
        try:
            kernel = product_kernel(dtype, (m, n, k), device=device)
            now = block_rate(kernel, clock, blocks=2)
        except RuntimeError:
            # Out of memory, most likely: the shapes before it stand. Without any, the dtype has no ceiling.
            if not place:
                raise
            break
        if now > rate:
            best, rate = kernel, now
    return best
