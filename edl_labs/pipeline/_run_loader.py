"""`run_loader`: how many samples a second a loader gives in the steady state, and when its first batch comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from edl_labs import stats
from edl_labs.arguments import checked_arguments, require_positive
from edl_labs.errors import UsageError
from edl_labs.pipeline._feed import feed
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class LoaderRun(Value):
    """What a loader did: samples a second in the steady state, and the time until its first batch."""

    workers: int
    batch_size: int
    sample_per_s: float
    low_per_s: float
    high_per_s: float
    first_batch_s: float
    batches: int
    waited_share: float


@checked_arguments()
def run_loader(
    dataset: Sized,
    *,
    batch_size: int,
    workers: int,
    step: Callable[[Any], Any] | None = None,
    collate: Callable[[Any], Any] | None = None,
    seconds: float = 2.0,
    limit_s: float = 60.0,
    prefetch: int = 2,
    start_method: str | None = None,
) -> LoaderRun:
    """The `LoaderRun` of feeding `dataset`, again and again, to `step` (nothing unless given) for about `seconds`.

    The first batches, which fill queues and caches, do not count.
    """
    require_positive(seconds=seconds, limit_s=limit_s)
    if not len(dataset) or batch_size < 1:
        raise UsageError(
            f"cannot run a loader on {len(dataset)} samples with batch_size={batch_size}",
            why="a batch needs at least one sample",
            next="pass a data set that is not empty, and a batch_size of 1 or more",
        )
    warm = max(4, 2 * workers * prefetch)
    begin = time.perf_counter()
    source = feed(
        dataset,
        batches=_endless(len(dataset), batch_size, least=warm + 8, seconds=seconds),
        workers=workers,
        collate=collate,
        limit_s=limit_s,
        prefetch=prefetch,
        start_method=start_method,
    )
    first_s, ends, waits = _watched(source, begin, step=step, warm=warm, seconds=seconds)
    rates = _rates(ends, batch_size, max(1, workers))
    estimate = stats.median_interval(rates)
    total = (len(ends) - 1) * batch_size / (ends[-1] - ends[0])
    return LoaderRun(
        workers=workers,
        batch_size=batch_size,
        sample_per_s=total,
        low_per_s=max(0.0, min(estimate.low, total)),
        high_per_s=max(estimate.high, total),
        first_batch_s=first_s,
        batches=len(ends),
        waited_share=sum(waits[1:]) / (ends[-1] - ends[0]),
    )


def _watched(
    source: Any, begin: float, *, step: Callable[[Any], Any] | None, warm: int, seconds: float
) -> tuple[float, list[float], list[float]]:
    """Time to the first batch, and after `warm` batches the ends of steps and the waits before them."""
    ends: list[float] = []
    waits: list[float] = []
    first_s = 0.0
    try:
        last = time.perf_counter()
        for number, batch in enumerate(source):
            now = time.perf_counter()
            first_s = first_s or now - begin
            if step is not None:
                step(batch)
            if number >= warm - 1:
                ends.append(time.perf_counter())
                waits.append(now - last)
            last = time.perf_counter()
            if len(ends) > 8 and ends[-1] - ends[0] > seconds:
                break
    finally:
        source.close()
    return first_s, ends, waits


def _rates(ends: list[float], batch_size: int, workers: int) -> list[float]:
    # Workers deliver in bursts: a block holds several rounds of all of them.
    size = max(workers, (len(ends) - 1) // 12, 1)
    marks = ends[::size]
    return [size * batch_size / (b - a) for a, b in pairwise(marks) if b > a] or [0.0]


def _endless(samples: int, batch_size: int, *, least: int, seconds: float) -> list[list[int]]:
    # DataLoader wants all batches at the start; nothing real makes more than 3000 a second.
    starts = range(least + int(3000 * seconds))
    return [[(start * batch_size + n) % samples for n in range(batch_size)] for start in starts]
