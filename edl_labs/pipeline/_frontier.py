"""The frontier of batching: waste against randomness against throughput, for a set of lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from edl_labs.pipeline._pack import pack
from edl_labs.pipeline._shuffling import shuffling
from edl_labs.pipeline._waste import Waste, waste
from edl_labs.pipeline.batch_arguments import checked_lengths
from edl_labs.pipeline.batching import Batches, bucket_batches, budget_batches, random_batches
from edl_labs.values import Value

# Seconds of a step on (rows, width) tokens.
StepTime = Callable[[int, int], float]


@dataclass(frozen=True, repr=False)
class FrontierPoint(Value):
    """One way to batch: how much is padding, how random the batches are, and what a step's cost makes of it."""

    method: str
    window: int
    waste: Waste
    randomness: float
    epoch_s: float
    sample_per_s: float


@dataclass(frozen=True, repr=False)
class Frontier(Value):
    """All points of a set of lengths."""

    ROWS = "points"

    points: tuple[FrontierPoint, ...]

    @property
    def best(self) -> tuple[FrontierPoint, ...]:
        """The points that no other one beats in waste, randomness and throughput at once."""
        return tuple(p for p in self.points if not any(_beats(q, p) for q in self.points))


def token_time(*, token_s: float = 1e-6, overhead_s: float = 2e-3) -> StepTime:
    """A step whose time is an overhead and a price for each computed token, padding included."""
    return lambda rows, width: overhead_s + token_s * rows * width


def frontier(
    lengths: Iterable[int],
    *,
    batch_size: int = 32,
    max_tokens: int | None = None,
    capacity: int | None = None,
    windows: Sequence[int] = (1, 2, 5, 10, 20, 50, 100, 400),
    step_s: StepTime | None = None,
    seed: int = 0,
) -> Frontier:
    """The `Frontier` over windows of `windows` batches: buckets, and budgets and packing where a size is given.

    `max_tokens` is the budget of a batch, `capacity` the length of a packed row (`batch_size` rows a step); `step_s`
    prices a step (a `token_time` unless given; a measured one is better).
    """
    sizes = checked_lengths(lengths)
    price = token_time() if step_s is None else step_s
    widest = -(-len(sizes) // batch_size)
    chosen = sorted({min(window, widest) for window in windows})
    points = [
        _padded("buckets", w, sizes, bucket_batches(sizes, batch_size, window=w, seed=seed), price) for w in chosen
    ]
    if max_tokens is not None:
        for w in chosen:
            batches = budget_batches(sizes, max_tokens, window=w * batch_size, seed=seed)
            points.append(_padded("budget", w, sizes, batches, price))
    if capacity is not None:
        points += [_packed(w, sizes, capacity, rows=batch_size, price=price, seed=seed) for w in chosen]
    return Frontier(tuple(points))


def _padded(method: str, window: int, sizes: list[int], batches: Batches, price: StepTime) -> FrontierPoint:
    epoch_s = sum(price(len(batch), max(sizes[s] for s in batch)) for batch in batches)
    mixed = shuffling(sizes, batches).within
    return FrontierPoint(method, window, waste(sizes, batches), mixed, epoch_s, len(sizes) / epoch_s)


def _packed(window: int, sizes: list[int], capacity: int, *, rows: int, price: StepTime, seed: int) -> FrontierPoint:
    import random

    bins: list[tuple[int, ...]] = []
    for part in random_batches(len(sizes), window * rows, seed=seed):
        packed = pack([sizes[sample] for sample in part], capacity)
        bins += [tuple(part[place] for place in row) for row in packed.bins]
    random.Random(seed).shuffle(bins)
    groups = [bins[start : start + rows] for start in range(0, len(bins), rows)]
    epoch_s = sum(price(len(group), capacity) for group in groups)
    batches = [[sample for row in group for sample in row] for group in groups]
    computed, real = capacity * len(bins), sum(sizes)
    pairs = sum(size**2 for size in sizes)
    largest = capacity * max(map(len, groups), default=0)
    figures = Waste(len(groups), len(sizes), real, computed, largest, pairs, computed * capacity)
    return FrontierPoint("packing", window, figures, shuffling(sizes, batches).within, epoch_s, len(sizes) / epoch_s)


def _beats(one: FrontierPoint, other: FrontierPoint) -> bool:
    pairs = (
        (-one.waste.fraction, -other.waste.fraction),
        (one.randomness, other.randomness),
        (one.sample_per_s, other.sample_per_s),
    )
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
