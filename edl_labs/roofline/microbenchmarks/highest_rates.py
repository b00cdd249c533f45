"""Highest rates of several kernels, timed in turn: a disturbance hits one round of all, not all rounds of one."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from edl_labs.clock import Clock
from edl_labs.errors import EdlError
from edl_labs.roofline.machine_ceilings import Ceiling
from edl_labs.roofline.microbenchmarks.kernels import Kernel

BLOCK_S = 3e-3  # a block's start and end cost microseconds: below a thousandth
BLOCKS = 3  # a disturbance seldom hits three in a row
# Six values hold the median that they come from with 97 %; sixty rounds are beyond any budget.
LEAST_ROUNDS, MOST_ROUNDS = 6, 60
_SPANNED = LEAST_ROUNDS
PRECISION = 0.005  # half of the 1 % within which a GPU's ceilings are to repeat


def best_of(kernels: Sequence[Kernel], clock: Clock) -> Kernel:
    """The candidate with the highest rate, from a few short blocks of each."""
    if not kernels:
        raise EdlError("no kernel to time", why="every candidate was refused", next="leave this dtype out")
    return max(kernels, key=lambda kernel: block_rate(kernel, clock))


def block_rate(kernel: Kernel, clock: Clock, *, calls: int | None = None, blocks: int = BLOCKS) -> float:
    """Amount per second in the fastest of a few blocks, each so long that its start does not matter."""
    count = calls_for(kernel, clock) if calls is None else calls
    return kernel.amount * count / min(_block_s(kernel, clock, count) for _ in range(blocks))


def calls_for(kernel: Kernel, clock: Clock) -> int:
    """How many calls make a block: one that was warm tells."""
    _block_s(kernel, clock, 1)
    once = max(_block_s(kernel, clock, 1), clock.resolution_s, 1e-9)
    return max(1, round(max(BLOCK_S, 100 * clock.resolution_s) / once))


def measure_all(
    kernels: Mapping[str, Kernel],
    clock: Clock,
    *,
    until_s: float,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Ceiling]:
    """A ceiling for each kernel, from rounds until the clock shows `until_s` (at least 6) or all are known to 0.5 %.

    Disturbances only ever slow a kernel down, so the best quarter of the rounds counts (at least three): its median is
    the ceiling, its interval the doubt.
    """
    calls = {name: calls_for(kernel, clock) for name, kernel in kernels.items()}
    rates: dict[str, list[float]] = {name: [] for name in kernels}
    for done in range(MOST_ROUNDS):
        for name, kernel in kernels.items():
            rates[name].append(block_rate(kernel, clock, calls=calls[name]))
        if progress:
            progress(done + 1, MOST_ROUNDS, "ceilings")
        if done + 1 >= LEAST_ROUNDS and (clock.now_s() > until_s or (done > 8 and _all_known(rates))):
            break
    return {name: ceiling(found, note=kernels[name].name) for name, found in rates.items()}


def ceiling(rates: Sequence[float], *, note: str = "") -> Ceiling:
    """The median of the best quarter of `rates`; its interval spans the best third, six rounds at least.

    The span of six values holds the median that they come from with 97 % (two times 2⁻⁶ are left).
    """
    ordered = sorted(rates)
    middle = statistics.median(ordered[-max(3, len(ordered) // 4) :])
    low = ordered[-max(_SPANNED, len(ordered) // 3) :][0]
    return Ceiling(middle, low, ordered[-1], note)


def _all_known(rates: Mapping[str, Sequence[float]]) -> bool:
    return all(ceiling(found).half_width < PRECISION for found in rates.values())


def _block_s(kernel: Kernel, clock: Clock, calls: int) -> float:
    clock.synchronize()
    start = clock.now_s()
    for _ in range(calls):
        kernel.run()
    clock.synchronize()
    return max(clock.now_s() - start, clock.resolution_s)
