"""What right answers are worth where they can be guessed: nothing, until a guesser would hardly ever get so many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, perm

LUCK = Fraction(1, 100)  # how often a guesser may get anything: in a class of a hundred, once
_COUNTED = 30  # above it, all ways to spread answers are too many to go through, and independent guesses are as good


def score_above_chance(fractions: Sequence[float], *, answers: int = 0, chance: float = 0.0, shown: int = 0) -> float:
    """The share of right answers beyond those that guessing brings: 0 for what luck can do, 1 for all right.

    With `answers`, each of that many answers is right equally often; with `chance`, each question is guessed right
    with that probability, whatever the others are. What passes for luck is what a guesser who never looks at a question
    gets with a probability of LUCK or more, however the guesses are spread; exact, from the numbers alone. `shown`
    questions have answers that are known from the public ones, whenever more than those are asked.

    >>> score_above_chance([1.0] * 6 + [0.0] * 12, answers=3), score_above_chance([1.0] * 18, answers=3)
    (0.0, 1.0)
    """
    right, total = sum(fraction >= 1 for fraction in fractions), len(fractions)
    known = shown if total > shown else 0
    lucky = known + (
        luckily_right(total - known, answers)
        if answers
        else independently_right(total - known, Fraction(chance).limit_denominator(1000))
    )
    return max(0, right - lucky) / (total - lucky) if total > lucky else 0.0


@lru_cache(maxsize=64)
def luckily_right(total: int, answers: int) -> int:
    """The most right answers that some blind guesser gets with a probability of LUCK or more.

    `total` questions, each of `answers` right for the same number of them, in an unknown order. A blind
    guesser is known by how often each answer is given; the worst of them counts.
    """
    each = total // answers if answers and total % answers == 0 else 0
    if not each or total > _COUNTED:
        return independently_right(total, Fraction(1, max(1, answers)))
    return max(_most(_matches(given, each)) for given in _spreads(total, answers))


@lru_cache(maxsize=64)
def independently_right(total: int, chance: Fraction) -> int:
    """The most right answers of `total` that guessing with `chance` each gets with a probability of LUCK or more."""
    return _most([comb(total, n) * chance**n * (1 - chance) ** (total - n) for n in range(total + 1)])


def _most(probabilities: list[Fraction]) -> int:
    """The largest number with a probability of LUCK or more that it, or a larger one, comes up."""
    tail = Fraction(0)
    for number in range(len(probabilities) - 1, -1, -1):
        tail += probabilities[number]
        if tail >= LUCK:
            return number
    return 0


def _matches(given: tuple[int, ...], each: int) -> list[Fraction]:
    """How probable each number of right answers is, for a guesser who gives the answers so often.

    Every answer is right for `each` of the questions, in a random order. The expected number of ways to choose n right
    answers is a coefficient of a product of polynomials, one an answer; inclusion and exclusion does the rest.
    """
    total = sum(given)
    ways = [1]
    for count in given:
        chosen = [comb(count, n) * perm(each, n) for n in range(min(count, each) + 1)]
        ways = _product(ways, chosen)
    moments = [Fraction(way, perm(total, n)) for n, way in enumerate(ways)]
    return [
        sum(((-1) ** (m - n) * comb(m, n) * moments[m] for m in range(n, len(moments))), Fraction(0))
        for n in range(len(moments))
    ]


def _product(one: list[int], other: list[int]) -> list[int]:
    """The coefficients of the product of two polynomials."""
    found = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            found[i + j] += a * b
    return found


def _spreads(total: int, answers: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to give `total` answers of `answers` kinds, when it does not matter which kind is which."""
    if answers == 1:
        yield (total,)
        return
    for first in range(min(total, total if most is None else most), -(-total // answers) - 1, -1):
        for rest in _spreads(total - first, answers - 1, first):
            if rest[0] <= first:
                yield (first, *rest)
