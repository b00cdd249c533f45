"""Secret cases come in an order of their own, so that a counter in place of an answer earns nothing."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, Exercise, RegisteredExercise, judge
from edl_labs.checks._exercise import PUBLIC_SEED
from edl_labs.checks.spec import cases_of, plain_cases
from edl_labs.errors import Wrong

KINDS = ("fits", "new segment", "other stream", "fragmented", "too much")


class OneOfEachKind(Exercise):
    """Cases whose answer is their kind."""

    answers = "all"

    def cases(self, rng: Any) -> list[Case]:
        return [Case(given={"kind": kind}) for kind in KINDS]

    def probe(self, student: Any, given: Any) -> Any:
        return given["kind"]

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got != want:
            raise Wrong(f"{case['kind']} is wrong")

    def combine(self, fractions: list[float]) -> float:
        """The first kind is half of it."""
        return 0.5 * fractions[0] + 0.125 * sum(fractions[1:])

    def diagnose_all_cases(self, cases: list[Case], got: list[Any], want: list[Any]) -> Wrong | None:
        return Wrong("all are the last") if [KINDS[-1]] * 5 == got and cases[0]["kind"] == KINDS[0] else None


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


def test_the_judge_goes_by_the_authors_order_whatever_was_asked_first() -> None:
    for seed in range(100, 120):
        cases = cases_of(plain_cases(EXERCISE.draw_cases(seed)))
        want = [case["kind"] for case in cases]
        got = [{"value": "none of them" if kind in KINDS[1:3] else kind} for kind in want]

        outcome = judge(EXERCISE, cases, got, want, points=4)

        assert (outcome.points, outcome.what) == (3.0, f"{KINDS[1]} is wrong")
        assert outcome.case_index == want.index(KINDS[1])


def test_what_explains_all_cases_sees_them_in_the_authors_order() -> None:
    cases = EXERCISE.draw_cases(100)
    want = [case["kind"] for case in cases]

    assert judge(EXERCISE, cases, [{"value": KINDS[-1]}] * 5, want, points=4).what == "all are the last"
