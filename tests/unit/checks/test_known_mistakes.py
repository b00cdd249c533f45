"""A known mistake is named by its answers to the public cases: where they explain what is wrong, and nowhere else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from edl_labs.checks import Outcome
from edl_labs.checks.known_mistakes import KnownMistake, digests, named

WANT: list[Any] = [{"held": 1.0, "sent": 4.0}, {"held": 2.0, "sent": 6.0}]
PARTS = [{"parts": one} for one in WANT]
LOST = Outcome("total", "lab90", "wrong", 0, 3, what="another number", why="it differs", next="look again")


def records(*values: Any) -> list[dict[str, Any]]:
    return [{"value": value} for value in values]


def known(what: str, *values: Any) -> KnownMistake:
    return KnownMistake(what, f"why {what}", f"next {what}", digests(records(*values)))


TWICE = known("twice", {"held": 2.0, "sent": 4.0}, {"held": 4.0, "sent": 6.0})
HALF = known("half", {"held": 1.0, "sent": 2.0}, {"held": 2.0, "sent": 3.0})


def message(*got: Any, outcome: Outcome = LOST) -> str:
    found = named(outcome, [TWICE, HALF], records(*got), WANT)
    assert (outcome.points, outcome.state) == (found.points, found.state)
    return found.what


def test_a_mistake_is_named_by_its_own_answers():
    found = named(LOST, [HALF, TWICE], records({"held": 2, "sent": 4}, {"held": 4.0000000001, "sent": 6}), WANT)

    assert ("twice", "why twice", "next twice") == (found.what, found.why, found.next)


def in_parts(mistakes: list[KnownMistake], *got: Any) -> str:
    return named(LOST, mistakes, records(*({"parts": one} for one in got)), PARTS).what


TWICE_IN_PARTS = known("twice", {"parts": {"held": 2.0, "sent": 4.0}}, {"parts": {"held": 4.0, "sent": 6.0}})
HALF_IN_PARTS = known("half", {"parts": {"held": 1.0, "sent": 2.0}}, {"parts": {"held": 2.0, "sent": 3.0}})


def test_a_mistake_in_an_independent_part_is_named_next_to_another_one():
    both = [TWICE_IN_PARTS, HALF_IN_PARTS]

    assert in_parts(both, {"held": 2.0, "sent": 9.0}, {"held": 4.0, "sent": 9.0}) == "twice"
    assert in_parts(both, {"held": 9.0, "sent": 2.0}, {"held": 9.0, "sent": 3.0}) == "half"


@pytest.mark.parametrize("name", ["held", "chosen"])
def test_another_entry_alone_names_nothing_since_it_may_follow_from_others(name):
    one = known("other", {name: {"dp": 2}, "sent": 4.0}, {name: {"dp": 2}, "sent": 6.0})
    want = [{name: {"dp": 1}, "sent": 4.0}, {name: {"dp": 1}, "sent": 6.0}]

    assert LOST == named(LOST, [one], records(*[{name: {"dp": 2}, "sent": 9.0}] * 2), want)
    assert message({"held": 2.0, "sent": 9.0}, {"held": 4.0, "sent": 9.0}) == "another number"


def test_a_mistake_is_not_named_where_a_part_is_right_that_it_gets_wrong():
    both = known("both", {"parts": {"held": 2.0, "sent": 2.0}}, {"parts": {"held": 4.0, "sent": 3.0}})

    assert in_parts([both], {"held": 2.0, "sent": 4.0}, {"held": 4.0, "sent": 6.0}) == "another number"
    assert in_parts([both], {"held": 2.0, "sent": 9.0}, {"held": 4.0, "sent": 9.0}) == "both"


def test_a_mistake_may_be_right_in_some_cases():
    zero = [{"held": 0.0, "sent": 4.0}, {"held": 2.0, "sent": 6.0}]
    one = known("twice", {"held": 0.0, "sent": 4.0}, {"held": 4.0, "sent": 6.0})

    assert named(LOST, [one], records(zero[0], {"held": 4.0, "sent": 6.0}), zero).what == "twice"


@pytest.mark.parametrize(
    "got",
    [
        ({"held": 2.0, "sent": 4.0}, {"held": 5.0, "sent": 6.0}),  # another answer in the second case
        ({"held": 2.0, "sent": 2.0}, {"held": 4.0, "sent": 3.5}, "half and more"),  # too many answers
        ({"held": 2.0}, {"held": 4.0}),  # a part is missing
        ({"held": math.nan, "sent": 4.0}, {"held": 4.0, "sent": 6.0}),
        (2.0, 4.0),
        ({"held": 1.0, "sent": 4.0}, {"held": 2.0, "sent": 6.0}),  # right in all public cases: a secret one was wrong
    ],
)
def test_nothing_else_is_named(got):
    assert "another number" == message(*got)


@pytest.mark.parametrize("got", [None, [], [None, None], ["value", "value"], [{"error": {}}, {"value": {"held": 4}}]])
def test_whatever_comes_in_place_of_records_changes_nothing(got):
    assert LOST == named(LOST, [TWICE, HALF], got, WANT)


@pytest.mark.parametrize("state", ["passed", "not attempted"])
def test_an_answer_that_is_not_wrong_keeps_its_message(state):
    outcome = Outcome("total", "lab90", state, 0, 3)

    assert outcome == named(outcome, [TWICE], records({"held": 2, "sent": 4}, {"held": 4, "sent": 6}), WANT)


def test_a_mistake_survives_its_way_through_a_golden():
    assert TWICE == KnownMistake.from_json(TWICE.to_json())


def test_digests_are_of_six_digits_and_of_all_plain_data():
    import numpy
    import torch

    def one(value):
        return digests([{"value": value}])[0]

    assert one([0.1 + 0.2, 7]) == one((0.3, 7.0)) == one(numpy.array([0.3, 7])) == one(torch.tensor([0.3, 7]).double())
    assert one(0.3) != one(0.300001)
    assert one([[1], [2, 3]]) != one([[1, 2], [3]])
    assert one(True) != one(1)
    assert one(10**400) == one(10**400) != one(10**400 + 1)
    assert one({"a": {"b": {"c": 1}}}) != one({"a": {"b": {"c": 2}}})
    assert (2, 1) == (len(one({"parts": {"b": 1, "c": None}})), len(one({"a": {"b": 1, "c": None}})))
