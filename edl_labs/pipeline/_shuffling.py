"""How random batches are that were arranged by length: a stated measure, 1 for random and 0 for sorted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.pipeline.batch_arguments import checked_batches, checked_lengths
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Shuffling(Value):
    """Three ways in which an epoch can fail to be random, each 1 at its best and 0 at its worst.

    `within`: whether a batch holds all lengths (1 - the correlation ratio of length ranks over batches, divided by what
    random batches have). `order`: whether neighbouring batches differ (1 - |lag-1 autocorrelation| of their mean
    ranks). `fresh`: with a second epoch, the share of pairs of a batch that do not meet again, less chance; None
    without one. `permutation`: whether each sample occurs exactly once.
    """

    within: float
    order: float
    fresh: float | None
    permutation: bool


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
            "the epoch has no batches", why="randomness is measured on its batches", next="give an epoch's batches"
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
