"""memory_plan against bytes worked out by hand and against a measured step on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from benchmarks.memory_prediction import measured_peak
from edl_labs.errors import EdlError, UsageError
from edl_labs.numerics import MemoryPlan, memory_plan
from edl_labs.roofline import Machine

pytestmark = pytest.mark.slow  # each recording runs a model operation by operation

MACHINE = Machine.simple("blackboard", peak_flop_per_s=1e12, bandwidth_byte_per_s=1e11)


def mlp(depth: int = 4, width: int = 64) -> torch.nn.Sequential:
    layers = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh()) for _ in range(depth)]
    return torch.nn.Sequential(*layers)


def test_each_category_is_what_a_step_by_hand_has() -> None:
    model, example = mlp(), torch.zeros(1000, 64)
    plan = memory_plan(model, example, MACHINE)
    parameters, output = 4 * 4 * (64 * 64 + 64), 4 * 1000 * 64

    held = plan.peak.held_bytes
    assert (parameters, output) == (held["parameters"], held["inputs"])
    assert 2 * parameters + 4 * 8 == held["optimizer"], "two averages, and the count of steps of eight tensors"
    # Tanh keeps its output, and the next Linear reads the same one; four bytes are the loss.
    assert 4 * output + 4 == max(moment.held_bytes["activations"] for moment in plan.moments)
    assert parameters == max(moment.held_bytes["gradients"] for moment in plan.moments)
    assert [output, output, output, output + 4] == [layer.activation_bytes for layer in plan.tape.layers[1::2]]
    assert {output} == {layer.output_bytes for layer in plan.tape.layers}
    assert MemoryPlan.from_json(plan.to_json()).peak == plan.peak


@pytest.mark.parametrize("batch", [4, 4000])
def test_the_peak_is_the_measured_one(batch: int) -> None:
    model, example = mlp(), torch.randn(batch, 64)
    held = memory_plan(model, example, MACHINE).peak.held_bytes
    before = sum(held[name] for name in ("parameters", "inputs", "optimizer"))

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    assert sum(held.values()) - before == pytest.approx(measured_peak(model, example, optimizer), rel=0.05)


def test_nothing_is_changed() -> None:
    model, example = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8)), torch.randn(4, 8)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.random.get_rng_state()
    memory_plan(model, example, MACHINE, optimizer="momentum")

    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(state, torch.random.get_rng_state())


def test_autocast_keeps_casts_of_the_weights() -> None:
    plan = memory_plan(mlp(), torch.zeros(8, 64), MACHINE, autocast=torch.bfloat16)

    most = max(moment.held_bytes["cast cache"] for moment in plan.moments)
    assert 4 * 2 * (64 * 64 + 64) == most


def test_cuda_is_planned_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 512 bytes, no counts of steps, square roots of all averages at once, and masks of one byte."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model, example = torch.nn.Sequential(mlp(2), torch.nn.Dropout(0.5)), torch.zeros(1000, 64)
    plan = memory_plan(model, example, MACHINE, device=torch.device("cuda"))

    parameters, output = 2 * (4 * 64 * 64 + 512), 4 * 1000 * 64
    assert (parameters, 2 * parameters) == (plan.peak.held_bytes["parameters"], plan.peak.held_bytes["optimizer"])
    in_optimizer = [moment.held_bytes["temporaries"] for moment in plan.moments if moment.phase == "optimizer"]
    assert parameters == max(in_optimizer)
    # Both Tanh outputs, the mask, its block rounded up, and the loss in a block of its own.
    mask = -(-1000 * 64 // 512) * 512
    assert 2 * output + mask + 512 == max(moment.held_bytes["activations"] for moment in plan.moments)
    assert "cuda" == plan.device

    with pytest.raises(UsageError, match="autocast on CUDA cannot be planned here"):
        memory_plan(model, example, MACHINE, device="cuda", autocast=torch.bfloat16)


def test_a_budget_is_kept_by_recomputing_and_a_smaller_one_is_said_to_be_impossible() -> None:
    model, example = mlp(depth=12), torch.zeros(4000, 64)
    whole = memory_plan(model, example, MACHINE, optimizer="sgd")
    budget = whole.tape.resident_bytes + 9 * 4 * 4000 * 64

    plan = memory_plan(model, example, MACHINE, optimizer="sgd", budget=budget)
    assert plan.placement is not None
    assert plan.placement.replay.peak_bytes <= budget < plan.peak_bytes
    assert () == plan.placement.replay.missing
    assert "fits without changes" in memory_plan(model, example, MACHINE, optimizer="sgd", budget=10**12).advice
    assert "no placement" in memory_plan(model, example, MACHINE, optimizer="sgd", budget=1000).advice


def test_a_residual_block_is_one_layer_and_reads_its_neighbour() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = mlp(2, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.inner(x)

    model = torch.nn.Sequential(Block(), Block(), torch.nn.Linear(16, 1))
    tape = memory_plan(model, torch.zeros(8, 16), MACHINE, optimizer="none").tape

    assert ["0", "1", "2"] == [layer.name for layer in tape.layers]
    assert tape.is_chain
    assert all(layer.forward_s > 0 and layer.backward_s > layer.forward_s for layer in tape.layers)


def test_what_cannot_be_planned_says_why() -> None:
    with pytest.raises(EdlError, match="cannot be planned") as caught:
        memory_plan(mlp(), torch.zeros(3, 5), MACHINE)
    assert "[3, 5] X [64, 64]" in caught.value.why
    with pytest.raises(EdlError, match="there is no optimizer 'lion'"):
        memory_plan(mlp(), torch.zeros(3, 64), MACHINE, optimizer="lion")


class Reads(nn.Module):
    """A recurrent layer, and what comes of its last state."""

    def __init__(self, kind):
        super().__init__()
        self.layer = kind(8, 16)

    def forward(self, x):
        return self.layer(x)[0]


def test_a_plan_with_a_recurrent_layer_says_that_its_workspace_is_missing():
    plan = memory_plan(Reads(nn.LSTM), torch.zeros(5, 2, 8), "H200")

    assert "workspace" in plan.notes[0]
    assert plan.notes[0] in str(plan)
    assert () == memory_plan(nn.Linear(8, 8), torch.zeros(2, 8), "H200").notes
