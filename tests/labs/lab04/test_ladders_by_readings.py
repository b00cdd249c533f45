"""stage_ladder: more readings than needed pass, what nobody measured does not, and one sample alone is named."""

from __future__ import annotations

import pytest


def test_a_ladder_of_more_readings_than_needed_passes(judged, solution):
    def nervous(vw, stages, *, samples):
        ladder = []
        for count, (name, function) in enumerate(stages, 1):
            times_s = []
            for functions in ([function], [f for _, f in stages[:count]]):
                vw.drop_cache()
                vw.now_s()
                began_s = vw.now_s()
                for sample in range(samples):
                    for one in functions:
                        one(sample)
                times_s.append((vw.now_s() - began_s) / samples)
            ladder.append([name, *times_s])
        return ladder

    assert "passed" == judged("stage_ladder", stage_ladder=nervous).state


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (lambda samples: [0], "your code ran only one sample, but each figure must be the mean over all samples"),
        (
            lambda samples: samples * [3],
            "your code ran only one sample, but each figure must be the mean over all samples",
        ),
        (lambda samples: [0, samples - 1], "one of your rungs is wrong"),
    ],
)
def test_a_ladder_of_one_sample_is_named(judged, chosen, told):
    def of_some(vw, stages, *, samples):
        ladder, some = [], chosen(samples)
        for count, (name, function) in enumerate(stages, 1):
            times_s = []
            for functions in ([function], [f for _, f in stages[:count]]):
                vw.drop_cache()
                began_s = vw.now_s()
                for sample in some:
                    for one in functions:
                        one(sample)
                times_s.append((vw.now_s() - began_s) / len(some))
            ladder.append((name, *times_s))
        return ladder

    assert told == judged("stage_ladder", stage_ladder=of_some).what


def test_a_ladder_that_nobody_measured_is_refused(judged, solution):
    def made_up(vw, stages, *, samples):
        rungs = solution["stage_ladder"](vw, stages, samples=samples)
        return [(name, 1.001 * alone, 1.001 * together) for name, alone, together in rungs]

    assert (
        "one of your figures is not the difference "
        "of any two clock readings" == judged("stage_ladder", stage_ladder=made_up).what
    )


def test_a_ladder_on_a_tampered_record_is_refused(judged, solution):
    def forged(vw, stages, *, samples):
        rungs = solution["stage_ladder"](vw, stages, samples=samples)
        vw._recorded[-1]["value"] = 0.5
        return rungs

    assert "the recorded program cannot be replayed on this machine" == judged("stage_ladder", stage_ladder=forged).what
