"""What activations look like over many batches, without keeping them: counts in bins that grow with what comes."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.errors import UsageError


class ActivationHistogram:
    """Counts of values in `bins` equally wide bins around 0; `add` takes a tensor of any shape.

    When a value lies beyond, the bins become twice as wide, and counts of two neighbours are added up: nothing is
    lost, and what was seen first is as good as what came last. With `decay` below 1 each batch multiplies what was
    counted before it by that, so that old batches count less (counts are floats then).

    >>> seen = ActivationHistogram(bins=4, width=1.0)
    >>> seen.add([0.1, 0.9, -0.6, 3.0])
    >>> seen.counts, seen.edges
    ([0.0, 1.0, 2.0, 1.0], [-4.0, -2.0, 0.0, 2.0, 4.0])
    """

    def __init__(self, *, bins: int = 2048, width: float = 2.0**-20, decay: float = 1.0) -> None:
        if not isinstance(bins, int) or bins < 4 or bins % 4:
            raise UsageError(
                f"a histogram cannot have {bins!r} bins",
                why="on each side of 0, bins are merged in pairs, so each side needs an even number of bins",
                next="use a multiple of four as the number of bins",
            )
        if not width > 0 or not 0 < decay <= 1:
            raise UsageError(
                "the bin width must be positive, and the decay must be above 0 and at most 1",
                next="omit both arguments to use the defaults",
            )
        self.width, self.decay, self.counts = float(width), decay, [0.0] * bins

    @property
    def edges(self) -> list[float]:
        """Where bins begin and end: one more than there are bins."""
        half = len(self.counts) // 2
        return [self.width * at for at in range(-half, half + 1)]

    def add(self, values: Any) -> None:
        """Counts a batch; UsageError for values that are no numbers."""
        import torch

        values = torch.as_tensor(values).detach().to(torch.float64).flatten()
        if not bool(values.isfinite().all()):
            raise UsageError("activations must be finite numbers", why="some are NaN or infinite")
        if not values.numel():
            return
        half = len(self.counts) // 2
        while float(values.abs().max()) > half * self.width:
            self._widen()
        at = torch.floor(values / self.width).clamp(-half, half - 1).to(torch.int64) + half
        found = torch.bincount(at, minlength=2 * half).tolist()
        self.counts = [self.decay * old + new for old, new in zip(self.counts, found, strict=True)]

    def trimmed(self, bins: int) -> tuple[list[float], list[float]]:
        """(counts, edges) of about `bins` bins that span what was seen, for a picture or a slow search."""
        seen = [at for at, count in enumerate(self.counts) if count]
        if not seen:
            raise UsageError("no activations have been counted yet", next="call add() with a batch first")
        first, last = seen[0], seen[-1] + 1
        step = max(1, math.ceil((last - first) / bins))
        starts = list(range(first, last, step))
        counts = [sum(self.counts[at : at + step]) for at in starts]
        edges = [(at - len(self.counts) // 2) * self.width for at in [*starts, starts[-1] + step]]
        return counts, edges

    def _widen(self) -> None:
        quarter = [0.0] * (len(self.counts) // 4)
        pairs = [self.counts[at] + self.counts[at + 1] for at in range(0, len(self.counts), 2)]
        self.counts, self.width = [*quarter, *pairs, *quarter], 2 * self.width
