"""First-fit-decreasing packing in O(n log n), and the arrays and masks that keep packed samples apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.pipeline.batching import Waste, checked_batches, checked_lengths, positive, refuse_longer
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


def pack_arrays(
    samples: Sequence[Any], bins: Iterable[Iterable[int]], *, capacity: int, pad: int = 0
) -> dict[str, Any]:
    """Packed rows: `tokens`, `segments` (1, 2, ... by sample, 0 for padding) and `positions` within a sample.

    >>> pack_arrays([[7, 8], [9]], [[0, 1]], capacity=4)["segments"].tolist()
    [[1, 1, 2, 0]]
    """
    import numpy as np

    rows = checked_batches(bins, len(samples))
    sizes = checked_lengths(len(sample) for sample in samples)
    _refuse_overfull(rows, sizes, capacity)
    tokens = np.full((len(rows), capacity), pad, dtype=np.int64)
    segments, positions = np.zeros_like(tokens), np.zeros_like(tokens)
    for place, row in enumerate(rows):
        start = 0
        for number, sample in enumerate(row, start=1):
            here = slice(start, start + sizes[sample])
            tokens[place, here], segments[place, here] = samples[sample], number
            positions[place, here] = np.arange(sizes[sample])
            start += sizes[sample]
    return {"tokens": tokens, "segments": segments, "positions": positions}


def segment_mask(segments: Any, *, causal: bool = False) -> Any:
    """Which token may attend to which: bool of shape (..., n, n), true inside one sample, never from or to padding.

    >>> segment_mask([1, 1, 2, 0]).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    """
    import numpy as np

    rows = np.asarray(segments)
    allowed = (rows[..., :, None] == rows[..., None, :]) & (rows[..., :, None] > 0)
    if causal:
        allowed &= np.tri(rows.shape[-1], dtype=bool)
    return allowed


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


def _refuse_overfull(rows: list[list[int]], sizes: list[int], capacity: int) -> None:
    for place, row in enumerate(rows):
        total = sum(sizes[sample] for sample in row)
        if total > capacity:
            raise UsageError(
                f"row {place} holds {total:,} tokens, its samples are {row[:8]}",
                why=f"a row has room for {capacity:,}",
                next="pack(lengths, capacity) makes rows that fit",
            )
