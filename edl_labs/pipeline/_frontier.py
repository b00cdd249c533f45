"""Packing samples into rows, how random batches are, and the frontier of batching: waste, randomness, throughput."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.pipeline.batching import (
    Batches,
    Waste,
    bucket_batches,
    budget_batches,
    checked_batches,
    checked_lengths,
    positive,
    random_batches,
    refuse_longer,
    waste,
)
from edl_labs.presenters import Plottable
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Packing(Value):
    """Samples in rows of `capacity` tokens; `comparisons` is how often the search compared a length with a room.

    `real_pairs` are the pairs of tokens inside one sample: what attention needs, where a mask keeps samples apart.
    """

    bins: tuple[tuple[int, ...], ...]
    capacity: int
    real_tokens: int
    longest_bin_tokens: int
    comparisons: int
    real_pairs: int

    @property
    def waste(self) -> Waste:
        """The waste of computing every row at its full capacity."""
        samples = sum(map(len, self.bins))
        computed = self.capacity * len(self.bins)
        attended = computed * self.capacity
        largest = self.capacity if self.bins else 0
        return Waste(len(self.bins), samples, self.real_tokens, computed, largest, self.real_pairs, attended)


@checked_arguments()
def pack(lengths: Iterable[int], capacity: int) -> Packing:
    """First-fit-decreasing: the longest first, each into the first row that has room; at most 11/9 of the best + 6/9.

    A tree of maxima finds that row in log2(n) comparisons (Johnson 1973). Equal lengths keep their order. UsageError
    names a sample longer than `capacity`.

    >>> pack([4, 8, 1, 4, 2, 1], 10).bins
    ((1, 4), (0, 3, 2, 5))
    """
    sizes = checked_lengths(lengths)
    capacity = positive(capacity, "capacity")
    refuse_longer(sizes, capacity, what="a row")
    rooms = _Rooms(len(sizes), capacity)
    bins: list[list[int]] = []
    for sample in sorted(range(len(sizes)), key=lambda sample: -sizes[sample]):
        place = rooms.take(sizes[sample])
        if place == len(bins):
            bins.append([])
        bins[place].append(sample)
    filled = (sum(sizes[sample] for sample in row) for row in bins)
    longest, pairs = max(filled, default=0), sum(size**2 for size in sizes)
    return Packing(tuple(map(tuple, bins)), capacity, sum(sizes), longest, rooms.comparisons, pairs)


class _Rooms:
    """The room left in each row, in a tree of maxima; rows not opened yet have all of it."""

    def __init__(self, rows: int, capacity: int) -> None:
        self.leaves = 1 << max(0, rows - 1).bit_length()
        self.room = [capacity] * (2 * self.leaves)
        self.comparisons = 0

    def take(self, size: int) -> int:
        """Put `size` into the first row that has room, and say which."""
        room, node = self.room, 1
        while node < self.leaves:
            self.comparisons += 1
            node *= 2
            node += room[node] < size
        room[node] -= size
        place = node - self.leaves
        while node > 1:
            node //= 2
            room[node] = max(room[2 * node], room[2 * node + 1])
        return place


@dataclass(frozen=True, repr=False)
class Shuffling(Value):
    """Three ways in which an epoch can fail to be random, each 1 at its best and 0 at its worst.

    `within`: whether a batch holds all lengths (1 - the correlation ratio of length ranks over batches, divided by what
    random batches have). `order`: whether neighbouring batches differ (1 - the size of the lag-1 autocorrelation of
    their mean ranks). `fresh`: with a second epoch, the share of pairs of a batch that do not meet again, less chance;
    None without one. `permutation`: whether each sample occurs exactly once.
    """

    within: float
    order: float
    fresh: float | None
    permutation: bool


@checked_arguments()
def shuffling(
    lengths: Iterable[int], batches: Iterable[Iterable[int]], *, next_epoch: Iterable[Iterable[int]] | None = None
) -> Shuffling:
    """The `Shuffling` of an epoch's batches, and against `next_epoch` where there is one.

    >>> shuffling([1, 2, 3, 4], [[0, 1], [2, 3]]).within < shuffling([1, 2, 3, 4], [[0, 3], [1, 2]]).within
    True
    """
    import numpy as np

    sizes = checked_lengths(lengths)
    rows = checked_batches(batches, len(sizes))
    if not rows:
        raise UsageError(
            "the epoch has no batches",
            why="randomness is measured on the batches of an epoch",
            next="pass the batches of an epoch",
        )
    ranks = _ranks(np.asarray(sizes, dtype=float))
    means = np.array([ranks[row].mean() for row in rows])
    again = None if next_epoch is None else checked_batches(next_epoch, len(sizes))
    return Shuffling(
        within=_within(ranks, rows, means),
        order=_order(means),
        fresh=None if again is None else _fresh(rows, again, len(sizes)),
        permutation=sorted(sample for row in rows for sample in row) == list(range(len(sizes))),
    )


def _ranks(x: Any) -> Any:
    import numpy as np

    # Mean ranks: equal lengths are equally far apart from everything.
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def _within(ranks: Any, rows: list[list[int]], means: Any) -> float:
    import numpy as np

    everything = np.concatenate([ranks[row] for row in rows])
    total = float(((everything - everything.mean()) ** 2).sum())
    n, k = len(everything), len(rows)
    if total == 0 or k >= n or k == 1:
        return 1.0
    between = sum(len(row) * (mean - everything.mean()) ** 2 for row, mean in zip(rows, means, strict=True))
    expected = (k - 1) / (n - 1)
    return float(min(1.0, max(0.0, (1 - between / total) / (1 - expected))))


def _order(means: Any) -> float:
    centred = means - means.mean()
    power = float(centred @ centred)
    if len(means) < 4 or power == 0:
        return 1.0
    return float(max(0.0, 1 - abs(float(centred[1:] @ centred[:-1]) / power)))


def _fresh(rows: list[list[int]], again: list[list[int]], samples: int) -> float:
    place = {sample: number for number, row in enumerate(again) for sample in row}
    met = pairs = 0
    for row in rows:
        counts: dict[int, int] = {}
        for sample in row:
            if sample in place:
                counts[place[sample]] = counts.get(place[sample], 0) + 1
        met += sum(count * (count - 1) // 2 for count in counts.values())
        pairs += len(row) * (len(row) - 1) // 2
    if not pairs:
        return 1.0
    chance = sum(len(row) * (len(row) - 1) for row in again) / max(1, samples * (samples - 1))
    return float(min(1.0, max(0.0, (1 - met / pairs) / (1 - chance)))) if chance < 1 else 1.0


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
class Frontier(Value, Plottable):
    """All points of a set of lengths."""

    ROWS = "points"

    points: tuple[FrontierPoint, ...]

    @property
    def best(self) -> tuple[FrontierPoint, ...]:
        """The points that no other point beats in waste, randomness and throughput at the same time."""
        return tuple(p for p in self.points if not any(_beats(q, p) for q in self.points))


def token_time(*, token_s: float = 1e-6, overhead_s: float = 2e-3) -> StepTime:
    """A step whose time is an overhead and a price for each computed token, padding included."""
    return lambda rows, width: overhead_s + token_s * rows * width


@checked_arguments()
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
