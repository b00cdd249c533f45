"""Ways to cut an epoch into batches: at random, in buckets of like length, under a budget of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.pipeline.batch_arguments import checked_lengths, positive, refuse_longer

Batches = list[list[int]]


def random_batches(samples: int, batch_size: int, *, seed: int = 0, epoch: int = 0) -> Batches:
    """An epoch in random order, cut into batches; each sample once, the same for the same seed and epoch."""
    order = _shuffled(samples, seed, epoch)
    return _cut(order, positive(batch_size, "batch_size"))


def bucket_batches(
    lengths: Iterable[int], batch_size: int, *, window: int = 50, seed: int = 0, epoch: int = 0
) -> Batches:
    """An epoch in which a batch holds samples of like length: windows of `window` batches are sorted, then cut.

    The epoch is shuffled, cut into windows, each window sorted by length and cut into batches, and the batches are
    shuffled: a window of 1 batch is random batching, one of the whole epoch sorts everything.

    >>> batches = bucket_batches([5, 1, 4, 2], 2, window=2)
    >>> sorted(map(sorted, batches))
    [[0, 2], [1, 3]]
    """
    sizes = checked_lengths(lengths)
    batch_size, window = positive(batch_size, "batch_size"), positive(window, "window")
    rng = random.Random(f"{seed}/{epoch}")
    batches: Batches = []
    for part in _sorted_windows(sizes, window * batch_size, rng):
        batches += _cut(part, batch_size)
    rng.shuffle(batches)
    return batches


def budget_batches(
    lengths: Iterable[int], max_tokens: int, *, window: int = 2000, multiple: int = 1, seed: int = 0, epoch: int = 0
) -> Batches:
    """An epoch in batches of at most `max_tokens` computed tokens (rows times the longest, rounded up to `multiple`).

    `window` samples are sorted together. UsageError names a sample that alone is over the budget.
    """
    sizes = checked_lengths(lengths)
    max_tokens, window, multiple = (
        positive(max_tokens, "max_tokens"),
        positive(window, "window"),
        positive(multiple, "multiple"),
    )
    padded = [-(-size // multiple) * multiple for size in sizes]
    refuse_longer(padded, max_tokens, what="the budget")
    rng = random.Random(f"{seed}/{epoch}")
    batches: Batches = []
    for part in _sorted_windows(sizes, window, rng):
        batches += _filled(part, padded, max_tokens)
    rng.shuffle(batches)
    return batches


def pad_collate(samples: Sequence[Any], *, pad: int = 0, multiple: int = 1) -> dict[str, Any]:
    """A batch of token sequences as rectangles: `tokens` and `mask` (int64 and bool arrays), and `lengths`.

    >>> pad_collate([[1, 2, 3], [4]])["tokens"].tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    import numpy as np

    if not len(samples):
        raise UsageError(
            "an empty batch cannot be padded", why="it is padded to its longest sample", next="leave empty batches out"
        )
    sizes = checked_lengths(len(sample) for sample in samples)
    width = -(-max(sizes) // positive(multiple, "multiple")) * multiple
    tokens = np.full((len(samples), width), pad, dtype=np.int64)
    mask = np.arange(width) < np.asarray(sizes)[:, None]
    tokens[mask] = np.concatenate([np.asarray(sample, dtype=np.int64) for sample in samples])
    return {"tokens": tokens, "mask": mask, "lengths": np.asarray(sizes)}


def _shuffled(samples: int, seed: int, epoch: int) -> list[int]:
    order = list(range(positive(samples, "samples")))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


def _sorted_windows(sizes: list[int], window: int, rng: random.Random) -> Iterator[list[int]]:
    order = list(range(len(sizes)))
    rng.shuffle(order)
    for part in _cut(order, window):
        yield sorted(part, key=sizes.__getitem__)


def _cut(order: list[int], size: int) -> Batches:
    return [order[start : start + size] for start in range(0, len(order), size)]


def _filled(order: list[int], padded: list[int], max_tokens: int) -> Batches:
    batches: Batches = []
    current: list[int] = []
    for sample in order:
        # The order is by length, so the newcomer is the longest.
        if current and (len(current) + 1) * padded[sample] > max_tokens:
            batches.append(current)
            current = []
        current.append(sample)
    return [*batches, current] if current else batches
