"""What lab03's accumulate_sum says of Kahan's sum with one thing wrong, and that its neighbours are told otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.recorded_sums import AccumulateSum

CASE = {"name": "bf16", "mantissa_bits": 7, "low": -126, "values": [1.0] * 600}  # 256 + 1 is 256 there
ZERO = "the rounding error that you compute is always 0"
LAST = "your code adds back only one loss, the last one, after all values have been added"


def told(sum_low) -> str:
    """What is said of the sum; nothing of one that is right."""
    exercise = AccumulateSum()
    try:
        exercise.compare(CASE, exercise.probe(SimpleNamespace(sum_low=sum_low), CASE), None)
    except Wrong as wrong:
        return wrong.what
    return ""


def kahan(values, *, loss, given_back=lambda number, value, lost: value - lost, at_the_end=()):
    """Kahan's sum with another loss; `at_the_end` are the losses that come off the whole sum, where none did before."""
    total, lost, losses = 0, 0, []
    for number, value in enumerate(values):
        added = value if at_the_end else given_back(number, value, lost)
        new = total + added
        lost = loss(new, total, added)
        losses.append(lost)
        total = new
    for index in at_the_end:
        total = total - losses[index]
    return total


def regrouped(new, total, added):
    return new - (total + added)


def lost_in_the_sum(new, total, added):
    return (new - total) - added


def test_a_loss_that_is_the_difference_of_one_sum_with_itself_is_named():
    assert ZERO == told(lambda values: kahan(values, loss=regrouped))
    assert ZERO == told(lambda values: kahan(values, loss=lambda new, total, added: (added + total) - new))


def test_one_loss_at_the_end_is_named():
    assert LAST == told(lambda values: kahan(values, loss=lost_in_the_sum, at_the_end=[-1]))


@pytest.mark.parametrize(
    "neighbour",
    [
        lambda values: kahan(values, loss=lost_in_the_sum, given_back=lambda number, value, lost: value + lost),
        lambda values: kahan(values, loss=lost_in_the_sum, at_the_end=[0]),
        lambda values: kahan(values, loss=lost_in_the_sum, at_the_end=[-2, -1]),
        lambda values: kahan(values, loss=lambda new, total, added: new - new),
        lambda values: kahan(values, loss=lambda new, total, added: (new - total) - (total + added)),
    ],
    ids=["the other sign", "the first", "the last two", "itself", "another difference"],
)
def test_a_neighbour_of_the_two_is_told_something_else(neighbour):
    assert told(neighbour) not in ("", ZERO, LAST)


def test_what_is_right_is_told_nothing():
    assert "" == told(lambda values: kahan(values, loss=lost_in_the_sum))
