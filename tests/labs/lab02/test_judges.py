"""The judges of lab02: mistakes beyond the known wrong answers, absurd answers, and right answers in another form."""

from __future__ import annotations

import math

import numpy as np
import pytest

SEEDS = (1, 2, 3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda flop, moved: (moved, flop), "the two answers are swapped"),
        (lambda flop, moved: (flop, moved, 0), "expected two answers"),
        (lambda flop, moved: (flop, 3 * moved), "the bytes of a linear are wrong"),
        (lambda flop, moved: (3 * flop, moved), "the FLOPs of a linear are wrong"),
        (lambda flop, moved: (math.nan, moved), "the FLOPs of a linear are wrong"),
        (lambda flop, moved: (flop, math.inf), "the bytes of a linear are wrong"),
        (lambda flop, moved: None, "your function returned nothing for a linear"),
        (lambda flop, moved: (flop, None), "moved_bytes is not a number"),
    ],
)
def test_wrong_counts_are_told_what_they_are(judged, solution, change, told):
    assert told == judged("intensity", work_of=lambda op: change(*solution["work_of"](op))).what


def test_counts_may_come_as_floats_and_lists(judged, solution):
    assert "passed" == judged("intensity", work_of=lambda op: [float(x) for x in solution["work_of"](op)]).state


def test_a_function_that_spoils_its_argument_spoils_nothing_else(judged, solution):
    def spoils(op):
        answer = solution["work_of"](op)
        op.clear()
        return answer

    assert "passed" == judged("intensity", work_of=spoils).state


@pytest.mark.parametrize(
    ("kinds", "change", "told"),
    [
        (("conv",), lambda op: {**op, "stride": 1}, "your code puts a window on every input pixel"),
        (("conv",), lambda op: {**op, "padding": 0}, "your code counts the windows without the padding"),
        (("linear", "conv"), lambda op: {**op, "batch": 1}, "your code leaves out the batch"),
    ],
)
def test_a_forgotten_size_is_found(judged, solution, kinds, change, told):
    def forgets(op):
        return solution["work_of"](change(op) if op["kind"] in kinds else op)

    outcome = judged("intensity", work_of=forgets)

    assert 0 == outcome.points
    assert outcome.what in (told, "the FLOPs of a conv are wrong")


def test_a_maximum_of_eight_comparisons_is_told_what_the_deck_counts(judged, solution):
    def eight(op):
        flop, moved = solution["work_of"](op)
        return (flop * (1 - 1 / op["kernel"] ** 2) if op["kind"] == "pool" else flop), moved

    assert "your code counts one operation too few per window" == judged("intensity", work_of=eight).what


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda time_s, limiter: (time_s, "memory"), "'memory' does not limit this work"),
        (lambda time_s, limiter: (1.5 * time_s, limiter), "the lower bound is wrong"),
        (lambda time_s, limiter: (time_s,), "expected two answers"),
    ],
)
def test_bounds_that_are_none_are_told_so(judged, solution, answer, told):
    def bounded(machine, work):
        return answer(*solution["lower_bound"](machine, work))

    assert told == judged("ridge_and_bound", lower_bound=bounded).what


def test_the_dtype_of_the_work_decides_its_ceiling(judged, solution):
    def one_peak(machine, work):
        return solution["lower_bound"](machine, {**work, "dtype": next(iter(machine["peak_flop_per_s"]))})

    assert 0 == judged("ridge_and_bound", lower_bound=one_peak).points


@pytest.mark.parametrize("never", [None, -1.0, 0, math.nan, 10.0**12])
def test_no_batch_is_infinity_and_nothing_else(judged, solution, never):
    def elsewise(inputs, outputs, *, ridge, itemsize):
        batch = solution["batch_at_ridge"](inputs, outputs, ridge=ridge, itemsize=itemsize)
        return never if batch == math.inf else batch

    assert 0 == judged("minibatch_crossover", batch_at_ridge=elsewise).points


