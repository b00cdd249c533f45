"""whose_fault: the labelled loop that a timeline is most like tells next to nothing about its verdict."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from edl_labs.exercises.lab04_data_pipelines import whose_fault as loops

SECRET = range(1000, 1030)
KINDS = (("worker", "load"), ("host", "next"), ("host", "launch"), ("host", "item"), ("device", "step"))
WAYS = {
    "the host's time": lambda f: f["shares"][1:4],
    "how busy the device is": lambda f: [*f["shares"][4:], f["workers"]],
    "time by kind": lambda f: f["shares"],
    "longest spans": lambda f: f["longest"],
    "counts": lambda f: [*f["counts"], f["workers"]],
    "everything": lambda f: [*f["shares"], *f["longest"], *f["counts"], f["workers"], f["length"]],
}


def features(timeline):
    """The time of each kind of span and its longest one, as shares of all; how many there are; workers; how long."""
    whole_s = max(span["end_s"] for span in timeline)
    counts, times, longest = Counter(), Counter(), Counter()
    for span in timeline:
        kind, took = (span["row"].split()[0], span["kind"]), (span["end_s"] - span["start_s"]) / whole_s
        counts[kind] += 1
        times[kind] += took
        longest[kind] = max(longest[kind], took)
    return {
        "shares": [times[kind] for kind in KINDS],
        "longest": [longest[kind] for kind in KINDS],
        "counts": [counts[kind] for kind in KINDS],
        "workers": len({span["row"] for span in timeline if span["row"].startswith("worker")}),
        "length": float(np.log(whole_s)),
    }


@pytest.fixture(scope="module")
def labelled(exercises, solution):
    """The features and the verdicts of a draw."""

    def of_seed(seed):
        timelines = [case["timeline"] for case in exercises["whose_fault"].draw_cases(seed)]
        return [features(t) for t in timelines], [solution["whose_fault"](t) for t in timelines]

    return {seed: of_seed(seed) for seed in (1, *SECRET)}


@pytest.mark.parametrize("way", WAYS)
def test_the_most_similar_public_loop_does_not_tell_the_verdict(exercises, labelled, way):
    shown, verdicts = labelled[1]
    known = np.array([WAYS[way](one) for one in shown], dtype=float)
    spread, earned = known.std(axis=0) + 1e-9, []
    for seed in SECRET:
        asked = np.array([WAYS[way](one) for one in labelled[seed][0]], dtype=float)
        nearest = (((asked[:, None] - known[None]) / spread) ** 2).sum(axis=2).argmin(axis=1)
        hits = [float(verdicts[at] == right) for at, right in zip(nearest, labelled[seed][1], strict=True)]
        earned.append(exercises["whose_fault"].spec.combine(hits))

    assert sum(earned) / len(earned) < 0.03


def by_rates(loader, trainer):
    return "balanced" if 1 / 1.1 <= loader / trainer <= 1.1 else "data-bound" if loader < trainer else "compute-bound"


@pytest.mark.slow
@pytest.mark.parametrize("side", [side for side in loops._SIDES if "one worker" not in side])
def test_a_side_that_is_misread_in_every_loop_is_named(judged, side):
    outcome = judged("whose_fault", whose_fault=lambda timeline: by_rates(*dict(loops._rates(timeline))[side]))

    assert loops._SIDES[side][0] == outcome.what


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (lambda one, other: by_rates(other, one), "data-bound and compute-bound are the wrong way round"),
        (lambda one, other: by_rates(max(one, other), other), "a loader that is slower was called balanced"),
        (lambda one, other: by_rates(one, max(one, other)), "a device that is slower was called balanced"),
        (lambda one, other: by_rates(one / other, 1.2), "this loop is not"),
    ],
)
def test_a_rule_that_is_wrong_in_every_loop_is_named(judged, rule, told):
    def verdict(timeline):
        return rule(loops._rate(timeline, "load", skip=1), loops._rate(timeline, "step"))

    assert told in judged("whose_fault", whose_fault=verdict).what
