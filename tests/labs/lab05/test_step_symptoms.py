"""What most_to_gain and blame say of a mistake that the answers to all cases show."""

from __future__ import annotations

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.spec import given_halves
from edl_labs.exercises.lab05_profiling.step_patterns import machine_of


@pytest.fixture(scope="module")
def gained(exercises, solution):
    """`gained(change)`: the outcome where `change(case, now_s, gains)` gives the speed-ups of each public case."""
    cases, want = facts("lab05_profiling").golden("most_to_gain")
    times_s = [solution["step_s"](case["step"], machine_of(case)) for case in cases]

    def gained(change):
        got = []
        for case, now_s, right in zip(cases, times_s, want, strict=True):
            gains = change(case, now_s, dict(map(tuple, right["gains"])))
            got.append({"value": {**right, "gains": [[cause, gains[cause]] for cause in sorted(gains)]}})
        return judge(exercises["most_to_gain"], cases, got, want, points=1)

    return gained


def removing(solution, cause, removed):
    """The speed-ups where `removed(step)` is the step without one of the causes."""
    return lambda case, now_s, gains: {
        **gains,
        cause: now_s / solution["step_s"](removed(case["step"]), machine_of(case)),
    }


def dropping(*operations):
    return lambda step: [one for one in step if one["op"] not in operations]


def lasting_as_the_longest(step):
    kept = []
    for one in step:
        names = [k["op"] for k in kept[-2:]]
        if one["op"] == "launch" and "launch" in names and names[-1] in ("launch", "python"):
            if names[-1] == "python":
                del kept[-1]
            kept[-1] = {**one, "duration_s": max(one["duration_s"], kept[-1]["duration_s"])}
        else:
            kept.append(one)
    return kept


@pytest.mark.parametrize(
    ("cause", "removed", "told"),
    [
        ("launch", dropping("launch"), "the kernels were removed with their launches"),
        ("launch", lasting_as_the_longest, "your merged launch lasts only as long as its longest kernel"),
        ("copy", dropping("copy"), "the copies were removed, but they should only be pinned"),
        ("synchronisation", dropping("item"), "only `item` was removed, but `sync` was kept"),
        ("kernels", dropping("launch"), "the kernels were removed, but they should take half of their time"),
        ("data", dropping("load", "copy"), "the copies were removed together with the loads"),
    ],
)
def test_a_removal_that_gives_all_speed_ups_is_told(gained, solution, cause, removed, told):
    assert told == gained(removing(solution, cause, removed)).what


def test_a_removal_that_fits_all_cases_but_one_is_not_told(gained, solution):
    seen = []

    def most(case, now_s, gains):
        seen.append(case)
        right = len(seen) == 3
        return gains if right else removing(solution, "launch", dropping("launch"))(case, now_s, gains)

    outcome = gained(most)

    assert "removing launch gains less than your answer says" == outcome.what
    assert "launches with only Python between them become one" in outcome.why


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (lambda now_s, gain: now_s - now_s / gain, "your function returned the seconds saved, not speed-ups"),
        (lambda now_s, gain: 1 - 1 / gain, "your function returned the share of the time saved, not a speed-up"),
        (lambda now_s, gain: 1 / gain, "your speed-ups are inverted"),
    ],
)
def test_another_measure_of_the_gain_is_told(gained, number, told):
    assert told == gained(lambda case, now_s, gains: {c: number(now_s, gain) for c, gain in gains.items()}).what


