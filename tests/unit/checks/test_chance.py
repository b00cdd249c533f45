"""Guessing earns nothing, however it is done; knowing everything earns everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from edl_labs.checks import score_above_chance
from edl_labs.checks.chance import LUCK, _matches, _spreads, independently_right, luckily_right
from edl_labs.checks.lab_exercises import load_lab

# The exercises whose marks are corrected for chance: lab, questions, answers that are right equally often.
SHOWN = {"broken_timers": 7}  # of which so many have answers that public cases give away
BALANCED = {
    "broken_timers": ("lab01_gpu_basics", 28, 7),
    "diagnose": ("lab02_roofline", 18, 3),
    "whose_fault": ("lab04_data_pipelines", 24, 3),
    "name_the_pattern": ("lab05_profiling", 15, 5),
    "who_hangs": ("lab07_many_gpus", 24, 6),
}

GUESSERS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "one answer for all": lambda rng, total, answers: np.zeros(total, dtype=int),
    "any answer": lambda rng, total, answers: rng.integers(answers, size=total),
    "each answer equally often": lambda rng, total, answers: rng.permutation(np.arange(total) % answers),
    "by prior odds": lambda rng, total, answers: rng.choice(answers, size=total, p=np.full(answers, 1 / answers)),
    "mostly one answer": lambda rng, total, answers: rng.integers(answers, size=total) * (rng.random(total) < 0.3),
    "one of two": lambda rng, total, answers: rng.integers(2, size=total),
}


@pytest.mark.parametrize("guesser", GUESSERS)
@pytest.mark.parametrize("name", BALANCED)
def test_a_guesser_hardly_ever_earns_anything(name: str, guesser: str) -> None:
    lab, total, answers = BALANCED[name]
    exercise = next(one for one in load_lab(lab) if one.name == name)
    rng, tries = np.random.default_rng(0), 2000
    earned = []
    for _ in range(tries):
        right = rng.permutation(np.arange(total) % answers)
        earned.append(exercise.spec.combine([float(hit) for hit in GUESSERS[guesser](rng, total, answers) == right]))

    # Five standard deviations above 1 %; and what luck earns is next to nothing on average.
    assert sum(share > 0 for share in earned) <= tries * float(LUCK) + 5 * (tries * float(LUCK)) ** 0.5
    assert sum(earned) / tries < 0.003
    assert 1.0 == exercise.spec.combine([1.0] * total)


@pytest.mark.parametrize("name", BALANCED)
def test_each_right_answer_beyond_luck_is_worth_the_same(name: str) -> None:
    _, total, answers = BALANCED[name]
    shown = SHOWN.get(name, 0)
    lucky = shown + luckily_right(total - shown, answers)
    lots = [[1.0] * right + [0.0] * (total - right) for right in range(total + 1)]
    shares = [score_above_chance(fractions, answers=answers, shown=shown) for fractions in lots]

    assert [0.0] * (lucky + 1) == shares[: lucky + 1]
    assert [pytest.approx(1 / (total - lucky))] * (total - lucky) == list(np.diff(shares[lucky:]))


def test_the_exact_probabilities_are_those_of_all_orders() -> None:
    right = (0, 0, 1, 1, 2, 2)
    for given in _spreads(6, 3):
        guesses = [answer for answer, count in enumerate(given) for _ in range(count)]
        orders = list(permutations(right))
        counted = Counter(sum(a == b for a, b in zip(guesses, order, strict=True)) for order in orders)

        expected = {number: Fraction(count, len(orders)) for number, count in counted.items()}
        assert expected == {number: share for number, share in enumerate(_matches(given, 2)) if share}


def test_all_spreads_are_gone_through() -> None:
    assert {(4, 0, 0), (3, 1, 0), (2, 2, 0), (2, 1, 1)} == set(_spreads(4, 3))


@pytest.mark.parametrize(("total", "chance"), [(10, 1 / 3), (90, 0.7), (1, 0.5)])
def test_with_independent_guesses_the_next_right_answer_is_beyond_one_percent(total: int, chance: float) -> None:
    lucky = independently_right(total, Fraction(chance))
    drawn = np.random.default_rng(0).binomial(total, chance, size=200_000)

    assert np.mean(drawn > lucky) < LUCK * 1.1
    assert np.mean(drawn >= lucky) > LUCK * 0.9


@pytest.mark.parametrize(
    ("fractions", "given"), [([], {"answers": 3}), ([1.0], {"answers": 2}), ([1.0] * 3, {"chance": 0.9})]
)
def test_questions_too_few_to_tell_knowledge_from_luck_are_worth_nothing(fractions: list[float], given: dict) -> None:
    assert 0.0 == score_above_chance(fractions, **given)


def test_partly_right_is_not_right() -> None:
    assert 0.0 == score_above_chance([0.99] * 18, answers=3)


def test_what_public_cases_give_away_earns_nothing_beside_luck() -> None:
    lucky = 7 + luckily_right(21, 7)
    none, one = ([1.0] * right + [0.0] * (28 - right) for right in (lucky, lucky + 1))

    assert 0 == score_above_chance(none, answers=7, shown=7)
    assert pytest.approx(1 / (28 - lucky)) == score_above_chance(one, answers=7, shown=7)


def test_the_public_cases_alone_are_worth_what_luck_leaves() -> None:
    assert 0 == score_above_chance([1.0] * luckily_right(7, 7) + [0.0] * (7 - luckily_right(7, 7)), answers=7, shown=7)
    assert 1 == score_above_chance([1.0] * 7, answers=7, shown=7)
