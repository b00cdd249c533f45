"""The waste meter: how many of the tokens that a step computes are padding, counted exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from edl_labs.pipeline.batch_arguments import checked_batches, checked_lengths, positive
from edl_labs.units import percent
from edl_labs.values import Value


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
