"""Secret cases come in an order of their own, so that a counter in place of an answer earns nothing."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, Exercise, RegisteredExercise
from edl_labs.checks._exercise import PUBLIC_SEED

KINDS = ("fits", "new segment", "other stream", "fragmented", "too much")


class OneOfEachKind(Exercise):
    """Cases whose answer is their kind."""

    def cases(self, rng: Any) -> list[Case]:
        return [Case(given={"kind": kind}) for kind in KINDS]

    def probe(self, student: Any, given: Any) -> Any:
        return given["kind"]

    def compare(self, case: Any, got: Any, want: Any) -> None:
        raise NotImplementedError


EXERCISE = RegisteredExercise("kinds", "lab90_kinds", OneOfEachKind())


def kinds(seed: int) -> list[str]:
    return [case["kind"] for case in EXERCISE.draw_cases(seed)]


def test_the_public_cases_come_in_the_authors_order() -> None:
    assert [*KINDS] == kinds(PUBLIC_SEED)


def test_secret_cases_are_the_same_in_another_order() -> None:
    orders = [kinds(seed) for seed in range(100, 140)]

    assert {KINDS[0], KINDS[-1]} < {order[0] for order in orders}
    assert len({tuple(order) for order in orders}) > 30
    assert [sorted(KINDS)] * 40 == [sorted(order) for order in orders]


def test_the_same_seed_gives_the_same_order() -> None:
    assert kinds(7) == kinds(7)
