"""Ways to cut an epoch into batches: at random, by like length, under a budget; and how much of them is padding."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.units import percent
from edl_labs.values import Value

if TYPE_CHECKING:
    import numpy as np

Batches = list[list[int]]


@checked_arguments()
def random_batches(samples: int, batch_size: int, *, seed: int = 0, epoch: int = 0) -> Batches:
    """An epoch in random order, cut into batches; each sample once, the same for the same seed and epoch."""
    order = _shuffled(samples, seed, epoch)
    return _cut(order, positive(batch_size, "batch_size"))


@checked_arguments()
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


@checked_arguments()
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


@checked_arguments()
def pad_collate(samples: Sequence[Sequence[int]], *, pad: int = 0, multiple: int = 1) -> dict[str, np.ndarray]:
    """A batch of token sequences as rectangles: `tokens` and `mask` (int64 and bool arrays), and `lengths`.

    >>> pad_collate([[1, 2, 3], [4]])["tokens"].tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    import numpy as np

    if not len(samples):
        raise UsageError(
            "an empty batch cannot be padded",
            why="a batch is padded to the length of its longest sample",
            next="leave out empty batches",
        )
    sizes = checked_lengths(len(sample) for sample in samples)
    width = -(-max(sizes) // positive(multiple, "multiple")) * multiple
    tokens = np.full((len(samples), width), pad, dtype=np.int64)
    mask = np.arange(width) < np.asarray(sizes)[:, None]
    tokens[mask] = np.concatenate([np.asarray(sample, dtype=np.int64) for sample in samples])
    return {"tokens": tokens, "mask": mask, "lengths": np.asarray(sizes)}


@dataclass(frozen=True, repr=False)
class Waste(Value):
    """Tokens of an epoch: `real_tokens`, the `computed_tokens` of the padded rectangles, and how they lie.

    `attended_pairs` and `real_pairs` are what attention computes, which grows with the square of the length.
    """

    DERIVED = ("fraction",)

    batches: int
    samples: int
    real_tokens: int
    computed_tokens: int
    largest_batch_tokens: int
    real_pairs: int
    attended_pairs: int

    @property
    def padded_tokens(self) -> int:
        """How many tokens are padding."""
        return self.computed_tokens - self.real_tokens

    @property
    def exact(self) -> Fraction:
        """The share of computed tokens that is padding, exactly."""
        return Fraction(self.padded_tokens, self.computed_tokens) if self.computed_tokens else Fraction(0)

    @property
    def fraction(self) -> float:
        """The share of computed tokens that is padding."""
        return float(self.exact)

    def __str__(self) -> str:
        return f"{percent(self.fraction)} padding: {self.padded_tokens:,} of {self.computed_tokens:,} tokens"


@checked_arguments()
def waste(lengths: Iterable[int], batches: Iterable[Iterable[int]] | None = None, *, multiple: int = 1) -> Waste:
    """The `Waste` of padding each batch (numbers of samples) to its longest, rounded up to `multiple`.

    Without batches the whole set is one: what padding a data set costs.

    >>> str(waste([3, 5, 8], [[0, 1], [2]]))
    '11.1 % padding: 2 of 18 tokens'
    """
    sizes = checked_lengths(lengths)
    multiple = positive(multiple, "multiple")
    rows = checked_batches([range(len(sizes))] if batches is None else batches, len(sizes))
    real = computed = largest = pairs = attended = samples = 0
    for batch in rows:
        longest = -(-max(sizes[sample] for sample in batch) // multiple) * multiple
        tokens = longest * len(batch)
        real, computed, largest = real + sum(sizes[s] for s in batch), computed + tokens, max(largest, tokens)
        pairs, attended = pairs + sum(sizes[s] ** 2 for s in batch), attended + longest * tokens
        samples += len(batch)
    return Waste(len(rows), samples, real, computed, largest, pairs, attended)


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


def checked_lengths(lengths: Iterable[Any]) -> list[int]:
    """Lengths as whole numbers from 1; UsageError naming the first sample that has none."""
    found = []
    for sample, length in enumerate(lengths):
        whole = _whole(length)
        if whole is None or whole < 1:
            raise UsageError(
                f"sample {sample} has length {length!r}",
                why="a length must be a whole number of at least 1",
                next="drop empty samples, or fix the code that computes their lengths",
            )
        found.append(whole)
    return found


def checked_batches(batches: Iterable[Iterable[Any]], samples: int) -> list[list[int]]:
    """Batches as lists of sample numbers below `samples`; UsageError naming the first batch that is not one."""
    found = []
    for number, batch in enumerate(batches):
        rows = [_whole(row) for row in batch]
        if not rows:
            raise UsageError(
                f"batch {number} is empty", why="a batch needs at least one sample", next="leave out empty batches"
            )
        for row in rows:
            if row is None or not 0 <= row < samples:
                raise UsageError(
                    f"batch {number} contains sample {row!r}",
                    why=f"the samples are numbered 0 to {samples - 1}",
                    next="fill batches with positions in `lengths`",
                )
        found.append([row for row in rows if row is not None])
    return found


def positive(value: object, what: str) -> int:
    """`value` as a whole number of 1 or more; UsageError for anything else."""
    whole = _whole(value)
    if whole is None or whole < 1:
        raise UsageError(f"{what} is {value!r}", why="it must be a whole number of at least 1", next=f"try {what}=32")
    return whole


def refuse_longer(lengths: Sequence[int], budget: int, *, what: str) -> None:
    """UsageError naming the first sample that is longer than `budget`, which `what` names."""
    for sample, length in enumerate(lengths):
        if length > budget:
            raise UsageError(
                f"sample {sample} of {length:,} tokens does not fit into {what} of {budget:,}",
                why="batching does not split samples",
                next=f"raise {what}, or shorten or drop this sample first",
            )


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == value else None
