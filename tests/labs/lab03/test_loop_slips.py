"""What lab03's bug_hunt says of a schedule that moves at the wrong steps, and of gradients that keep their scale."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab03_mixed_precision.bug_hunt import BugHunt
from edl_labs.exercises.lab03_mixed_precision.loop_slips import overflows, times_too_large

GROWTH = "train_scheduled moves the schedule only when the scale grew"


def scheduled(case, moves):
    """What train_scheduled leaves when it moves the schedule where `moves(batch number, taken, grew)` says so."""
    weights, lr, scale, clean = np.array(case["weights"]), case["lr"], case["init_scale"], 0
    for number, batch in enumerate(case["batches"]):
        taken = not overflows(batch)
        if taken:
            x, y = np.array(batch["x"]), np.array(batch["y"]).ravel()
            weights = weights - lr * 2 / len(y) * x.T @ (x @ weights - y)
        clean = clean + 1 if taken else 0
        scale *= (2.0 if clean == 3 else 1.0) if taken else 0.5
        lr *= 0.5 if moves(number, taken, clean == 3) else 1.0
        clean %= 3
    return {"unwritten": False, "weights": list(map(float, weights)), "scale": scale, "values": [float(lr)]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("moves", "what"),
    [
        (lambda number, taken, grew: grew, GROWTH),
        (lambda number, taken, grew: grew or not taken, None),
        (lambda number, taken, grew: number % 3 == 1, None),
        (lambda number, taken, grew: taken and not grew, None),
        (lambda number, taken, grew: True, None),
    ],
)
def test_a_schedule_is_known_by_its_rate_and_its_weights(exercises, seed, moves, what):
    cases = [case for case in exercises["bug_hunt"].draw_cases(seed) if case["loop"] == "train_scheduled"]
    want = [scheduled(case, lambda number, taken, grew: taken) for case in cases]
    came = [scheduled(case, moves) for case in cases]

    told = BugHunt().diagnose_all_cases(cases, came, want)

    assert what == (told and told.what)
    assert BugHunt().diagnose_all_cases(cases, [came[0], want[1]], want) is None


def test_a_loop_before_it_that_is_wrong_is_told_first(exercises):
    cases = exercises["bug_hunt"].draw_cases(1)
    cases = [case for case in cases if case["loop"] in ("train_clipped", "train_scheduled")]
    want = [scheduled(case, lambda number, taken, grew: taken) for case in cases]
    came = [scheduled(case, lambda number, taken, grew: grew) for case in cases]

    assert GROWTH == BugHunt().diagnose_all_cases(cases, want[:2] + came[2:], want).what
    assert BugHunt().diagnose_all_cases(cases, [{**want[0], "unwritten": True}, want[1], *came[2:]], want) is None


def test_gradients_that_are_alike_times_too_large_tell_how_many():
    case = {"weights": [0.0] * 3, "batches": [{"x": [[1.0, -2.0, 0.0]], "y": [[3.0]]}]}

    assert 8.0 == pytest.approx(times_too_large(case, [-48.0, 96.0, 0.0]))
    assert [None] * 5 == [
        times_too_large(case, gradients)
        for gradients in ([48.0, -96.0, 0.0], [-48.0, 48.0, 0.0], [-48.0, 96.0, 48.0], [-48.0, math.inf, 0.0], [])
    ]


@pytest.mark.parametrize(
    ("first", "what", "next_words"),
    [
        (2.0**30, "train_static takes steps with gradients that are still scaled", "what undoes that"),
        (1.0, "train_static overflows", "is every gradient divided"),
        (math.inf, "train_static overflows", "how large may a scale be if"),
    ],
)
def test_weights_that_are_no_numbers_are_told_by_the_first_gradients(exercises, first, what, next_words):
    case = next(case for case in exercises["bug_hunt"].draw_cases(1) if case["loop"] == "train_static")
    batch = case["batches"][0]
    x, y = np.array(batch["x"]), np.array(batch["y"]).ravel()
    gradients = [float(value) * first for value in -2 / len(y) * x.T @ y]
    got = {"unwritten": False, "weights": [math.nan] * 3, "scale": 0.0, "values": gradients}

    with pytest.raises(Wrong) as told:
        BugHunt().compare(case, got, None)

    assert what == told.value.what
    assert next_words in told.value.next


def test_a_static_loop_is_shown_without_a_scale(exercises):
    shown = [BugHunt().format_case(case) for case in exercises["bug_hunt"].draw_cases(1)]

    assert 8 == sum("scale" in text for text in shown)
    assert not any("scale" in text for text in shown if text.startswith("train_static"))
