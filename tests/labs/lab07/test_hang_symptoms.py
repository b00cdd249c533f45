"""who_hangs: what all answers have in common is told, and cases that keep readings of the states apart are drawn."""

from __future__ import annotations

from contextlib import suppress

import pytest

from edl_labs.exercises.lab07_many_gpus.hang_slips import ABSENT, ANSWERS, MISMATCHES


def asked_in(order, solution):
    """The solution, with its questions in another order: each is asked of a state in which no other has a yes."""

    def who_hangs(groups, ranks):
        found = {}
        for word in ANSWERS:
            with suppress(IndexError):  # nobody is in both groups: no circle is left
                answer, rank = solution(groups, only(word, ranks))
                if answer == word:
                    found[word] = rank
        word = next(one for one in order if one in found)
        return word, found[word]

    return who_hangs


def only(word, ranks):
    """The states without what the other questions look for."""
    kept = []
    for state in ranks:
        calls = [{**one} for one in state["calls"]]
        doing = state["doing"]
        if doing != "waits" and doing != ABSENT.get(word):
            doing = "somewhere"
        for part in MISMATCHES.values():
            if part != MISMATCHES.get(word):
                calls[-1][part] = 0
        kept.append({"doing": doing, "calls": calls})
    return kept


ORDERS = [(early, late) for at, late in enumerate(ANSWERS[:4]) for early in ANSWERS[at + 1 : 5]]


@pytest.mark.slow  # the quick ones are the trials' and the wrong answers'
@pytest.mark.parametrize(("early", "late"), ORDERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_question_that_is_asked_too_early_is_told(judged, solution, early, late, seed):
    order = [one for one in ANSWERS if one != early]
    order.insert(order.index(late), early)

    outcome = judged("who_hangs", seed=seed, who_hangs=asked_in(order, solution["who_hangs"]))

    assert outcome.what == "your function overlooks that an earlier condition already holds"
    assert f"returned {early!r}" in outcome.why


def test_the_solutions_order_is_that_of_the_text(judged, solution):
    assert judged("who_hangs", who_hangs=asked_in(ANSWERS, solution["who_hangs"])).points == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lists_differ_in_length_and_groups_share_a_number(exercises, seed):
    cases = exercises["who_hangs"].draw_cases(seed)

    assert all(len({len(one["calls"]) for one in case["ranks"]}) > 1 for case in cases)
    assert any(
        len({one["group"] for one in last}) > 1 and len({one["number"] for one in last}) == 1
        for last in ([rank["calls"][-1] for rank in case["ranks"]] for case in cases)
    )


def test_a_word_without_a_rank_is_not_read_letter_by_letter(judged):
    outcome = judged("who_hangs", who_hangs=lambda groups, ranks: "lost")

    assert outcome.points == 0
    assert "'l', 'o'" not in outcome.case_text
