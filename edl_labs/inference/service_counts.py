"""What a service counts of itself, and the text that a monitor reads every few seconds: Prometheus' format."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from edl_labs.virtual.server import percentile

# Seconds, the usual ones of Prometheus' clients from 5 ms on; a histogram keeps one number a bound, however many come.
LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Histogram:
    """How many values were at most each of some bounds; the values themselves are not kept.

    >>> times = Histogram((0.01, 0.1))
    >>> for value in (0.004, 0.03, 0.05, 7.0):
    ...     times.add(value)
    >>> times.at_most, times.count, times.quantile_bound(0.5), times.quantile_bound(0.99)
    ([1, 3], 4, 0.1, inf)
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self._counts)

    @property
    def at_most(self) -> list[int]:
        """How many were at most each bound."""
        return [sum(self._counts[: at + 1]) for at in range(len(self.bounds))]

    def quantile_bound(self, share: float) -> float:
        """The smallest bound that at least this share of the values does not exceed; infinite where none is."""
        places = (at for at, count in enumerate(self._counts) for _ in range(count))
        place = percentile(places, share)
        return math.inf if place == len(self.bounds) else self.bounds[int(place)]

    def lines(self, name: str) -> Iterable[str]:
        """The histogram as lines of a metrics page."""
        for bound, count in zip(self.bounds, self.at_most, strict=True):
            yield f'{name}_bucket{{le="{bound:g}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {self.count}'
        yield f"{name}_sum {self.total:g}"
        yield f"{name}_count {self.count}"


class ServiceCounts:
    """Requests by status, latencies and batch sizes of a service that runs."""

    def __init__(self, max_batch: int) -> None:
        self.requests: Counter[int] = Counter()
        self.latency_s = Histogram(LATENCY_BOUNDS_S)
        powers = [2**power for power in range(max_batch.bit_length()) if 2**power < max_batch]
        self.batch_size = Histogram([*powers, max_batch])
        self.batch_sizes: list[int] = []

    def replied(self, status: int, latency_s: float) -> None:
        """Count a request that has been answered, or refused."""
        self.requests[status] += 1
        if status == 200:
            self.latency_s.add(latency_s)

    def ran(self, size: int) -> None:
        """Count a batch."""
        self.batch_size.add(size)
        self.batch_sizes.append(size)

    def as_text(self, queue_length: int) -> str:
        """The page of a metrics endpoint."""
        lines = [f'requests_total{{status="{status}"}} {count}' for status, count in sorted(self.requests.items())]
        lines.append(f"queue_length {queue_length}")
        lines += self.batch_size.lines("batch_size")
        lines += self.latency_s.lines("latency_seconds")
        return "\n".join(lines) + "\n"
