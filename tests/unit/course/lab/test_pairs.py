"""Known mistakes two by two: one whose student is told of another's is found."""

from __future__ import annotations

import pytest

from edl_labs.checks import Outcome
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.pairs import Shown, confused, jargon
from edl_labs.course.lab.prove import prove
from tests.unit.course.lab import kit


def a_mistake(
    name: str, sentence: str, *, told: str = "", like: tuple[str, ...] = (), case: int | None = 0, evidence: str = "xyz"
) -> Shown:
    """One of which each letter of `evidence` is what it gave on one case."""
    mistake = Mistake("sum_up", name, told or sentence, "", "solutions/lab/mistakes/sum_up.py", 1, like)
    return Shown(mistake, [letter.encode() for letter in evidence], case, sentence)


def test_mistakes_with_a_sentence_each_are_told_apart() -> None:
    assert [] == confused([a_mistake("a", "one is missing"), a_mistake("b", "one is too much")])


def test_a_pair_that_no_case_separates_wants_a_case_or_a_word() -> None:
    assert confused([a_mistake("a", "too much"), a_mistake("b", "too much")]) == [
        "a and b: both get the message 'too much'; no public case tells them apart: "
        "draw one that does, or add # like: a"
    ]


def test_a_case_that_separates_a_pair_has_to_be_shown_first() -> None:
    first, second = a_mistake("a", "too much", evidence="xyz"), a_mistake("b", "too much", evidence="xyw")

    assert confused([first, second]) == [
        "a and b: both get the message 'too much' in case 1; case 3 tells them apart: show it first"
    ]


@pytest.mark.parametrize(("case", "where"), [(0, "case 1"), (2, "cases 1 and 3")])
def test_other_evidence_deserves_another_sentence_whatever_its_numbers(case: int, where: str) -> None:
    first = a_mistake("a", "off by 1.5e-3 s", evidence="xyz")
    second = a_mistake("b", "off by 12 s", evidence="wvu", case=case)

    assert confused([first, second]) == [
        f"a and b: both get the message 'off by 1.5e-3 s' in {where}, where their evidence differs: "
        "give each its own message"
    ]


def test_a_family_shares_a_sentence_that_names_them_all() -> None:
    sentence = "a row or a column is missing"
    family = [
        a_mistake("a", sentence, told="a row", like=("b",)),
        a_mistake("b", sentence, told="a column is missing"),
        a_mistake("c", sentence, told="missing", like=("a",)),
    ]

    assert [] == confused(family)


def test_a_sentence_that_names_one_of_the_pair_alone_is_found() -> None:
    first = a_mistake("a", "rows 1 to 2 are missing", told="rows 1 to 2", like=("b",))
    second = a_mistake("b", "rows 3 to 4 are missing", told="rows 3 to 4")

    assert confused([first, second]) == [
        "a shares 'rows 3 to 4 are missing' with b, which does not contain 'rows 1 to 2'",
        "b shares 'rows 1 to 2 are missing' with a, which does not contain 'rows 3 to 4'",
    ]


def test_a_line_that_is_not_needed_is_found() -> None:
    first = a_mistake("a", "too much", like=("b", "gone", "a"))

    assert confused([first, a_mistake("b", "too little")]) == [
        "a has # like: b, but each gets its own message: remove this line",
        "a has # like: gone, which is not another mistake of this exercise",
        "a has # like: a, which is not another mistake of this exercise",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it[0] is None", "it[0]"),
        ("value['x'][2] is an object", "value['x']"),
        ("item 3 of it is text; a list is expected", "item 3 of it"),
        ("a list is expected", "a list is expected"),
        ("the result has the wrong form", "wrong form"),
        ("expected a number, got None", ""),
        ("it is 0.5 of what they should be, at step [2]", ""),
    ],
)
def test_words_of_the_inside_are_found_in_any_part_of_a_message(text: str, found: str) -> None:
    for part in ("what", "why", "next"):
        assert found == jargon(Outcome("ex", "lab", "wrong", 0.0, 1.0, **{part: text}))


def test_one_that_loses_nothing_in_public_is_confused_with_nobody() -> None:
    assert [] == confused([a_mistake("a", "", case=None), a_mistake("b", "", case=None)])


def test_one_that_is_not_told_its_sentence_is_in_no_pair() -> None:
    pair = [a_mistake("a", "another value came back", told="too much"), a_mistake("b", "another value came back")]

    assert [] == confused(pair, untold={"a"})
    assert 1 == len(confused(pair))


@pytest.mark.slow
def test_the_proof_of_a_lab_looks_at_its_pairs(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edl_labs.course.lab.prove.hostile_cells", lambda lab: {})
    again = kit.MISTAKES.partition("\n\n\n")[0].replace("same", "same_again")
    kit.mistakes(course).write_text(f"{kit.MISTAKES}\n\n{again}\n")
    build(course)

    assert prove(course, kit.LAB, seeds=1).problems == [
        "doubled_time: same and same_again: both get the message 'the duration came back as it was'; no public case "
        "tells them apart: draw one that does, or add # like: same"
    ]

    like = f"{again}\n".replace("came back as it was\n", "came back as it was\n# like: same\n")
    kit.mistakes(course).write_text(f"{kit.MISTAKES}\n\n{like}")

    assert prove(course, kit.LAB, seeds=1).ok
