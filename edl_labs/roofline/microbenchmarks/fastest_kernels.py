"""The search for what is worth a careful look: memory levels, a sweep of working sets, the fastest kernel of each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from edl_labs.clock import AcceleratorClock, Clock
from edl_labs.device import Device
from edl_labs.errors import EdlError
from edl_labs.roofline.microbenchmarks.kernels import (
    STREAMS,
    TimedKernel,
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
    """Name and bytes of each cache level that `threads` cores have together, nearest first; [] where unknown.

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


class SweepPoint(NamedTuple):
    """One working set of a sweep: its bytes, the highest rate over it, and the name of the kernel that reached it."""

    size_bytes: int
    rate: float
    kernel: str


Sweep = Mapping[str, Sequence[SweepPoint]]


def working_sets(capacities: Sequence[tuple[str, float]], *, smallest_bytes: int, largest_bytes: int) -> list[int]:
    """The sizes worth a look: all where no cache is known, else three inside each cache and one well beyond the last.

    >>> working_sets([("L1", 64 << 10), ("LLC", 1 << 20)], smallest_bytes=16 << 10, largest_bytes=8 << 20)
    [16384, 32768, 49152, 98304, 262144, 786432, 4194304]
    """
    every = sizes(largest_bytes, smallest_bytes=smallest_bytes)
    if not capacities:
        return every
    chosen: list[int] = []
    for name, _ in capacities:
        low, high = within(capacities, name)
        inside = [size for size in every if low <= size <= high]
        chosen += {inside[0], inside[len(inside) // 2], inside[-1]} if inside else ()
    beyond = [size for size in every if size >= _beyond(capacities, every[-1])]
    return sorted({*chosen, beyond[0]})


def sweep(stamp: Device, clock: Clock, workers: Workers | None, *, working_sets: Sequence[int]) -> Sweep:
    """Rate by working set for each pattern, quickly: which sizes and kernels are worth a careful look."""
    found: dict[str, list[SweepPoint]] = {pattern: [] for pattern in STREAMS}
    for size in working_sets:
        for pattern in STREAMS:
            candidates = memory_kernels(pattern, size, device=stamp.device, workers=workers)
            kernel, rate = best_of([_ready(one, stamp, clock) for one in candidates], clock, blocks=2)
            found[pattern].append(SweepPoint(size, rate, kernel.name))
    return found


def fastest_memory_kernels(
    stamp: Device,
    clock: Clock,
    workers: Workers | None,
    *,
    capacities: list[tuple[str, float]],
    sweep: Sweep,
) -> dict[str, TimedKernel]:
    """For each level and pattern the kernel and the working set that were fastest in the sweep."""
    chosen = {}
    for name in [*(name for name, _ in capacities), "main"]:
        for pattern, points in sweep.items():
            point = _best_point(points, capacities, name)
            if point is not None:
                candidates = memory_kernels(
                    pattern, point.size_bytes, device=stamp.device, workers=workers, named=point.kernel
                )
                kernel = next(kernel for kernel in candidates if kernel.name == point.kernel)
                chosen[f"{name} {pattern}"] = _ready(kernel, stamp, clock)
    return chosen


def _best_point(points: Sequence[SweepPoint], capacities: list[tuple[str, float]], name: str) -> SweepPoint | None:
    low, high = (_beyond(capacities, points[-1].size_bytes), math.inf) if name == "main" else within(capacities, name)
    inside = [point for point in points if low <= point.size_bytes <= high]
    return max(inside, key=lambda point: (point.rate, point.size_bytes)) if inside else None


def _beyond(capacities: Sequence[tuple[str, float]], largest_bytes: int) -> float:
    """From where main memory counts: what is left of the last cache nearer to it would flatter it."""
    return min(4 * capacities[-1][1] if capacities else 0.0, largest_bytes)


def _ready(kernel: TimedKernel, stamp: Device, clock: Clock) -> TimedKernel:
    """On CUDA, many calls in one graph: launches would otherwise be what is timed."""
    if stamp.kind != "cuda":
        return kernel
    from edl_labs.bench.timing.cuda_graph import captured

    calls = max(1, min(64, int(1e9 / kernel.amount)))

    def several() -> None:
        for _ in range(calls):
            kernel.run()

    replay = captured(several, None, AcceleratorClock(stamp.device))
    return TimedKernel(kernel.name, kernel.amount * calls, replay)


def fastest_products(
    device: str, dtypes: tuple[str, ...], clock: Clock, *, until_s: float = math.inf
) -> tuple[dict[str, TimedKernel], dict[str, str]]:
    """The fastest shape for each dtype, and why dtypes are missing; no larger shape is begun past a dtype's share."""
    found: dict[str, TimedKernel] = {}
    refused: dict[str, str] = {}
    for place, dtype in enumerate(dtypes):
        share_s = (until_s - clock.now_s()) / (len(dtypes) - place)
        try:
            found[dtype] = _product(dtype, device, clock, until_s=clock.now_s() + share_s)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
            refused[dtype] = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
    if not found:
        raise EdlError(
            f"{device} could not multiply matrices",
            why="; ".join(f"{dtype}: {why}" for dtype, why in refused.items()),
            next="pass only dtypes for which torch has kernels here, such as dtypes=['fp32']",
        )
    return found, refused


def _product(dtype: str, device: str, clock: Clock, *, until_s: float = math.inf) -> TimedKernel:
    best = product_kernel(dtype, _PROBE, device=device)
    rate = block_rate(best, clock)
    shapes = [(side, side, side) for side in _CPU_SIDES] if device == "cpu" else _GPU_SHAPES
    for place, (m, n, k) in enumerate(shapes):
        # The probe may be all launch: only a real shape tells how long the next one takes.
        if place and (2.0 * m * n * k / rate > _LONGEST_PRODUCT_S or clock.now_s() > until_s):
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
