"""read_plan, storage_format, decode_once and predict_workers: other right answers, and what is told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from edl_labs.exercises.lab04_data_pipelines import predict_workers as ladders
from edl_labs.exercises.lab04_data_pipelines import storage_format as formats
from edl_labs.exercises.lab04_data_pipelines.judge.drawn_loaders import simulated
from edl_labs.exercises.lab04_data_pipelines.read_plan import figures, run_plan


def test_a_plan_may_begin_with_the_last_shard(judged, solution):
    def backwards(wanted, **disk):
        plan = solution["read_plan"](wanted, **disk)
        return [list(read) for shard in (4, 3, 2, 1, 0) for read in plan if read[0] == shard]

    assert "passed" == judged("read_plan", read_plan=backwards).state


def test_a_plan_read_backwards_pays_a_seek_for_each_read(judged, solution):
    outcome = judged("read_plan", read_plan=lambda wanted, **disk: sorted(wanted, reverse=True))

    assert "your plan does not read in the order of the disk" == outcome.what


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (lambda wanted, **disk: [(shard, start, stop + 1 << 40) for shard, start, stop in wanted], "beyond its shard"),
        (lambda wanted, **disk: [(99, 0, 1)], "not a tuple (shard, start, stop)"),
        (lambda wanted, **disk: [(0, 0, 0.5)], "not a tuple (shard, start, stop)"),
        (lambda wanted, **disk: [(0, 0)], "not a tuple (shard, start, stop)"),
        (lambda wanted, **disk: [], "your plan leaves out wanted samples"),
        (lambda wanted, **disk: wanted[1:], "your plan leaves out wanted samples"),
    ],
)
def test_plans_that_are_none_are_told_why(judged, plan, told):
    assert told in judged("read_plan", read_plan=plan).what


def whole_or_by_sample(choose):
    """A plan in which `choose(useful share, shard)` says whether a shard is read whole."""

    def plan(wanted, **disk):
        reads = []
        for shard in sorted({one[0] for one in wanted}):
            parts = sorted(one for one in wanted if one[0] == shard)
            first, last = parts[0][1], parts[-1][2]
            useful = sum(stop - start for _, start, stop in parts) / (last - first)
            reads += [(shard, first, last)] if choose(useful) else parts
        return reads

    return plan


def one_gap_read(wanted, **disk):
    """Sample by sample, or whole, but for one pair of neighbours that is joined."""
    reads = whole_or_by_sample(lambda useful: useful > 0.5)(wanted, **disk)
    if len(reads) > 20 and reads[0][0] == reads[1][0]:
        reads[:2] = [(reads[0][0], reads[0][1], reads[1][2])]
    return reads


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (
            whole_or_by_sample(lambda useful: useful > 0.5),
            "your plans read each shard either whole or sample by sample",
        ),
        (
            whole_or_by_sample(lambda useful: useful > 0.2),
            "your plans read each shard either whole or sample by sample",
        ),
        # Near it: all of them by sample, all whole, and one gap decided by itself.
        (whole_or_by_sample(lambda useful: False), "your plan reads every sample separately"),
        (whole_or_by_sample(lambda useful: True), "your plan reads unwanted data: it reads each shard in one go"),
        (one_gap_read, "your plan jumps over gaps that it should read"),
    ],
)
def test_shards_that_are_read_whole_or_by_sample_are_told(judged, plan, told):
    assert judged("read_plan", read_plan=plan).what.startswith(told)


@pytest.mark.parametrize("seed", range(6))
def test_the_reference_plan_is_no_worse_than_any_single_other_gap(solution, exercises, seed):
    for case in exercises["read_plan"].draw_cases(seed):
        wanted = [tuple(part) for part in case["wanted"]]
        best = figures(
            run_plan(case, solution["read_plan"](wanted, seek_s=case["seek_s"], byte_per_s=case["byte_per_s"]))
        )
        for factor in (0.0, 0.5, 2.0, 1e9):
            plan = solution["read_plan"](wanted, seek_s=factor * case["seek_s"], byte_per_s=case["byte_per_s"])
            assert best["time_s"] <= figures(run_plan(case, plan))["time_s"] * (1 + 1e-9)


def test_equally_cheap_formats_are_equally_right(judged, solution):
    def last_of_the_cheapest(forms, access, disk):
        costs = [solution["format_cost_s"](form, access, disk) for form in forms]
        return [form["name"] for form, cost in zip(forms, costs, strict=True) if cost == min(costs)][-1]

    assert "passed" == judged("storage_format", pick_format=last_of_the_cheapest).state


def test_every_format_wins_for_some_access(solution, exercises):
    picked = {
        solution["pick_format"](case["forms"], case["access"], case["disk"])
        for seed in range(12)
        for case in exercises["storage_format"].draw_cases(seed)
    }

    assert {"raw files", "tar", "parquet", "lmdb"} == picked


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda access, disk: (access, {**disk, "open_s": 0.0}), "your code leaves out the time for opening files"),
        (
            lambda access, disk: (access, {**disk, "cache_bytes": 1e30}),
            "your code assumes that no epoch after the first needs the disk",
        ),
    ],
)
def test_what_a_cost_leaves_out_is_named(judged, solution, change, told):
    def careless(form, access, disk):
        return solution["format_cost_s"](form, *change(access, disk))

    assert told == judged("storage_format", format_cost_s=careless).what


@pytest.mark.parametrize("slip", formats._SLIPS, ids=lambda slip: slip[0])
def test_a_slip_in_every_cost_is_named_and_told_from_the_others(judged, slip):
    assert slip[0] == judged("storage_format", format_cost_s=formats._SLIPS[slip]).what


@pytest.mark.parametrize(("told", "slip"), [(told, slip) for told, _, slip in ladders._SLIPS])
def test_a_slip_in_every_rate_is_named_and_told_from_the_others(judged, told, slip):
    def careless(count, machine):
        return slip(machine, count), "workers"

    assert told == judged("predict_workers", predict_workers=careless).what


@pytest.mark.parametrize("form", [tuple, list, np.array, iter, set, lambda places: (float(p) for p in places)])
def test_places_may_come_in_any_form(judged, solution, form):
    assert "passed" == judged("decode_once", move_offline=lambda chain: form(solution["move_offline"](chain))).state


@pytest.mark.parametrize("form", [list, iter, lambda pair: (np.array(pair[0]), np.str_(pair[1]))])
def test_a_rate_and_a_limit_may_come_in_any_form(judged, solution, form):
    outcome = judged("predict_workers", predict_workers=lambda *given: form(solution["predict_workers"](*given)))

    assert "passed" == outcome.state


def test_the_pairs_that_change_places_are_those_that_images_show(solution):
    image = np.random.default_rng(7).random((8, 8))
    examples, same = solution["EXAMPLES"], solution["same_in_either_order"]
    always = [
        {one, other}
        for one, other in itertools.combinations_with_replacement(examples, 2)
        if all(same(a, b, image) for a in examples[one] for b in examples[other] if a is not b)
    ]

    free = [
        {one, other}
        for one, other in itertools.combinations_with_replacement(examples, 2)
        if all(solution["move_offline"](_pair(*kinds)) == [1] for kinds in ((one, other), (other, one)))
    ]
    assert sorted(map(sorted, always)) == sorted(map(sorted, free))


def _pair(first, second):
    """A chain of two: one that has to stay, and one that may pass it or not."""
    return [{"name": first, "kind": first, "random": True}, {"name": second, "kind": second, "random": False}]


def test_each_pair_that_does_not_change_places_is_told_from_one_that_does(solution, exercises):
    """Whoever believes in one pair more loses points; two of kind whole meet only behind what neither can pass."""
    kinds, places = ("point", "move", "cut", "mix", "whole"), solution["move_offline"]
    free = [{"point", "move"}, {"point", "cut"}, {"whole", "move"}]

    def believing(chain, more):
        offline, staying = [], []
        for place, step in enumerate(chain):
            stays = step["random"] or any({step["kind"], other} not in [*free, more] for other in staying)
            (staying if stays else offline).append(step["kind"] if stays else place)
        return offline

    pairs = [{one, other} for one, other in itertools.combinations_with_replacement(kinds, 2)]
    for seed in range(4):
        chains = [case["chain"] for case in exercises["decode_once"].draw_cases(seed)]
        unseen = [pair for pair in pairs if all(places(chain) == believing(chain, pair) for chain in chains)]

        assert [*free, {"whole"}] == sorted(unseen, key=[*free, {"whole"}].index)


def test_moving_offline_leaves_the_pixels_as_they_were(solution, exercises):
    """With the random transforms held fixed, both orders of every chain give the same image."""
    image = np.random.default_rng(3).random((16, 16))
    square = {**solution["EXAMPLES"], "cut": [lambda x: x[1:, 1:]], "mix": [lambda x: (x + np.roll(x, 1, axis=1)) / 2]}
    for seed in range(8):
        for case in exercises["decode_once"].draw_cases(seed):
            chain = case["chain"]
            offline = solution["move_offline"](chain)
            functions = [square[t["kind"]][i % len(square[t["kind"]])] for i, t in enumerate(chain[1:])]
            moved = [*[p for p in offline if p], *[p for p in range(1, len(chain)) if p not in offline]]
            plain, changed = image, image
            for place in range(1, len(chain)):
                plain = functions[place - 1](plain)
            for place in moved:
                changed = functions[place - 1](changed)

            assert np.allclose(plain, changed)


def test_the_order_of_the_places_does_not_matter(judged, solution):
    assert "passed" == judged("decode_once", move_offline=lambda c: tuple(reversed(solution["move_offline"](c)))).state


def test_places_beyond_the_chain_are_refused(judged):
    assert (
        "your answer contains a place that is not in the chain"
        == judged("decode_once", move_offline=lambda chain: [len(chain)]).what
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_predicted_rates_are_bounds_that_the_model_comes_close_to(solution, exercises, seed):
    """The bound holds on VirtualWorkers (within the ends of a run), and where one resource is short it is reached."""
    for case in exercises["predict_workers"].draw_cases(seed):
        for workers in (1, case["machine"]["cores"], 4 * case["machine"]["cores"]):
            bound, _ = solution["predict_workers"](workers, case["machine"])
            modelled = simulated(case, workers, batches=200)

            assert modelled <= 1.05 * bound
            assert 0.6 * bound <= modelled


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda rate, limit: (limit, rate), "your function returned the limit first, and the rate second"),
        (lambda rate, limit: (limit, limit), "predict_workers must return two values"),
        (lambda rate, limit: (limit,), "predict_workers must return two values"),
    ],
)
def test_a_rate_and_a_limit_in_another_order_are_told(judged, solution, answer, told):
    outcome = judged("predict_workers", predict_workers=lambda w, m: answer(*solution["predict_workers"](w, m)))

    assert told == outcome.what


def test_one_bound_that_is_too_large_is_not_taken_for_the_largest_of_all(judged, solution):
    def where_many_work(workers, machine):
        return 1 / machine["step_s"] if workers > 3 else solution["predict_workers"](workers, machine)[0], "step"

    assert (
        "the largest of the bounds was returned" not in judged("predict_workers", predict_workers=where_many_work).what
    )


def test_a_limit_that_is_none_is_told_the_four(judged, solution):
    outcome = judged("predict_workers", predict_workers=lambda w, m: (solution["predict_workers"](w, m)[0], "gpu"))

    assert "'gpu' is not the limit here" == outcome.what
    assert "workers, cores, disk, step" in outcome.why


def asked_behind(chain, *, which, pairs=("point move", "point cut", "whole move")):
    """The places of those that may change places with `which` transforms behind them."""
    free = [set(pair.split()) for pair in pairs]
    return [
        place
        for place, one in enumerate(chain)
        if not one["random"]
        and all({one["kind"], other["kind"]} in free for other in chain[place + 1 :] if which(other))
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda right, chain: asked_behind(chain, which=lambda other: other["random"]),
            "your code compares transforms with",
        ),
        (lambda right, chain: right[1:], "you left decoding in the loader, but it may be done once"),
        # Near them: all behind, decoding left out where another one is too, nothing at all.
        (
            lambda right, chain: asked_behind(chain, which=bool),
            "in your answer, work that could be done once is done in every epoch",
        ),
        (lambda right, chain: right[1:-1], "in your answer, work that could be done once is done in every epoch"),
        (lambda right, chain: [], "in your answer, work that could be done once is done in every epoch"),
    ],
)
def test_whom_a_transform_is_asked_to_pass_is_told_where_all_answers_follow(judged, solution, answer, told):
    outcome = judged("decode_once", move_offline=lambda chain: answer(solution["move_offline"](chain), chain))

    assert outcome.what.startswith(told)
