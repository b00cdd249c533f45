"""What lab02's exercises say of a mistake that all answers, or an exception, show."""

from __future__ import annotations

import math

import pytest


def test_keys_that_a_case_lacks_are_told_with_those_that_it_has(judged):
    def speedup(classes, faster):
        return 1 / sum(row["time_share"] / faster[name] for name, row in classes.items())

    def ridge_point(machine, dtype, level):
        return machine["peak_flop_per_s"][dtype] / machine["bandwidth_byte_per_s"]["HBM"]

    assert "your code looks up a factor for a class that has none" == judged("amdahl", speedup=speedup).what
    assert "this machine does not have" in judged("ridge_and_bound", ridge_point=ridge_point).what


def test_math_and_memory_in_each_others_place_are_told(judged, solution):
    other = {"math": "memory", "memory": "math", "latency": "latency"}

    def swapped(layer, machine):
        return other[solution["diagnose"](layer, machine)]

    assert "your comparison with the ridge is the wrong way round" == judged("diagnose", diagnose=swapped).what


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda unfused, fused, chain, size: (1 / unfused, 1 / fused), "your answer is in bytes per FLOP"),
        (
            lambda unfused, fused, chain, size: (unfused, fused * chain[-1]["flop"] / sum(s["flop"] for s in chain)),
            "in the fused case, your code counts only the operations of the last step",
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
        (
            lambda how, nodes, job, most: ("weak", 1) if how == "none" else (how, nodes),
            "your plan treats a single node as scaling",
        ),
        (
            lambda how, nodes, job, most: (how, nodes - (nodes == most)),
            "your code does not try the last node of the cluster",
        ),
        (
            lambda how, nodes, job, most: (how, min(nodes, 2)),
            "your plan stops at the first number of nodes that is efficient",
        ),
        (
            lambda how, nodes, job, most: ("none", 1) if how == "weak" else (how, nodes),
            "your code never finds weak scaling efficient enough",
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

    assert "your code assumes a square layer" == judged("minibatch_crossover", batch_at_ridge=square).what


@pytest.mark.parametrize(
    ("count", "what"),
    [
        (lambda m, n, k, tm, tn, sms: math.ceil(m * n / (tm * tn)) < sms, "your code divides the area of the result"),
        (
            lambda m, n, k, tm, tn, sms: math.ceil(m / tn) * math.ceil(n / tm) < sms,
            "your code swaps the sides of a tile",
        ),
        (
            lambda m, n, k, tm, tn, sms: math.ceil(m / tm) * math.ceil(n / tn) % sms > 0,
            "your code answers 'latency' if the last wave",
        ),
        (
            lambda m, n, k, tm, tn, sms: math.ceil(m / tm) * math.ceil(n / tn) < 4 * sms,
            "your code finds too few blocks",
        ),
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


def _attention(count, shape):
    """What attention comes to: it alone grows with the square of the tokens."""
    one, two = (count({**shape, "tokens": times * shape["tokens"]})[0] for times in (1, 2))
    return (two - 2 * one) / 2


@pytest.mark.parametrize(
    ("products", "told"),
    [
        (2, "your count gives attention `kv_heads` heads"),
        (1, "your count gives one product of attention `kv_heads` heads"),
    ],
)
def test_attention_of_kv_heads_is_named_where_it_gives_all_answers(judged, solution, products, told):
    count = solution["count_block"]

    def fewer(shape, *, where=lambda shape: True):
        missing = products / 2 * _attention(count, shape) * (1 - shape["kv_heads"] / shape["heads"])
        forward, backward = count(shape)
        return forward - missing * where(shape), backward - 2 * missing * where(shape)

    assert judged("count_a_model", count_block=fewer).what.startswith(told)
    gated = judged("count_a_model", count_block=lambda shape: fewer(shape, where=lambda shape: shape["gated"]))
    assert "kv_heads" not in gated.what


def test_a_frozen_block_without_a_backward_pass_is_named_where_all_else_is_right(judged, solution):
    def skips(shape, *, others=1.0):
        forward, backward = solution["count_block"](shape)
        return forward, 0 if shape["frozen"] else others * backward

    told = "your count gives a frozen block no backward pass"

    assert told == judged("count_a_model", count_block=skips).what
    assert told != judged("count_a_model", count_block=lambda shape: skips(shape, others=0.5)).what
    assert told != judged("count_a_model", count_block=lambda shape: skips(shape, others=0)).what


@pytest.mark.parametrize("none", [math.inf, None])
def test_a_search_among_whole_batches_that_ends_is_told(judged, solution, none):
    def tries(inputs, outputs, *, last=5000, **machine):
        batch = solution["batch_at_ridge"](inputs, outputs, **machine)
        return math.ceil(batch) if batch <= last else none

    def gives_up_narrow_ones(inputs, outputs, **machine):
        return none if inputs < outputs else tries(inputs, outputs, last=1e12, **machine)

    told = "your code tries only whole batches, and gives up too early"

    assert told == judged("minibatch_crossover", batch_at_ridge=tries).what
    assert told != judged("minibatch_crossover", batch_at_ridge=gives_up_narrow_ones).what


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda batch: None if batch == math.inf else batch,
            "your function returned None where no batch is large enough",
        ),
        (lambda batch: None, "wrong kind of answer: for `batch`, expected a number, got None"),
        (lambda batch: str(batch), "wrong kind of answer: for `batch`, expected a number, got text"),
    ],
)
def test_none_in_place_of_infinity_is_told_what_is_asked_for(judged, solution, answer, told):
    def changed(inputs, outputs, **machine):
        return answer(solution["batch_at_ridge"](inputs, outputs, **machine))

    assert told == judged("minibatch_crossover", batch_at_ridge=changed).what


@pytest.mark.parametrize("kind", ["linear", "gemm", "conv", "layer_norm"])
def test_a_kind_of_operation_that_still_raises_is_named(judged, solution, kind):
    def lacks(op):
        if op["kind"] == kind:
            raise NotImplementedError
        return solution["work_of"](op)

    assert f"work_of still raises NotImplementedError for a {kind}" == judged("intensity", work_of=lacks).what


def test_who_has_written_one_kind_alone_is_told_which_is_next(judged, solution):
    def relu_alone(op):
        if op["kind"] != "relu":
            raise NotImplementedError
        return op["elemets"]

    def stub(op):
        raise NotImplementedError

    assert judged("intensity", work_of=relu_alone).what.endswith("raises NotImplementedError for a linear")
    assert "not attempted" == judged("intensity", work_of=stub).state


@pytest.mark.parametrize(
    ("kind", "told"), [("relu", "input or the result of a relu"), ("matvec", "bytes of a matvec are wrong")]
)
def test_half_of_the_bytes_is_told_where_input_and_result_are_equal(judged, solution, kind, told):
    def half(op):
        flop, moved = solution["work_of"](op)
        return flop, moved / 2 if op["kind"] == kind else moved

    assert told in judged("intensity", work_of=half).what


def test_sizes_that_the_code_takes_out_are_told_where_the_answer_misses_them(judged, solution):
    def uses_up(chain, *, size_bytes, keep):
        _, fused = solution["intensities"](chain, size_bytes=size_bytes, keep=keep)
        size_bytes |= dict.fromkeys(chain[0]["reads"], 0)
        return solution["intensities"](chain, size_bytes=size_bytes, keep=keep)[0], fused

    def harmless(chain, *, size_bytes, keep):
        answer = solution["intensities"](chain, size_bytes=size_bytes, keep=keep)
        size_bytes.clear()
        return answer

    def another(*args, **kwargs):
        unfused, fused = harmless(*args, **kwargs)
        return 1.3 * unfused, fused

    assert "your code removes sizes from `size_bytes`" in judged("fused_or_not", intensities=uses_up).what
    assert "passed" == judged("fused_or_not", intensities=harmless).state
    assert "the unfused intensity is wrong" == judged("fused_or_not", intensities=another).what
