"""The search for what is worth a careful look: memory levels, a sweep of working sets, the fastest kernel of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from edl_labs.clock import AcceleratorClock, Clock
from edl_labs.device import Device
from edl_labs.errors import EdlError
from edl_labs.roofline.microbenchmarks.kernels import (
    STREAMS,
    Kernel,
    Workers,
    best_of,
    block_rate,
    memory_kernels,
    product_kernel,
)

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_STEP = 0.75  # neighbouring levels differ by more than a quarter, noise and patterns within one by less
# Small enough for the slowest processor, large enough that a product is more than its call.
_PROBE = (128, 128, 128)
_LONGEST_PRODUCT_S = 0.04  # six rounds of three blocks of it stay below a second
# From what fits in L2 to what a core takes tens of milliseconds for; rates hardly rise beyond.
_CPU_SIDES = (256, 384, 512, 768, 1024, 1536, 2048)
# Large powers of two, at which a GPU comes closest to its peak; the search takes the fastest.
_GPU_SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 4096), (8192, 8192, 8192), (16384, 8192, 8192))


def host_caches(threads: int, *, root: str = "/sys/devices/system/cpu") -> list[tuple[str, int]]:
    """Name and bytes of each cache level that `threads` cores have together, nearest first; [] where it is not told.

    A private cache counts once for each core, a shared one once for each group of cores that shares it.
    """
    found: dict[int, int] = {}
    for index in sorted(Path(root, "cpu0", "cache").glob("index*")):
        if _text(index / "type") == "Instruction":
            continue
        size, level = _bytes(_text(index / "size")), _text(index / "level")
        if size and level.isdigit():
            sharers = max(1, _cores(_text(index / "shared_cpu_list")))
            found[int(level)] = size * max(1, -(-threads // sharers))
    deepest = max(found, default=0)
    return [("LLC" if level == deepest and level > 2 else f"L{level}", found[level]) for level in sorted(found)]


def steps(sweep: Sequence[tuple[float, float]]) -> list[int]:
    """The sizes after which the rate falls to a lower plateau: cache capacities as a sweep shows them.

    `sweep` holds (bytes, rate), sizes rising. A step is where the rate leaves the plateau's best by a quarter and stays
    below.

    >>> steps([(1, 100), (2, 98), (4, 50), (8, 51), (16, 10), (32, 10)])
    [2, 8]
    """
    found: list[int] = []
    best = 0.0
    for place, (_, rate) in enumerate(sweep):
        rest = [later for _, later in sweep[place:]]
        if best and max(rest) < _STEP * best:
            found.append(int(sweep[place - 1][0]))
            best = 0.0
        best = max(best, rate)
    return found


def sizes(largest_bytes: int, *, smallest_bytes: int = 16 << 10) -> list[int]:
    """Working sets for a sweep, from `smallest_bytes` to `largest_bytes`, two for each doubling.

    >>> sizes(128 << 10)[:4]
    [16384, 24576, 32768, 49152]
    """
    found, size = [], smallest_bytes
    while size <= largest_bytes:
        found += [size, size * 3 // 2]
        size *= 2
    return [size for size in found if size <= largest_bytes]


def within(capacities: Sequence[tuple[str, float]], name: str) -> tuple[float, float]:
    """The working sets that belong to one level alone: above what the nearer ones hold, below what it holds."""
    names = [level for level, _ in capacities]
    place = names.index(name)
    nearer = capacities[place - 1][1] if place else 0
    return 1.5 * nearer, 0.75 * capacities[place][1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    number = text.rstrip("KMG")
    return int(number) * _UNITS.get(text[-1:], 1) if number.isdigit() else 0


def _cores(text: str) -> int:
    """How many cores a list such as '0-3,8' names."""
    count = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def sweep(
    stamp: Device, clock: Clock, workers: Workers | None, *, largest_bytes: int
) -> dict[str, list[tuple[int, float]]]:
    """Rate by working set for each pattern, quickly: which sizes are worth a careful look."""
    smallest = (16 << 10) * workers.count if workers is not None else 4 << 20
    found: dict[str, list[tuple[int, float]]] = {pattern: [] for pattern in STREAMS}
    for size in sizes(largest_bytes, smallest_bytes=smallest):
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
        low, high = within(capacities, name)
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
