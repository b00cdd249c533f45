"""A change to one's own loop: honest pairs of real and made-up loops pass, and what is not one loop loses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from edl_labs.errors import Wrong
from edl_labs.trace import hand_in
from edl_labs.trace.own_change import OwnPair
from edl_labs.trace.packed_trace import FILES
from tests.unit.trace.own_traces import CUDA, Step, cpu_loops, cuda_pair, pair_of, recorded


def judged(pair: OwnPair, cause: str) -> None:
    """All that is asked of a pair; Wrong is raised for the first that does not hold."""
    pair.require_same_work()
    pair.require_cause(cause)
    pair.require_fall(cause)
    pair.require_possible_gain(cause)


@pytest.mark.parametrize("name", cpu_loops())
def test_a_real_cpu_loop_of_each_kind_is_judged_by_its_own_cause(name: str) -> None:
    pair, cause = pair_of(*recorded(name)), cpu_loops()[name][2]
    pair.require_same_work()
    pair.require_cause(cause)
    pair.require_place(cause, pair.before.places[cause][0])
    pair.require_fall(cause)

    assert pair.speedup > 1
    assert pair.before.bounds_s[cause] < pair.before.step_s


@pytest.mark.parametrize("cause", CUDA)
def test_a_made_up_cuda_loop_passes_with_its_true_cause_alone(cause: str) -> None:
    pair = pair_of(*cuda_pair(*CUDA[cause]))
    judged(pair, cause)
    smallest = min(pair.before.shares, key=lambda name: pair.before.shares[name])
    with pytest.raises(Wrong, match="does not limit the loop"):
        pair.require_cause(smallest)


def test_a_place_must_be_where_the_trace_charges_the_cause() -> None:
    pair = pair_of(*cuda_pair(*CUDA["host"]))
    pair.require_place("host", "train.py(12): augment")
    pair.require_place("host", "augment")
    for place in ("aten::mm", "", "a", None, 7, "tra", "train", "aug", f"train.py(12): augment {'aten::mm ' * 9}"):
        with pytest.raises(Wrong, match="the line or operator that you named"):
            pair.require_place("host", place)


def test_what_is_no_cause_is_refused() -> None:
    pair = pair_of(*cuda_pair(*CUDA["host"]))
    for cause in ("gpu", None, ["host"]):
        with pytest.raises(Wrong, match="is not a cause"):
            pair.require_cause(cause)


def test_the_same_loop_twice_has_no_fall() -> None:
    with pytest.raises(Wrong, match="the share of data did not fall") as told:
        judged(pair_of(*cuda_pair(CUDA["data"][0], CUDA["data"][0])), "data")

    assert told.value.keeps == 0.5


def test_a_share_that_falls_because_the_rest_grew_is_no_fall() -> None:
    slower = replace(CUDA["data"][0], code_us=2000)
    with pytest.raises(Wrong, match="did not fall"):
        judged(pair_of(*cuda_pair(CUDA["data"][0], slower)), "data")


@pytest.mark.parametrize(("after_us", "falls"), [(150, True), (270, False)])
def test_where_most_is_one_cause_its_seconds_tell(after_us: float, falls: bool) -> None:
    before = Step(kernels=8, kernel_us=300, launch_us=1)
    pair = pair_of(*cuda_pair(before, replace(before, kernel_us=after_us)))

    assert pair.before.shares["compute"] > 0.98
    if falls:
        judged(pair, "compute")
    else:
        with pytest.raises(Wrong, match="did not fall"):
            judged(pair, "compute")


def test_products_in_generated_code_have_no_shapes_and_are_honest() -> None:
    first, second = cuda_pair(*CUDA["compute"])
    mark = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    compiled = [e for e in second["traceEvents"] if e.get("cat") != "cpu_op"]
    with pytest.raises(Wrong, match="computes something different"):
        judged(pair_of(first, {**second, "traceEvents": compiled}), "compute")
    judged(
        pair_of(first, {**second, "traceEvents": [*compiled, {**mark, "name": "## Call CompiledFxGraph f2r6 ##"}]}),
        "compute",
    )


def test_attention_by_hand_and_fused_are_the_same_work() -> None:
    q, k, v = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))

    def by_hand() -> None:
        ((q @ k.transpose(-1, -2) / 4).softmax(-1) @ v).sum().backward()

    def fused() -> None:
        torch.nn.functional.scaled_dot_product_attention(q, k, v).sum().backward()

    with TemporaryDirectory() as folder:
        hand_in(by_hand, fused, steps=4, folder=folder)
        pair = pair_of(*((Path(folder) / file).read_bytes() for file in FILES))
    pair.require_same_work()

    assert pair.before.flop_per_step == pair.after.flop_per_step


def test_a_gain_above_the_bound_is_not_the_gain_of_that_cause() -> None:
    before = Step(load_us=500, code_us=800)
    with pytest.raises(Wrong, match="faster than it would be without data"):
        judged(pair_of(*cuda_pair(before, Step(load_us=100, code_us=50))), "data")


def test_fewer_samples_a_step_and_a_smaller_model_are_other_work() -> None:
    before, after = CUDA["compute"]
    first, second = cuda_pair(before, replace(after, rows=256))
    with pytest.raises(Wrong, match="different shapes"):
        judged(pair_of(first, second), "compute")
    second["edl_labs"]["input_shapes"] = first["edl_labs"]["input_shapes"]
    with pytest.raises(Wrong, match="computes something different"):
        judged(pair_of(first, second), "compute")
    with pytest.raises(Wrong, match="computes something different"):
        judged(pair_of(*cuda_pair(before, replace(after, kernels=3))), "compute")


def test_a_captured_graph_has_no_shapes_and_is_honest() -> None:
    first, second = cuda_pair(*CUDA["launch"])
    graph = [e for e in second["traceEvents"] if e.get("cat") != "cpu_op"]
    for event in graph:
        if event["name"] == "cudaLaunchKernel":
            event["name"] = "cudaGraphLaunch"
    judged(pair_of(first, {**second, "traceEvents": graph}), "launch")


def test_files_of_two_recordings_or_two_devices_do_not_belong_together() -> None:
    first, second = cuda_pair(*CUDA["data"])
    second["edl_labs"]["stamp"]["device_name"] = "NVIDIA H100"
    with pytest.raises(Wrong, match="different devices"):
        judged(pair_of(first, second), "data")
    second["edl_labs"]["pair"] = "another"
    with pytest.raises(Wrong, match="do not belong together"):
        judged(pair_of(first, second), "data")
    with pytest.raises(Wrong, match="do not belong together"):
        judged(pair_of(first, first), "data")
