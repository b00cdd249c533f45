"""Micro-batches on virtual time: worked out by hand, what a rule may not give, and no request lost on drawn loads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.errors import EdlError
from edl_labs.virtual.server import BatchLimits, BatchRules, RefusedDecision, ServiceRun, serve_micro_batches


def accepts(queue, limits):
    return limits.max_queue > len(queue)


def expired(now_s, queue, limits):
    return [one.number for one in queue if one.arrival_s + limits.timeout_s < now_s]


def due(now_s, queue, limits):
    oldest, full = queue[0], len(queue) >= limits.max_batch
    moment_s = oldest.arrival_s + limits.max_wait_s
    return list(queue[: limits.max_batch]) if full or now_s >= moment_s else moment_s


RULES = BatchRules(accepts, expired, due)


def two_seconds(size):
    return 2.0


def test_a_batch_begins_when_its_oldest_has_waited_or_it_is_full():
    run = serve_micro_batches([0.0, 0.5, 9.0, 9.0, 9.0], BatchLimits(3, 1.0), RULES, two_seconds)

    assert [(1.0, 3.0, (0, 1)), (9.0, 11.0, (2, 3, 4))] == list(run.batches)
    assert [3.0, 2.5, 2.0, 2.0, 2.0] == run.summary.latencies_s


def test_who_comes_while_a_batch_runs_waits_for_its_end_and_no_longer():
    run = serve_micro_batches([0.0, 0.5, 1.0], BatchLimits(3, 0.0, timeout_s=9.0), RULES, two_seconds)

    assert [(0.0, (0,)), (2.0, (1, 2))] == [(one.start_s, one.numbers) for one in run.batches]


def test_who_finds_the_queue_full_is_refused_at_once_and_who_waited_too_long_at_the_next_moment():
    run = serve_micro_batches(
        [0.0, 0.5, 1.0, 1.5], BatchLimits(1, 0.0, max_queue=2, timeout_s=1.25), RULES, two_seconds
    )

    assert ["answered", "timed out", "answered", "full"] == [one.outcome for one in run.calls]
    assert [2.0, 2.0, 4.0, 1.5] == [one.end_s for one in run.calls]
    assert 0.5 == run.summary.refused_share


def test_who_comes_at_the_end_of_a_batch_is_in_the_queue_before_the_next_is_chosen():
    run = serve_micro_batches([0.0, 1.0, 2.0], BatchLimits(2, 0.0), RULES, two_seconds)

    assert (2.0, (1, 2)) == (run.batches[1].start_s, run.batches[1].numbers)


def test_a_rule_that_waits_for_ever_leaves_requests_unanswered():
    never = BatchRules(accepts, expired, lambda now_s, queue, limits: math.inf)
    run = serve_micro_batches([0.0, 1.0], BatchLimits(), never, two_seconds)

    assert ["unanswered"] * 2 == [one.outcome for one in run.calls]
    assert (1.0, 0.0, 0.0) == (run.summary.refused_share, run.summary.answered_per_s, run.summary.mean_batch)


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        (0.0, "past"),
        ([], "empty"),
        ([0, 1, 2], "large"),
        ([7], "unknown"),
        ([0, 0], "unknown"),
        (None, "form"),
        (["first"], "form"),
    ],
)
def test_a_decision_that_no_service_could_carry_out_is_refused_by_kind(chosen, kind):
    rules = BatchRules(accepts, expired, lambda now_s, queue, limits: chosen)

    with pytest.raises(RefusedDecision) as caught:
        serve_micro_batches([0.0, 0.0, 0.0], BatchLimits(max_batch=2), rules, two_seconds)

    assert kind == caught.value.kind


def test_a_rule_that_gives_up_who_does_not_wait_is_refused():
    rules = BatchRules(accepts, lambda now_s, queue, limits: [3], due)

    with pytest.raises(RefusedDecision, match="no waiting request has this number"):
        serve_micro_batches([0.0], BatchLimits(), rules, two_seconds)


def test_a_batch_takes_time():
    with pytest.raises(EdlError, match="a batch must take a positive time"):
        serve_micro_batches([0.0], BatchLimits(), RULES, lambda size: 0.0)


def test_a_rule_that_asks_again_for_ever_stops():
    rules = BatchRules(accepts, expired, lambda now_s, queue, limits: math.nextafter(now_s, math.inf))
    run = serve_micro_batches([1.0], BatchLimits(), rules, two_seconds)

    assert "unanswered" == run.calls[0].outcome


def test_figures_of_a_run_go_to_json_and_back():
    run = serve_micro_batches([0.0, 0.5, 1.0], BatchLimits(2, 0.0, timeout_s=9.0), RULES, two_seconds).summary

    assert run == ServiceRun.from_json(run.to_json())
    assert 3 / 4 == run.answered_per_s


eighths = st.integers(0, 80).map(lambda n: n / 8)


@given(
    came=st.lists(eighths, min_size=1, max_size=30).map(sorted),
    limits=st.builds(
        BatchLimits,
        max_batch=st.integers(1, 5),
        max_wait_s=eighths.map(lambda t: t / 8),
        max_queue=st.integers(1, 8),
        timeout_s=st.integers(80, 160).map(lambda n: n / 8),
    ),
    each_s=st.integers(1, 8).map(lambda n: n / 8),
)
def test_every_request_has_one_end_and_batches_keep_to_the_limits(came, limits, each_s):
    run = serve_micro_batches(came, limits, RULES, lambda size: 1.0 + each_s * size)
    ran = [number for batch in run.batches for number in batch.numbers]

    assert sorted(ran) == [number for number, one in enumerate(run.calls) if one.outcome == "answered"]
    assert ran == sorted(ran)  # first come, first served
    assert "unanswered" not in {one.outcome for one in run.calls}
    assert all(len(batch.numbers) <= limits.max_batch for batch in run.batches)
    for batch, after in zip(run.batches, run.batches[1:], strict=False):
        assert batch.end_s <= after.start_s
    for batch in run.batches:
        oldest_s = came[batch.numbers[0]]
        assert batch.start_s - oldest_s <= limits.timeout_s
        if len(batch.numbers) < limits.max_batch:
            assert batch.start_s - oldest_s >= limits.max_wait_s