def test_a_division_by_zero_at_exactly_the_limit_is_named(judged):
    def divides(inputs, outputs, *, ridge, itemsize):
        gain = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
        batch = ridge * itemsize * inputs * outputs / gain
        return batch if batch > 0 else math.inf

    assert "divides by zero at the width limit" in judged("minibatch_crossover", batch_at_ridge=divides).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda unfused, fused: (fused, unfused), "the two answers are swapped"),
        (lambda unfused, fused: (unfused, 2 * fused), "the fused intensity is wrong"),
        (lambda unfused, fused: (-unfused, fused), "the unfused intensity is not a positive number"),
        (lambda unfused, fused: (unfused, math.nan), "the fused intensity is not a positive number"),
        (lambda unfused, fused: (1 / unfused, 1 / fused), "your answer is in bytes per FLOP"),
    ],
)
def test_wrong_intensities_are_told_what_they_are(judged, solution, change, told):
    def changed(chain, *, size_bytes, keep):
        return change(*solution["intensities"](chain, size_bytes=size_bytes, keep=keep))

    assert told == judged("fused_or_not", intensities=changed).what


def test_keeping_a_result_makes_a_difference(exercises):
    kept = [case for case in exercises["fused_or_not"].draw_cases(1) if len(case["keep"]) > 1]

    assert len(kept) >= 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda f, b: (f / 2, b / 2), "your code counts a multiply-add as one operation"),
        (lambda f, b: (f + b, b), "your forward count includes the backward pass"),
        (lambda f, b: (f, b + f), "your backward pass includes the work of the forward pass"),
        (lambda f, b: (1.2 * f, b), "the forward pass is wrong"),
        (lambda f, b: (f, 1.3 * b), "the backward pass is wrong"),
    ],
)
def test_wrong_counts_of_a_model_are_told_what_they_are(judged, solution, change, told):
    assert told == judged("count_a_model", count_block=lambda shape: change(*solution["count_block"](shape))).what


def test_softmax_and_norms_may_be_counted_or_left_out(judged, solution):
    def with_other_flops(shape):
        forward, backward = solution["count_block"](shape)
        return 1.008 * forward, 0.992 * backward

    assert "passed" == judged("count_a_model", count_block=with_other_flops).state


@pytest.mark.parametrize("seed", SEEDS)
def test_every_part_of_the_block_matters(judged, solution, seed):
    def forgets(**changed):
        return lambda shape: solution["count_block"]({**shape, **changed})

    for changed in ({"gated": False}, {"frozen": False}, {"batch": 1}):
        assert 0 == judged("count_a_model", seed=seed, count_block=forgets(**changed)).points


def test_keys_and_values_given_all_heads_are_found(judged, solution):
    outcome = judged(
        "count_a_model", count_block=lambda shape: solution["count_block"]({**shape, "kv_heads": shape["heads"]})
    )

    assert "your count uses all heads for keys and values, too" == outcome.what


@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda s: 100 * s, "your answer is a percentage"), (lambda s: s - 1, "the speed-up is wrong")],
)
def test_wrong_speedups_are_told_what_they_are(judged, solution, change, told):
    assert told == judged("amdahl", speedup=lambda classes, faster: change(solution["speedup"](classes, faster))).what


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("answer", ["latency", "math", "memory", "none of them"])
def test_a_constant_diagnosis_earns_nothing(judged, seed, answer):
    assert 0 == judged("diagnose", seed=seed, diagnose=lambda layer, machine: answer).points


def test_a_diagnosis_by_kind_alone_is_far_from_full_marks(judged):
    def by_kind(layer, machine):
        return "math" if layer["kind"] in ("gemm", "linear") else "memory"

    assert judged("diagnose", diagnose=by_kind).points < 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diagnosis_needs_whole_tiles_of_both_sides(judged, solution, seed):
    def by_area(layer, machine):
        sides = {"gemm": ("m", "n"), "linear": ("batch", "outputs")}.get(layer["kind"])
        if sides and layer[sides[0]] * layer[sides[1]] < machine["tile_m"] * machine["tile_n"]:
            return "latency"
        return solution["diagnose"](layer, {**machine, "sms": 1})

    assert "passed" != judged("diagnose", seed=seed, diagnose=by_area).state


