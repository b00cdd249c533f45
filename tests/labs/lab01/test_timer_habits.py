"""honest_timer: what the programs of all machines show is told, and what only looks like it is not."""

from __future__ import annotations

from statistics import mean, median
from types import SimpleNamespace

import pytest

from tests.labs.lab01.test_timers import timed_run


@pytest.fixture
def habit(exercises):
    """What a timer's programs and numbers tell, on all machines of a draw; empty where they tell no habit."""

    def habit(timer):
        spec, cases = exercises["honest_timer"].spec, exercises["honest_timer"].draw_cases(1)
        got = [spec.probe(SimpleNamespace(time_device=timer), dict(case.given)) for case in cases]
        return getattr(spec.diagnose_all_cases(cases, got, [{}] * len(cases)), "what", "")

    return habit


def warm(fn, gpu, calls=3):
    for _ in range(calls):
        fn()
    gpu.synchronize()


def runs_of(calls, *, runs, pick, warm_calls=3):
    def timer(fn, gpu):
        warm(fn, gpu, warm_calls)
        return pick([timed_run(fn, gpu, calls) / calls for _ in range(runs)])

    return timer


def after_a_cold_call(*calls):
    def timer(fn, gpu):
        timed_run(fn, gpu, 1)
        return [timed_run(fn, gpu, count) / count for count in calls][-1]

    return timer


def waits_for(pick_stream, *, also=lambda gpu: None):
    def timer(fn, gpu):
        stream = pick_stream(gpu)
        fn()
        stream.synchronize()
        start_s = gpu.now_s()
        for _ in range(50):
            fn()
        stream.synchronize()
        stop_s = gpu.now_s()
        also(gpu)
        return (stop_s - start_s) / 50

    return timer


def without(share_of):
    """Of 128 calls, the time after they were issued; `share_of` says what is divided by their number."""

    def timer(fn, gpu):
        warm(fn, gpu)
        start_s = gpu.now_s()
        for _ in range(128):
            fn()
        issued_s = gpu.now_s()
        gpu.synchronize()
        return share_of(start_s, issued_s, gpu.now_s()) / 128

    return timer


SINGLE = "your timer times each call separately, and waits for each one"
LEAST = "too few calls for this clock, and your timer returns the shortest of several runs"
COLD = "too few calls: their number is derived from a cold call, or is fixed"
ELSEWHERE = "your timer waits for a stream in which no kernel runs"
SUBTRACTED = "your timer subtracts the time in which it issues the calls"


@pytest.mark.parametrize(
    ("timer", "told"),
    [
        (runs_of(1, runs=12, pick=mean), SINGLE),
        (runs_of(1, runs=12, pick=min), SINGLE),
        (runs_of(30, runs=7, pick=min), LEAST),
        (after_a_cold_call(20), COLD),
        (waits_for(lambda gpu: gpu.Stream()), ELSEWHERE),
        (without(lambda start_s, issued_s, done_s: done_s - issued_s), SUBTRACTED),
    ],
)
def test_a_habit_that_all_programs_show_is_told(habit, timer, told):
    assert told == habit(timer)


@pytest.mark.parametrize(
    "timer",
    [
        runs_of(1, runs=4, pick=median),
        runs_of(30, runs=7, pick=median),
        runs_of(30, runs=7, pick=max),
        runs_of(30, runs=1, pick=min),
        after_a_cold_call(1, 20),
        runs_of(20, runs=1, pick=min, warm_calls=1),
        waits_for(lambda gpu: gpu.Stream(), also=lambda gpu: gpu.synchronize()),
        without(lambda start_s, issued_s, done_s: issued_s - start_s),
        without(lambda start_s, issued_s, done_s: done_s - issued_s - 1e-5),
    ],
)
def test_what_only_looks_like_a_habit_is_not_told(habit, timer):
    assert "" == habit(timer)
