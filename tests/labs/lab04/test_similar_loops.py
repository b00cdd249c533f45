"""whose_fault: rules that are wrong are named, and what a timeline looks like tells next to nothing of its verdict."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from edl_labs.exercises.lab04_data_pipelines import whose_fault as loops
from edl_labs.exercises.lab04_data_pipelines.judge import drawn_loops
from edl_labs.exercises.lab04_data_pipelines.whose_fault import VERDICTS

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
        (lambda one, other: by_rates(other, one), "your code confuses data-bound and compute-bound"),
        (
            lambda one, other: by_rates(max(one, other), other),
            "your function always answers 'balanced' for a slower loader",
        ),
        (
            lambda one, other: by_rates(one, max(one, other)),
            "your function always answers 'balanced' for a slower device",
        ),
        (lambda one, other: by_rates(one / other, 1.2), "this loop is not"),
    ],
)
def test_a_rule_that_is_wrong_in_every_loop_is_named(judged, rule, told):
    def verdict(timeline):
        return rule(loops._rate(timeline, "load", skip=1), loops._rate(timeline, "step"))

    assert told in judged("whose_fault", whose_fault=verdict).what


def without(first):
    """A verdict by the mean of the loads, without the first one of so many workers."""

    def verdict(timeline):
        taken = list(loops._taken(timeline, "load").values())
        times = [time_s for place, row in enumerate(taken) for time_s in row[place < first(len(taken)) :]]
        return by_rates(len(taken) * len(times) / sum(times), loops._rate(timeline, "step"))

    return verdict


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (lambda workers: 0, "your code counts each worker's first batch"),
        (lambda workers: 1, "your code leaves out only a single first batch, instead of one for each worker"),
        (lambda workers: (workers + 1) // 2, "this loop is not"),
    ],
)
def test_which_first_batches_count_is_named(judged, first, told):
    assert judged("whose_fault", whose_fault=without(first)).what.startswith(told)


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_of_a_drawn_loop_is_the_injected_one(solution, seed):
    import numpy

    rng = numpy.random.default_rng(seed)
    for verdict in VERDICTS:
        for number in range(drawn_loops.EACH):
            case = drawn_loops._drawn(rng, verdict, number)

            assert verdict == solution["whose_fault"](case["timeline"])


@pytest.mark.slow
@pytest.mark.parametrize("most", [0.02, 0.05, 0.08, 0.12, 0.2])
def test_how_long_the_device_waits_earns_little_whatever_the_threshold(judged, most):
    def by_idle_share(timeline):
        steps = [(span["start_s"], span["end_s"]) for span in timeline if span["row"] == "device"][6:]
        idle_s = sum(later[0] - earlier[1] for earlier, later in itertools.pairwise(steps))
        share = idle_s / (steps[-1][1] - steps[0][0])
        return "data-bound" if share > most else "compute-bound" if share < most / 6 else "balanced"

    points = [judged("whose_fault", seed=seed, whose_fault=by_idle_share).points for seed in range(6)]

    assert max(points) < 0.4


def test_a_constant_verdict_earns_nothing_and_one_mistake_costs_a_little(judged, solution):
    for verdict in VERDICTS:
        assert 0 == judged("whose_fault", whose_fault=lambda timeline, verdict=verdict: verdict).points

    seen = []

    def one_mistake(timeline):
        seen.append(0)
        right = solution["whose_fault"](timeline)
        return right if len(seen) > 1 else {"balanced": "data-bound"}.get(right, "balanced")

    assert 0.8 < judged("whose_fault", whose_fault=one_mistake).points < 1


@pytest.mark.parametrize(("data_from", "compute_from"), [(1.0989, 1.1), (1.1011, 1.1), (1.1, 1.0989), (1.1, 1.1011)])
def test_a_threshold_a_thousandth_off_loses_points(judged, data_from, compute_from):
    def verdict(timeline):
        times = {}
        for span in timeline:
            times.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
        loads = [later for row in times if row.startswith("worker") for later in times[row][1:]]
        workers, steps = sum(row.startswith("worker") for row in times), times["device"][1:]
        ratio = sum(loads) / len(loads) / workers / (sum(steps) / len(steps))
        return "data-bound" if ratio > data_from else "compute-bound" if ratio < 1 / compute_from else "balanced"

    assert 0.7 < judged("whose_fault", whose_fault=verdict).points < 1


def test_medians_do_as_well_as_means(judged):
    from statistics import median

    def with_medians(timeline):
        times = {}
        for span in timeline:
            times.setdefault(span["row"], []).append(span["end_s"] - span["start_s"])
        workers = [row for row in times if row.startswith("worker")]
        load_s = median(t for row in workers for t in times[row][1:]) / len(workers)
        ratio = load_s / median(times["device"])
        return "data-bound" if ratio > 1.1 else "compute-bound" if ratio < 1 / 1.1 else "balanced"

    assert judged("whose_fault", whose_fault=with_medians).points >= 0.9