def test_ignoring_what_hides_the_network_loses(judged, solution):
    def always_update(batch, *, nodes, itemsize, behind):
        return solution["network_intensity"](batch, nodes=nodes, itemsize=itemsize, behind="weight gradient")

    told = "your code counts only half of the FLOPs that can hide the sending"

    assert told == judged("network_roofline", network_intensity=always_update).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"link_byte_per_s": 1e30}, "your code leaves out the network"),
        ({"nodes": 1}, "the time of a step is wrong"),
    ],
)
def test_wrong_steps_are_told_what_they_are(judged, solution, change, told):
    def changed(batch, **job):
        return solution["step_s"](batch, **{**job, **change})

    assert told == judged("network_roofline", step_s=changed).what


@pytest.mark.parametrize("one", [True, False])
def test_a_wrong_step_says_with_how_many_buckets(judged, exercises, solution, one):
    def wrong(batch, **job):
        return solution["step_s"](batch, **job) * (1.3 if (job["buckets"] == 1) is one else 1.0)

    buckets = exercises["network_roofline"].draw_cases(1)[0]["buckets"]
    outcome = judged("network_roofline", step_s=wrong)

    assert f"with {'1 bucket' if one else f'{buckets} buckets'}, " in outcome.why
    assert f"step_s is called with buckets = {buckets}, and then with 1" in outcome.case_text


def test_a_type_error_of_ones_own_is_told_as_it_is(judged, solution):
    def adds_text(batch, **job):
        return solution["step_s"](batch, **job) + "s"

    assert judged("network_roofline", step_s=adds_text).what.startswith("your code raised TypeError")


@pytest.mark.parametrize("seed", SEEDS)
def test_neither_end_of_the_range_of_buckets_plans_right(exercises, solution, judged, seed):
    for buckets in (1, 10**9):

        def plan(job, cluster, buckets=buckets):
            return solution["plan"]({**job, "buckets": buckets}, cluster)

        assert 0 == judged("scaling_plan", seed=seed, plan=plan).points


def test_a_single_node_sends_nothing(judged, solution):
    def sends(batch, *, nodes, **job):
        extra = job["itemsize"] * job["weights"] / job["link_byte_per_s"] if nodes == 1 else 0.0
        return solution["step_s"](batch, nodes=nodes, **job) + extra

    assert "your code makes a single node send" == judged("network_roofline", step_s=sends).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda how, nodes: (how, nodes - 1), "your plan has too few nodes: a larger number is efficient enough, too"),
        (lambda how, nodes: (how, nodes + 0.5), "your number of nodes is not possible"),
        (lambda how, nodes: (how, 10**6), "your number of nodes is not possible"),
        (lambda how, nodes: ("both", nodes), "'both' is not one of the three answers"),
        (lambda how, nodes: ("none", 1), "your plan rejects scaling, but more than one node is useful here"),
    ],
)
def test_wrong_plans_are_told_what_they_are(judged, solution, change, told):
    def changed(job, cluster):
        return change(*solution["plan"](job, cluster))

    assert told == judged("scaling_plan", plan=changed).what


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tie_is_weak(exercises, solution, seed):
    in_order = exercises["scaling_plan"].drawing()(np.random.default_rng(seed))
    job, cluster = in_order[10].values()
    how, nodes = solution["plan"](job, cluster)

    assert ("weak", nodes) == (how, solution["plan"]({**job, "largest_batch": job["batch"]}, cluster)[1])
    assert nodes > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_plans_of_each_kind_are_asked_for(exercises, solution, seed):
    plans = [solution["plan"](**case) for case in exercises["scaling_plan"].draw_cases(seed)]

    assert {"strong", "weak", "none"} == {how for how, _ in plans}
    assert len({nodes for _, nodes in plans}) >= 4


@pytest.mark.parametrize("seed", SEEDS)
def test_a_batch_at_its_limit_is_asked_for(exercises, solution, seed):
    cases = exercises["scaling_plan"].draw_cases(seed)
    plans = [(solution["plan"](**case), case["job"]) for case in cases]

    assert any(how == "weak" and nodes * job["batch"] == job["largest_batch"] for (how, nodes), job in plans)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_of_both_kinds_leave_pixels_over_and_lie_on_padding(exercises, seed):
    ops = [op for op in exercises["intensity"].draw_cases(seed) if "kernel" in op]
    left = {op["kind"] for op in ops if (op["size"] + 2 * op["padding"] - op["kernel"]) % op["stride"]}

    assert {"conv", "pool"} == left == {op["kind"] for op in ops if op["padding"]}
