"""pipeline: what an idle time is told, by what it has in common with the right one in all cases."""

from __future__ import annotations

from typing import Any

import pytest

SHRUNK = "your answer shrinks the bubble of 1F1B, but 1F1B does not shrink the bubble"


def idle(times: Any) -> Any:
    """The right time, and `times` of the stages, the forward pass and the backward pass for 1F1B."""

    def idle_seconds(schedule, stages, micro, *, forward_s, backward_s, chunks):
        if schedule == "1f1b":
            return times(stages, forward_s, backward_s)
        return (stages - 1) * (forward_s + backward_s) / chunks

    return idle_seconds


@pytest.mark.parametrize("part", [0.5, 0.18 / 0.43, 0.99])
def test_a_constant_part_of_the_right_time_shrinks_the_bubble(judged, part):
    outcome = judged("pipeline", idle_seconds=idle(lambda p, forward, backward: part * (p - 1) * (forward + backward)))

    assert SHRUNK == outcome.what
    assert "expected" not in outcome.why


@pytest.mark.parametrize(
    "times",
    [
        lambda p, forward, backward: (p - 1) * forward + (p - 2) * backward,
        lambda p, forward, backward: (p - 1) * (forward + forward),
    ],
)
def test_other_times_that_are_too_short_do_not(judged, times):
    outcome = judged("pipeline", idle_seconds=idle(times))

    assert (0, "your idle time of a stage is wrong") == (outcome.points, outcome.what)


def test_an_order_that_is_wrong_comes_before_the_time(judged, solution):
    def order(schedule, stage, stages, micro):
        return solution["order"]("gpipe", stage, stages, micro)

    half = idle(lambda p, forward, backward: 0.5 * (p - 1) * (forward + backward))

    assert SHRUNK != judged("pipeline", idle_seconds=half, run_stage=with_order(solution, order)).what


def with_order(solution: dict[str, Any], order: Any) -> Any:
    """The solution's run_stage with another order."""
    from types import FunctionType

    run = solution["run_stage"]
    return FunctionType(run.__code__, {**run.__globals__, "order": order}, run.__name__, run.__defaults__)
