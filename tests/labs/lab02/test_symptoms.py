"""What lab02's exercises say of a mistake that all answers, or an exception, show."""

from __future__ import annotations

import math

import pytest


def test_keys_that_a_case_lacks_are_told_with_those_that_it_has(judged):
    def speedup(classes, faster):
        return 1 / sum(row["time_share"] / faster[name] for name, row in classes.items())

    def ridge_point(machine, dtype, level):
        return machine["peak_flop_per_s"][dtype] / machine["bandwidth_byte_per_s"]["HBM"]

    assert "a factor was looked up for a class that has none" == judged("amdahl", speedup=speedup).what
    assert "this machine does not have" in judged("ridge_and_bound", ridge_point=ridge_point).what


def test_math_and_memory_in_each_others_place_are_told(judged, solution):
    other = {"math": "memory", "memory": "math", "latency": "latency"}

    def swapped(layer, machine):
        return other[solution["diagnose"](layer, machine)]

    assert "the comparison with the ridge is the wrong way round" == judged("diagnose", diagnose=swapped).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda unfused, fused, chain, size: (1 / unfused, 1 / fused), "that is bytes per FLOP"),
        (
            lambda unfused, fused, chain, size: (unfused, fused * chain[-1]["flop"] / sum(s["flop"] for s in chain)),
            "fused, the last step's operations alone were counted",
        ),
    ],
)
def test_chains_are_told_what_was_divided(judged, solution, change, told):
    def changed(chain, *, size_bytes, keep):
        return change(*solution["intensities"](chain, size_bytes=size_bytes, keep=keep), chain, size_bytes)

    assert told == judged("fused_or_not", intensities=changed).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda how, nodes, job, most: ("weak", 1) if how == "none" else (how, nodes), "one node alone is no scaling"),
        (
            lambda how, nodes, job, most: (how, nodes - (nodes == most)),
            "the last node of the cluster was not tried",
        ),
        (
            lambda how, nodes, job, most: (how, min(nodes, 2)),
            "the first number of nodes that is efficient came back",
        ),
        (
            lambda how, nodes, job, most: ("none", 1) if how == "weak" else (how, nodes),
            "weak scaling never came out as efficient",
        ),
    ],
)
def test_what_wrong_plans_have_in_common_is_told(judged, solution, change, told):
    def changed(job, cluster):
        return change(*solution["plan"](job, cluster), job, cluster["nodes"])

    assert told == judged("scaling_plan", plan=changed).what


def test_a_square_layer_is_told(judged, solution):
    def square(inputs, outputs, *, ridge, itemsize):
        return solution["batch_at_ridge"](inputs, inputs, ridge=ridge, itemsize=itemsize)

    assert "a square layer was taken" == judged("minibatch_crossover", batch_at_ridge=square).what


@pytest.mark.parametrize(
    ("count", "what"),
    [
        (lambda m, n, k, tm, tn, sms: math.ceil(m * n / (tm * tn)) < sms, "the area of the result was divided"),
        (lambda m, n, k, tm, tn, sms: math.ceil(m / tn) * math.ceil(n / tm) < sms, "the sides of a tile"),
        (lambda m, n, k, tm, tn, sms: math.ceil(m / tm) * math.ceil(n / tn) % sms > 0, "a last wave"),
        (lambda m, n, k, tm, tn, sms: math.ceil(m / tm) * math.ceil(n / tn) < 4 * sms, "every matrix product is taken"),
    ],
)
def test_another_count_of_tiles_is_named_where_it_gives_all_answers(judged, solution, count, what):
    names = {"gemm": ("m", "n", "k"), "linear": ("batch", "outputs", "inputs")}

    def diagnose(layer, machine):
        right = solution["diagnose"](layer, {**machine, "sms": 0})
        if layer["kind"] not in names:
            return solution["diagnose"](layer, machine)
        sides = [layer[name] for name in names[layer["kind"]]]
        few = count(*sides, machine["tile_m"], machine["tile_n"], machine["sms"])
        return "latency" if few else right

    assert judged("diagnose", diagnose=diagnose).what.startswith(what)
