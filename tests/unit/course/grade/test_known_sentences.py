"""What students are told of secret cases: sentences of our own modules, and nothing of a case or a submission."""

from __future__ import annotations

import json
import re

import pytest

from edl_labs.checks import Case, Outcome, RegisteredExercise, judge
from edl_labs.checks.lab_exercises import lab_names, load_lab
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.known_sentences import UNKNOWN, WITHHELD, Sentences, sentences, withheld, without_texts
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import HOLE, Sentence
from tests.course.course_fixture import REPOSITORY

LAB = "lab02_roofline"
NUMBER = r"\d+\.?\d*"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it has at least one thread block for each SM", "it has at least one thread block for each SM"),
        ("'12.5' is not one of the three answers", f"{HOLE} is not one of the three answers"),
        ("the three are: latency, math, memory", "the three are: latency, math, memory"),
        (Sentence("{name} is not there", name="diagnose"), "diagnose is not there"),
        (Sentence("{name} is not there", name=345), f"{HOLE} is not there"),
        (Sentence("you raised {type}", type="ZeroDivisionError"), "you raised ZeroDivisionError"),
        (Sentence("you raised {type}", type="Case12"), f"you raised {HOLE}"),
        ("the sides are 12 and 13", ""),
        ("12", ""),
    ],
)
def test_a_text_is_told_as_the_sentence_that_it_is(text: str, expected: str):
    assert expected == sentences(LAB).told(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("try sum", "try sum"),
        ("try 12", ""),
        ("try 12 of", ""),
        ("try 12 of all", f"try {HOLE} of all"),
        ("12 before 13", ""),
        ("from 12 on to 13 it", ""),
        ("it goes from 12 on to 13", f"it goes from {HOLE} on to {HOLE}"),
    ],
)
def test_a_sentence_with_a_hole_is_told_where_it_has_one_word_and_two_for_each_hole(text: str, expected: str):
    templates = (("try ", ""), ("try ", " of"), ("try ", " of all"), ("", " before ", ""))
    known = Sentences(
        whole=frozenset(),
        templates=(*templates, ("from ", " on to ", " it"), ("it goes from ", " on to ", "")),
        words=frozenset({"sum"}),
    )

    assert expected == known.told(text)


def test_many_holes_and_long_texts_are_matched_in_no_time():
    known = sentences(LAB)

    assert "" == known.told("x of y is z, " * 100_000)


def test_what_a_submission_words_itself_is_replaced_before_it_is_judged():
    records = [
        {"error": {"type": "Case12", "message": "sides 12", "line": "raise Case12"}},
        {"error": {"type": "KeyError", "message": "sides 12", "line": ""}},
        {"missing": "sides_12"},
        {"missing": "diagnose"},
        {"not_plain_data": "sides 12"},
        {"value": 12},
    ]
    kept = json.dumps(without_texts(records, LAB)[:-1])

    assert not re.search("12|sides", kept)
    assert "KeyError" in kept
    assert "diagnose" in kept
    assert "hello" == without_texts("hello", LAB)


def test_an_outcome_without_a_known_sentence_says_that_something_is_withheld():
    outcome = Outcome("diagnose", LAB, "wrong", 0.0, 2.0, "12 is not 13", "12", "try 13", 3, "side = 12", printed="12")

    expected = Outcome("diagnose", LAB, "wrong", 0.0, 2.0, UNKNOWN, WITHHELD, "")
    assert expected == withheld(outcome)


def texts(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.what, outcome.why, outcome.next


@pytest.mark.slow
@pytest.mark.parametrize("lab", lab_names())
def test_no_exercise_tells_a_value_of_a_secret_case(lab: str):
    """Echoed cases, returned texts and numbers, raised texts: what comes out is on the list of known sentences."""
    known = sentences(lab)
    every = [*known.whole, *(HOLE.join(parts) for parts in known.templates)]
    numbers = set(re.findall(NUMBER, " ".join(every)))
    listed = {re.sub(f"{HOLE}+", HOLE, text) for text in every} | {UNKNOWN, WITHHELD, ""}
    for exercise in load_lab(lab):
        cases = exercise.draw_cases(77)
        for outcome in hostile_outcomes(exercise, cases):
            told = withheld(outcome)
            for text, own in zip(texts(told), texts(outcome), strict=True):
                rest = text.removesuffix(WITHHELD).removesuffix("; ")
                engines = own.without_values(shown=known.words) if isinstance(own, Sentence) else ""
                assert rest == engines or is_listed(rest, listed, known.words), (exercise.name, outcome)
            assert set() == set(re.findall(NUMBER, " ".join(texts(told)))) - numbers, (exercise.name, outcome)
            assert ("", None, "") == (told.case_text, told.case_index, told.printed)


def hostile_outcomes(exercise: RegisteredExercise, cases: list[Case]) -> list[Outcome]:
    lab, sources = exercise.lab, []
    for value in (987654321.125, 31415):
        sources.append(
            [{"value": f"told {dict(case)}"} for case in cases] if value > 1e6 else [{"value": value}] * len(cases)
        )
        sources.append(
            [{"error": {"type": "E", "message": str(dict(case)), "line": str(dict(case))}} for case in cases]
        )
        sources.append([{"value": dict(case)} for case in cases])
    return [
        judge(exercise, cases, without_texts(records, lab), [record.get("value") for record in sources[0]], points=1.0)
        for records in sources
    ]


def is_listed(text: str, listed: set[str], words: frozenset[str]) -> bool:
    """Whether a text is a known sentence, its holes shown as holes or filled with known words."""
    pattern = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return text in listed or any(
        re.sub(rf"(?<![\w{HOLE}])({pattern})(?!\w)", HOLE, text).count(HOLE)
        and re.fullmatch(".*".join(map(re.escape, one.split(HOLE))), text)
        for one in listed
        if HOLE in one
    )


@pytest.mark.slow
@pytest.mark.parametrize("lab", lab_names())
def test_wrong_answers_are_still_told_their_sentence_where_it_quotes_nothing(lab: str):
    """Most sentences that the judge itself says of a mistake come out of a secret case as they are.

    Messages that a mistake brings along (with a why) are for public cases alone.
    """
    known = sentences(lab)
    told = [mistake.told for mistake in read_lab(Course(REPOSITORY), lab).mistakes if not mistake.why]
    whole = [text for text in told if any(text in one for one in known.whole)]

    assert len(whole) >= 0.7 * len(told)
