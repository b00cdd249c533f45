"""lab10's costs, batches, gains and curves: by hand, against the library, and on drawn runs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest

from edl_labs.exercises.lab10_capstone import ranked_gains
from edl_labs.exercises.lab10_capstone.curves_of_seeds import MOST_WRONG
from edl_labs.exercises.lab10_capstone.judge import drawn_curves
from edl_labs.virtual import VirtualGPUError, VirtualMachine
from edl_labs.virtual.operation_runs import as_picture, run_s, run_spans
from tests.labs.blind.test_blind import answers
from tests.sampling import few

BLIND = Path(__file__).parents[1] / "blind"

MACHINE = VirtualMachine(launch_overhead_s=1e-3, copy_overhead_s=1e-3, link_byte_per_s=1e9, sm_count=108)
STEP = [
    {"op": "host", "name": "decode", "duration_s": 4e-3},
    {"op": "copy", "name": "to device", "nbytes": 5_000_000, "pinned": True, "row": "copies"},
    {"op": "kernel", "name": "forward", "duration_s": 10e-3, "after": "to device"},
    {"op": "kernel", "name": "all-reduce", "duration_s": 6e-3, "row": "network", "after": "forward"},
    {"op": "kernel", "name": "other", "duration_s": 6e-3},
    {"op": "read", "name": "read loss"},
]


def test_a_run_by_hand():
    # 4 decode, 1 call, 5 copy, 10 forward; the sum beside the other kernel, which is followed by the reading.
    spans = run_spans(STEP, MACHINE, count=1)
    ends = {span["name"]: span["end_s"] for span in spans if span["kind"] in ("kernel", "copy")}

    assert [0.010, 0.020, 0.026, 0.026] == pytest.approx([ends[name] for name in _names(STEP)[1:5]])
    assert run_s(STEP, MACHINE, count=1) == pytest.approx(max(span["end_s"] for span in spans))
    assert {"host", "copies", "gpu", "network"} == {span["row"] for span in spans}


def test_what_a_span_comes_after_is_over_when_it_starts():
    for span in (spans := run_spans(STEP, MACHINE, count=3)):
        assert all(spans[at]["end_s"] <= span["start_s"] + 1e-12 for at in span["after"] if span["kind"] != "wait")
        assert all(spans[at]["end_s"] == pytest.approx(span["end_s"]) for at in span["after"] if span["kind"] == "wait")


def test_a_mend_of_nothing_left_issues_nothing():
    without = run_s(STEP, MACHINE, count=2, mends=[{"names": ["read loss"], "times": 0.0}])

    assert run_s(STEP[:-1], MACHINE, count=2) == without


def test_two_mends_of_one_operation_multiply_in_either_order(solution):
    half, tenth = ({"names": ["decode"], "times": times} for times in (0.5, 0.1))
    together = {"names": ["decode"], "times": 0.05}
    spans = run_spans(STEP, MACHINE, count=2)
    for replayed in (
        lambda mends: run_s(STEP, MACHINE, count=2, mends=mends),
        lambda mends: solution["replayed_s"](spans, mends),
    ):
        assert replayed([together]) == pytest.approx(replayed([half, tenth]))
        assert replayed([half, tenth]) == replayed([tenth, half])


def test_an_unknown_operation_is_said():
    with pytest.raises(VirtualGPUError, match="no operation"):
        run_s([{"op": "dance", "name": "d"}], MACHINE, count=1)


def test_a_picture_has_all_spans():
    spans = run_spans(STEP, MACHINE, count=1)

    assert len(spans) == len(as_picture(spans).spans)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_predictions_from_a_timeline_are_what_running_again_shows(solution, exercises, seed):
    for case in exercises["rank_gains"].draw_cases(seed):
        spans, mends = case["spans"], case["mends"]
        for names in itertools.combinations(mends, 2):
            replayed = solution["replayed_s"](spans, [mends[name] for name in names])
            assert ranked_gains.seconds_with(case, names) == pytest.approx(replayed, rel=1e-6)


@pytest.mark.parametrize("seed", [1, 2])
def test_drawn_runs_hide_something_large_and_change_the_order_of_mends(solution, exercises, seed):
    reordered = hiding = 0
    for case in exercises["rank_gains"].draw_cases(seed):
        run_s_ = ranked_gains.seconds_with(case, ())
        alone = {name: run_s_ - ranked_gains.seconds_with(case, (name,)) for name in case["mends"]}
        hidden = [name for name in alone if alone[name] < 0.01 * run_s_]
        hiding += any(case["slips"]["shares"][name] > 0.1 * run_s_ for name in hidden)
        best = sorted(alone, key=alone.get, reverse=True)[:3]
        reordered += best != [name for name, _ in solution["rank"](case["spans"], case["mends"])]

    assert reordered >= 2
    assert hiding >= 3


def test_the_cheapest_way_by_hand(solution):
    run = {"parameters": 10**9, "tokens": 10**10, "batch": 24, "recompute": False, "state_bytes": 16}
    run |= {"activation_bytes": 4e9, "deadline_h": 20.0}
    chip = {"flop_per_s": 1e14, "achieved": 0.5, "memory_bytes": 8e9, "node_gpus": 4, "most_gpus": 24}
    chip |= {"price_per_gpu_h": 2.0, "setup_h": 1.0}
    way = solution["cheapest"](run, chip)

    # 333.3 GPU-hours; 20 in all leaves 19 for them: 17.5 GPUs; 24 divides the batch and fits.
    assert (24, 24) == (way["gpus"], way["rented"])
    assert 6e19 / (24 * 5e13) / 3600 + 1 == pytest.approx(way["hours"])
    assert solution["cheapest"]({**run, "deadline_h": 10.0}, chip) is None
    assert [False, True] == [solution["fits"](run, chip, gpus) for gpus in (3, 4)]


@pytest.mark.parametrize("gpus", [1, 3, 8])
def test_no_batch_ends_sooner_than_the_best(solution, exercises, gpus):
    for case in exercises["time_to_quality"].draw_cases(5):
        job, machine = case["job"], case["machine"]
        best = solution["best_batch"](job, machine, gpus)
        ends = solution["quality_s"](job, machine, best, gpus)
        for other in range(gpus, gpus * machine["most_samples"] + 1, gpus):
            assert ends <= solution["quality_s"](job, machine, other, gpus)


def test_p_by_hand(solution):
    assert 2 / 8 == solution["sign_flip_p"]([1.0, 2.0, 4.0])
    assert 1.0 == solution["sign_flip_p"]([1.0, -1.0])
    assert 6 / 8 == solution["sign_flip_p"]([1.0, -2.0, 4.0])


def test_sign_flips_are_exact_where_nothing_was_changed(solution):
    """Over all sign patterns of one set of sizes, p is at most 1/8 in an eighth of them, and so on."""
    import numpy

    sizes = numpy.array([1.0, 2.0, 4.0, 8.0, 16.0])
    found = [solution["sign_flip_p"](sizes * signs) for signs in itertools.product((1, -1), repeat=5)]
    for level in (1 / 16, 1 / 8, 1 / 4):
        assert level == pytest.approx(sum(p <= level for p in found) / len(found))


@pytest.mark.slow
def test_rates_of_the_solution_over_many_draws(solution):
    import numpy

    alarms, misses, draws = 0, 0, 25
    for seed in range(draws):
        (case,) = drawn_curves.pairs(numpy.random.default_rng(seed))
        for pair, label in zip(case["pairs"], case["labels"], strict=True):
            said = solution["same"](pair["a"], pair["b"])
            alarms += label == "noise" and said == "changed"
            misses += label == "changed" and said != "changed"

    assert alarms <= 0.02 * 24 * draws
    assert misses <= 0.01 * 24 * draws


@pytest.mark.slow
def test_other_sound_tests_of_curves_pass(solution, judged):
    """Welch's t of paired quarters, with its own threshold: no sign flips."""
    import numpy

    def same(a, b):
        if numpy.allclose(a, b, rtol=1e-6, atol=0):
            return "equal"
        quarters = (b - a).reshape(len(a), 4, -1).mean(axis=2)
        t = abs(quarters.mean(axis=0)) / quarters.std(axis=0, ddof=1) * math.sqrt(len(a))
        return "changed" if t.max() > 5 else "noise"

    assert [1, 1, 1] == [judged("same_curve", seed=seed, same=same).points for seed in (1, 2, 3)]


