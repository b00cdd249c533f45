"""What most_to_gain and blame say of a mistake that the answers to all cases show."""

from __future__ import annotations

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_facts import facts
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
        ("launch", dropping("launch"), "the kernels went with their launches"),
        ("launch", lasting_as_the_longest, "the joined launch lasts as long as its longest kernel"),
        ("copy", dropping("copy"), "the copies were removed, where their memory is pinned"),
        ("synchronisation", dropping("item"), "item went and sync stayed"),
        ("kernels", dropping("launch"), "the launches were removed, kernels and all, where they take half their time"),
        ("data", dropping("load", "copy"), "the copies went with the loads"),
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

    assert "removing launch gains less than that" == outcome.what
    assert "is right; launches with only Python between them become one" in outcome.why


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (lambda now_s, gain: now_s - now_s / gain, "the seconds that are saved came back, not speed-ups"),
        (lambda now_s, gain: 1 - 1 / gain, "the share of the time that is saved came back, not a speed-up"),
        (lambda now_s, gain: 1 / gain, "a speed-up is turned upside down"),
    ],
)
def test_another_measure_of_the_gain_is_told(gained, number, told):
    assert told == gained(lambda case, now_s, gains: {c: number(now_s, gain) for c, gain in gains.items()}).what


@pytest.mark.parametrize(
    ("cause", "field", "value", "told"),
    [
        ("kernels", "duration_s", 1e-6, "the step that was given is changed, so that other causes"),
        ("copy", "pinned", True, "the kernels went with their launches"),  # after which nothing else is removed
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

    got = collect(exercises["most_to_gain"], {"most_to_gain": most_to_gain}, cases[:3])

    assert judge(exercises["most_to_gain"], cases[:3], got, want[:3], points=1).what.startswith(told)
