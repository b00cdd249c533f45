"""Parts of a step on several GPUs, its peak there, and what a compiler leaves of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edl_labs.predict import ParallelLayout, predict_step
from edl_labs.predict.compiled_kernels import fused, graph_of, remade_bytes
from edl_labs.predict.many_gpus import sharded, spread_held
from edl_labs.predict.recorded_step import record_step


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def recording(**options):
    with torch.device("meta"):
        model, x = nn.Sequential(*(Block(256) for _ in range(4))), torch.empty(512, 256)
    return record_step(model, x, **{"dtype": "bf16", "optimizer": "fused_adamw"} | options)


@pytest.mark.parametrize("tp", [2, 4])
def test_tensor_parallel_parts_hold_all_the_work_and_cut_no_tokens(tp):
    whole = [one for one in recording().kernels if one.product]
    parts = [one for one in sharded(recording().kernels, ParallelLayout.of({"gpus": tp, "tp": tp})) if one.product]
    size = lambda p: p.m * p.n * p.k  # noqa: E731
    assert all(size(part.product) * tp == size(one.product) for one, part in zip(whole, parts, strict=True))
    for one, part in zip(whole, parts, strict=True):
        is_weight_gradient = one.phase == "backward" and one.product.k == 512
        assert (part.product.k if is_weight_gradient else part.product.m) == 512
        assert one.moved_bytes / tp <= part.moved_bytes < one.moved_bytes


def test_weights_that_are_read_once_are_read_in_parts():
    """A decoder's step moves weights alone: two GPUs read half of them each."""
    model, x = nn.Linear(16384, 16384, bias=False).eval(), torch.empty(1, 16384, device="meta")
    times = [
        predict_step(model, x, "A100-80GB", dtype="bf16", cluster={"gpus": n, "tp": n}).works["product"] for n in (1, 2)
    ]
    assert 1.6 < times[0] / times[1] < 2.0


def test_shards_divide_what_they_hold_and_gather_what_runs():
    found = recording()
    moment = next(one for one in found.moments if one.phase == "backward")
    plain = spread_held(found, ParallelLayout.of(8), moment)
    sharded_held = spread_held(found, ParallelLayout.of({"gpus": 8, "zero": 3}), moment)
    assert plain == dict(moment.held)
    assert sharded_held["parameters"] == moment.held["parameters"] // 8
    block = 2 * found.block_parameters
    # The running block and the next in 16 bits, and one block's gradients in 16 and in 32.
    assert sharded_held["gathered"] == 2 * block + 3 * block
    wide = spread_held(found, ParallelLayout.of({"gpus": 8, "zero": 3, "wide_state": True}), moment)
    assert wide["optimizer"] == 2 * sharded_held["optimizer"]
    away = spread_held(found, ParallelLayout.of({"gpus": 8, "zero": 3, "offload": True}), moment)
    assert away["optimizer"] == 0
    assert away["parameters"] > 0


def test_the_peak_is_that_of_the_shards_and_not_of_the_whole():
    with torch.device("meta"):
        model, x = nn.Sequential(*(Block(1024) for _ in range(8))), torch.empty(8, 1024)
    whole = predict_step(model, x, "A100-80GB", dtype="bf16", optimizer="adamw")
    parts = predict_step(model, x, "A100-80GB", dtype="bf16", optimizer="adamw", cluster={"gpus": 64, "zero": 3})
    assert whole.peak_phase == "optimizer"
    assert parts.peak_phase == "backward"
    assert "gathered" in parts.held


def test_a_compiled_step_is_fused_by_the_graph():
    kernels = recording().kernels
    graph, after = graph_of(kernels), fused(kernels)
    assert {node.kind for node in graph.nodes} >= {"contraction", "reduction", "pointwise"}
    assert len(after) < 0.8 * len(kernels)
    assert sum(one.flops for one in after) == sum(one.flops for one in kernels)
    assert sum(one.moved_bytes for one in after) < sum(one.moved_bytes for one in kernels)
    phases = [one.phase for one in after]
    assert phases == sorted(phases, key=["forward", "backward", "optimizer"].index)
    kept, made = {version for one in after for version, _ in one.writes}, set()
    for one in after:
        assert {version for version, _ in one.reads} & kept <= made, "a kernel reads what is there already"
        made |= {version for version, _ in one.writes}


def test_what_is_made_again_is_not_saved():
    kernels = recording().kernels
    assert remade_bytes(kernels, kernels) == 0
    assert remade_bytes(kernels, fused(kernels)) > 0
    with torch.device("meta"):
        model, x = (
            nn.Sequential(nn.Linear(64, 4096), nn.GELU(), nn.Tanh(), nn.Sigmoid(), nn.Linear(4096, 8)),
            torch.empty(4096, 64),
        )
    eager = predict_step(model, x, "A100-80GB")
    assert eager.what_if(compiled=True).held["activations"] < eager.held["activations"]


def test_a_picture_shows_what_the_step_waits_for():
    from edl_labs.plots.style import subplots

    with torch.device("meta"):
        model, x = nn.Sequential(*(Block(256) for _ in range(4))), torch.empty(512, 256)
    slow = {"gpus": 16, "outside_byte_per_s": 1e8}
    found = predict_step(model, x, "A100-80GB", dtype="bf16", optimizer="adamw", cluster=slow)
    assert found.works["communication"] == found.limits["communication"] > 0.5 * found.step_s
    assert sum(found.works.values()) == pytest.approx(sum(found.limits.values()))
    _, axes = subplots()
    found.plot(axes)
    assert axes.get_yticklabels()[-1].get_text() == "waiting for other GPUs"
    assert "16 × A100-80GB" in axes.get_title()