def cut_in(parts, level, solution):
    """A test of so many equal parts, each of which may err so often."""
    import numpy

    def same(a, b):
        if numpy.allclose(a, b, rtol=1e-6, atol=0):
            return "equal"
        cut = numpy.array_split(b - a, parts, axis=1)
        return "changed" if min(solution["sign_flip_p"](part.mean(axis=1)) for part in cut) <= level else "noise"

    return same


@pytest.mark.parametrize("seed", few(range(1, 41), quick=1))
def test_every_draw_tells_four_looks_at_five_percent_from_sound_tests(solution, judged, seed):
    careless = judged("same_curve", seed=seed, same=cut_in(4, 0.05, solution))
    sound = [judged("same_curve", seed=seed, same=cut_in(n, 0.02 / n, solution)).points for n in (3, 4, 5, 8)]

    assert (0, "your function gives too many false alarms") == (careless.points, careless.what)
    assert [1, 1, 1, 1] == sound


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(BLIND.glob("**/lab10/same_curve.toml")), ids=lambda path: path.parts[-3])
def test_no_draw_refuses_right_answers_of_the_blind_batches(solution, path):
    """Each has its own statistics: one that errs in one pair of fifty has three errors in some draws of plain noise."""
    import numpy

    names = {name: solution[name] for name in ("np", "itertools", "ALPHA", "ROUNDING", "TINY")}
    same = {}
    for one in answers(path, "honest"):
        exec(one.code, own := dict(names))
        same[one.name] = own["same"]
    refused = []
    for seed in range(24):
        (case,) = drawn_curves.pairs(numpy.random.default_rng(seed))
        for name, says in same.items():
            said = [says(pair["a"], pair["b"]) for pair in case["pairs"]]
            errors = Counter(label for label, one in zip(case["labels"], said, strict=True) if one != label)
            if errors["equal"] or max(errors["noise"], errors["changed"]) > MOST_WRONG:
                refused.append((name, seed, errors))

    assert [] == refused


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", [list, tuple, lambda pairs: (pair for pair in pairs), lambda p: [list(one) for one in p]]
)
def test_rankings_come_in_other_forms_too(solution, judged, form):
    outcome = judged("rank_gains", rank=lambda spans, mends: form(solution["rank"](spans, mends)))

    assert 1 == outcome.points


def test_numpy_numbers_are_numbers(solution, judged):
    import numpy

    changed = {
        "best_batch": lambda *asked: numpy.int64(solution["best_batch"](*asked)),
        "step_s": lambda *asked: numpy.float64(solution["step_s"](*asked)),
    }

    assert 1 == judged("time_to_quality", **changed).points
    assert 1 == judged("cost", fits=lambda *asked: numpy.bool_(solution["fits"](*asked))).points


def _names(step):
    return [one["name"] for one in step]
