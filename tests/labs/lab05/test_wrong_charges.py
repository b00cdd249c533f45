"""What name_the_pattern says of charges that are all wrong in the same way, and of near misses."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab05_profiling.wrongly_charged import known_charge


def span(row, kind, begun, ended, line, name="op"):
    return {"row": row, "kind": kind, "name": name, "line": line, "start_s": begun * 1e-6, "end_s": ended * 1e-6}


SPANS = [
    span("host", "load", 0, 30, "a:1"),
    span("host", "call", 30, 40, "a:2"),
    span("stream 0", "kernel", 40, 90, "a:2"),
    span("stream 1", "kernel", 80, 100, "a:3"),
    span("host", "wait", 50, 100, "a:4"),
    span("host", "python", 100, 120, "a:5"),
    span("host", "load", 120, 130, "a:1"),
]
RIGHT = {
    ("data", "a:1"): 40.0,
    ("launch", "a:2"): 10.0,
    ("gpu", "a:2"): 50.0,
    ("gpu", "a:3"): 10.0,
    ("synchronisation", "a:4"): 20.0,
}


def evidence(charges, name="gpu"):
    return {"name": name, "charges": [[*place, spent * 1e-6] for place, spent in charges.items()]}


def told(charges, name="gpu"):
    found = known_charge([{"spans": SPANS}], [evidence(charges, name)], [evidence(RIGHT)])
    return found.what if found else ""


@pytest.mark.parametrize(
    ("charges", "what"),
    [
        ({place: spent / 130e-6 for place, spent in RIGHT.items()}, "shares of the window"),
        (RIGHT | {("synchronisation", "a:4"): 50.0}, "your code charges the whole duration of waits"),
        (RIGHT | {("gpu", "a:2"): 40.0, ("gpu", "a:3"): 20.0}, "the time of overlapping kernels"),
        (RIGHT | {("data", "a:1"): 30.0, ("synchronisation", "a:4"): 30.0}, "loading in a gap"),
        (RIGHT | {("launch", "a:2"): 2.0, ("synchronisation", "a:4"): 28.0}, "no wait began this gap"),
        (RIGHT | {("synchronisation", "a:4"): 1.0}, "Python in gaps"),
        (
            RIGHT | {("gpu", "a:2"): 30.0, ("data", "a:1"): 10.0},
            "in your code, a later charge of a line replaces an earlier one",
        ),
    ],
)
def test_charges_that_are_wrong_in_one_way_are_named(charges, what):
    assert what in told(charges)


@pytest.mark.parametrize(
    "charges",
    [
        RIGHT,
        RIGHT | {("synchronisation", "a:4"): 45.0},  # not the wait's length
        RIGHT | {("gpu", "a:2"): 30.0, ("data", "a:1"): 60.0},  # one less, another more
        RIGHT | {("data", "a:1"): 30.0},  # a load of one gap is left out
    ],
)
def test_what_fits_no_rule_is_left_to_the_case(charges):
    assert "" == told(charges)


def test_right_charges_and_a_wrong_name_are_named_by_how_it_was_chosen():
    assert "last in alphabetical order" in told(RIGHT, "synchronisation")
    assert "" == told(RIGHT, "data")