@pytest.mark.parametrize(
    ("cause", "field", "value", "told"),
    [
        ("kernels", "duration_s", 1e-6, "your function modifies the given step, so later causes"),
        ("copy", "pinned", True, "the kernels were removed with their launches"),  # after which nothing else is removed
    ],
)
def test_a_changed_step_is_told_where_other_causes_suffer(exercises, solution, cause, field, value, told):
    cases, want = facts("lab05_profiling").golden("most_to_gain")
    without, step_s = solution["without"], solution["step_s"]

    def changing(step, asked):
        if asked != cause:
            return dropping("launch")(step) if (cause, asked) == ("copy", "launch") else without(step, asked)
        for one in step:
            one[field] = value
        return step

    def most_to_gain(step, machine):
        now_s = step_s(step, machine)
        gains = {c: now_s / step_s(changing(step, c), machine) for c in ("kernels", "launch", "synchronisation")}
        gains |= {c: now_s / step_s(changing(step, c), machine) for c in ("data", "copy")}
        return "data", gains

    got = collect(exercises["most_to_gain"], {"most_to_gain": most_to_gain}, given_halves(cases[:3]))

    assert judge(exercises["most_to_gain"], cases[:3], got, want[:3], points=1).what.startswith(told)


@pytest.fixture(scope="module")
def blamed(exercises):
    """`blamed(picks)`: the outcome where `picks(charges, case, right)` gives the line of each public case."""
    cases, want = facts("lab05_profiling").golden("blame")

    def blamed(picks):
        got = []
        for case, right in zip(cases, want, strict=True):
            charges = {(pattern, line): spent_s for pattern, line, spent_s in right["charges"]}
            got.append({"value": {**right, "line": picks(charges, case, right["line"])}})
        return judge(exercises["blame"], cases, got, want, points=1)

    return blamed


def of_the_pattern(charges, pattern):
    return {line: spent_s for (of, line), spent_s in charges.items() if of == pattern}


def most_of_all(charges, pattern):
    spent = {}
    for (_, line), spent_s in charges.items():
        spent[line] = spent.get(line, 0.0) + spent_s
    return max(spent, key=spent.get)


@pytest.mark.parametrize(
    ("criterion", "told"),
    [
        (
            lambda c, p: min(of_the_pattern(c, p), key=of_the_pattern(c, p).get),
            "you returned the line with the smallest charge",
        ),
        (lambda c, p: max(of_the_pattern(c, p)), "you returned the last line in alphabetical order"),
        (
            lambda c, p: list(of_the_pattern(c, p))[-1],
            "you returned the last line that `charges()` returns for the pattern",
        ),
        (most_of_all, "your code ignores the pattern"),
    ],
)
def test_lines_that_another_criterion_picks_are_told(blamed, criterion, told):
    assert blamed(lambda charges, case, right: criterion(charges, case["pattern"])).what.startswith(told)


def test_the_longest_wait_is_told_where_the_waits_alone_are_wrong(blamed):
    def picks(charges, case, right):
        waits = [span for span in case["spans"] if span["kind"] == "wait"]
        longest = max(waits, key=lambda span: span["end_s"] - span["start_s"], default={})
        return longest["line"] if case["pattern"] == "synchronisation" else right

    outcome = blamed(picks)

    assert "you returned the line with the pattern's longest span" in outcome.what
    assert "all 3 cases with 'synchronisation'" in outcome.why


def test_one_other_line_is_told_what_it_is_charged_with(blamed):
    asked = []

    def picks(charges, case, right):
        asked.append(case["pattern"])
        of = of_the_pattern(charges, case["pattern"])
        return min(of, key=of.get) if asked[-1] == "gpu" and asked.count("gpu") == 1 else right

    outcome = blamed(picks)

    assert outcome.what == "a different line costs this step more time by its kernels"
    assert "the charges for 'gpu' are: " in outcome.why


def test_who_ran_in_the_gap_of_a_wait_is_told_of_the_wait(blamed):
    def picks(charges, case, right):
        if case["pattern"] != "synchronisation":
            return right
        end_s = max(s["end_s"] for s in case["spans"] if s["line"] == right and s["kind"] == "wait")
        later = (s for s in case["spans"] if s["kind"] == "python" and abs(s["start_s"] - end_s) < 1e-9)
        return next(later)["line"]

    assert blamed(picks).what.startswith("you blamed the line that ran while the device was idle")
