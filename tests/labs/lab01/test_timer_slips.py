"""broken_timers: a rule is named where it gives all answers, and a rule beside it is not."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab01_gpu_basics.broken_timers import FAULTS
from edl_labs.exercises.lab01_gpu_basics.timer_slips import known_timer_slip


@pytest.fixture(scope="module")
def reports(exercises, solution):
    """The cases of a draw, and the right answers."""
    cases = exercises["broken_timers"].draw_cases(3)
    return cases, [solution["name_fault"](case) for case in cases]


def answered(reports, **instead):
    """Right but for the faults that are called something else, what is said of it."""
    cases, right = reports
    others = {name.replace("_", " "): other for name, other in instead.items()}
    return known_timer_slip(cases, [others.get(one, one) for one in right], right)


@pytest.mark.parametrize(
    ("instead", "told"),
    [
        ({"wrong_stream": "no sync"}, "your code overlooks a wait for another stream"),
        ({"cold_first_call": "none"}, "your code looks for a cold first call in the longest run, or not at all"),
        (
            dict.fromkeys(("sync_per_call", "cold_first_call", "cache-warm", "none"), "wrong stream"),
            "every timer that waited",
        ),
        (
            dict.fromkeys((one.replace(" ", "_") for one in FAULTS if "coarse" not in one), "sync per call"),
            "called every report",
        ),
    ],
)
def test_faults_that_are_always_called_another_tell_the_rule(reports, instead, told):
    assert told in answered(reports, **instead).what


@pytest.mark.parametrize(
    "instead",
    [
        {},
        {"wrong_stream": "cache-warm"},
        {"wrong_stream": "no sync", "none": "cache-warm"},
        {"cold_first_call": "sync per call"},
        {"cold_first_call": "none", "sync_per_call": "none"},
        {"none": "wrong stream"},
        {"none": "cold first call"},
        *(dict.fromkeys((one.replace(" ", "_") for one in FAULTS), fault) for fault in FAULTS),
    ],
)
def test_other_answers_name_no_rule(reports, instead):
    assert answered(reports, **instead) is None


def test_one_answer_that_a_rule_does_not_give_keeps_it_from_being_named(reports):
    cases, right = reports
    mine = ["no sync" if one == "wrong stream" else one for one in right]
    mine[right.index("wrong stream")] = "wrong stream"

    assert known_timer_slip(cases, mine, right) is None


def by_ratio(report, **names):
    ratio = report["seconds_per_call"][-1] / report["true_seconds_per_call"]
    return names["little"] if ratio < 0.9 else names["much"] if ratio > 1.1 else "none"


def test_one_name_for_each_direction_is_told_and_two_for_one_are_not(reports):
    cases, right = reports
    mine = [by_ratio(case, little="no sync", much="cold first call") for case in cases]
    two = [one if one != "no sync" else ("no sync", "cache-warm")[i % 2] for i, one in enumerate(mine)]

    assert known_timer_slip(cases, mine, right).what.startswith("you used one name for all reports")
    assert known_timer_slip(cases, two, right) is None


def test_any_fall_that_is_called_cold_is_told_unless_sound_reports_are_known(reports):
    cases, right = reports
    falls = [case["seconds_per_call"][0] > case["seconds_per_call"][-1] for case in cases]
    mine = ["cold first call" if fall else "wrong stream" for fall in falls]
    some = ["none" if one == "none" else other for one, other in zip(right, mine, strict=True)]

    assert "longer runs report less per call" in known_timer_slip(cases, mine, right).what
    assert known_timer_slip(cases, some, right) is None


def taken_as_listed(report, right, reads):
    """No sync wherever the kernel that is listed last ends after the reading that `reads` takes; right elsewhere."""
    read_s = reads([span["start_s"] for span in report["timeline"] if span["name"] == "read clock"])
    ends = [span["end_s"] for span in report["timeline"] if (span["kind"], span["name"]) == ("kernel", "kernel")]
    if right == "clock too coarse" or (ends[-1] > read_s and right in ("no sync", "wrong stream")):
        return right
    return "no sync" if ends[-1] > read_s else "none" if right in ("no sync", "wrong stream") else right


@pytest.mark.parametrize(("reads", "is_told"), [(lambda read: read[-1], True), (max, True), (min, False)])
def test_spans_taken_as_they_are_listed_are_told(reports, reads, is_told):
    cases, right = reports
    mine = [taken_as_listed(case, one, reads) for case, one in zip(cases, right, strict=True)]
    told = known_timer_slip(cases, mine, right)

    assert is_told == (told is not None and "the order of the spans" in told.what)


def test_one_answer_that_an_order_would_give_does_not_tell_it(reports):
    cases, right = reports
    mine = [taken_as_listed(case, one, lambda read: read[-1]) for case, one in zip(cases, right, strict=True)]
    wrong = next(i for i, one in enumerate(mine) if one != right[i])
    chosen = [i for i in range(len(right)) if i == wrong or mine[i] == right[i]]

    assert known_timer_slip(*([one[i] for i in chosen] for one in (cases, mine, right))) is None
