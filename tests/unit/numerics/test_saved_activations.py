"""Saved tensors, counted while they live."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint_sequential

from edl_labs.errors import UsageError
from edl_labs.numerics import checkpointed_peak, checkpointing_slots, saved_activations
from edl_labs.numerics.step_memory import StepRecorder, timeline


def tower(layers: int, width: int = 8) -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)))


class Checkpointed(nn.Module):
    """A tower run in segments that are computed again in the backward pass."""

    def __init__(self, layers: nn.Sequential, segments: int, *, reentrant: bool = True) -> None:
        super().__init__()
        self.layers, self.segments, self.reentrant = layers, segments, reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint_sequential(self.layers, self.segments, x, use_reentrant=self.reentrant)


def batch(rows: int = 4) -> torch.Tensor:
    return torch.ones(rows, 8, requires_grad=True)


@pytest.mark.parametrize("segments", [2, 3, 4, 5, 8, 16])
def test_checkpointing_holds_what_the_formula_says(segments: int) -> None:
    found = saved_activations(Checkpointed(tower(16), segments), batch())

    assert checkpointed_peak(16, segments, saved_per_layer=2) == found.count


def test_without_checkpointing_each_layer_keeps_its_input_and_its_output() -> None:
    found = saved_activations(tower(16), batch(3))

    assert (32, 32 * 3 * 8 * 4) == (found.count, found.count_bytes)
    # A layer's output is the next one's input: 16 outputs and the batch itself.
    assert 17 * 3 * 8 * 4 == found.peak_bytes
    assert (32, 17 * 3 * 8 * 4) == (found.after_forward, found.after_forward_bytes)


@pytest.mark.parametrize("reentrant", [True, False])
def test_peak_of_live_tensors_falls_with_either_kind_of_checkpointing(reentrant: bool) -> None:
    layers = tower(16)
    rows = 512  # activations well above the weights' gradients
    plain = saved_activations(layers, batch(rows)).live_peak_bytes
    recomputed = saved_activations(Checkpointed(layers, 4, reentrant=reentrant), batch(rows)).live_peak_bytes

    assert recomputed < 0.6 * plain


def test_parameters_and_their_views_are_not_activations() -> None:
    assert 1 == saved_activations(nn.Linear(8, 8), batch().detach()).count


def test_gradients_are_left_as_they_were() -> None:
    layers, x = tower(2), batch()
    saved_activations(layers, x)

    assert [None] * 5 == [tensor.grad for tensor in (*layers.parameters(), x)]


def test_gradients_that_were_there_keep_their_values() -> None:
    layers, x = tower(2), batch()
    for leaf in (*layers.parameters(), x):
        leaf.grad = torch.ones_like(leaf)
    saved_activations(layers, x)

    assert all(torch.equal(torch.ones_like(leaf), leaf.grad) for leaf in (*layers.parameters(), x))


def test_forward_alone_counts_without_a_backward_pass() -> None:
    found = saved_activations(tower(4), batch(), backward=False)

    assert (8, False) == (found.after_forward, found.backward_ran)
    assert 8 == json.loads(json.dumps(found.to_json()))["count"]


def test_shapes_alone_are_enough() -> None:
    real = saved_activations(tower(4), batch())
    with FakeTensorMode():
        fake = saved_activations(tower(4), batch())

    assert (real.count, real.peak_bytes) == (fake.count, fake.peak_bytes)


def test_live_bytes_go_back_to_nothing() -> None:
    with StepRecorder({}) as live:
        a = torch.ones(100)
        b = a + 1
        view = b[:10]
        del a, b
        view += 1
        del view
        torch.ones(1)

    held = [sum(held.values()) for _, held in timeline(live, 0, len(live.operations))]
    assert [400, 800, 400, 4, 0] == held
    assert 800 == live.peak_bytes()


def test_the_textbooks_minimum_is_at_the_square_root() -> None:
    assert [8, 16, 20] == [checkpointing_slots(n, round(n**0.5)) for n in (16, 64, 100)]


@pytest.mark.parametrize(("layers", "segments"), [(4, 5), (4, 0), (4.0, 2), (4, True)])
def test_segments_that_are_none_are_refused(layers, segments) -> None:
    with pytest.raises(UsageError, match=r"segments|whole number"):
        checkpointed_peak(layers, segments)


def test_a_model_without_gradients_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing in this model requires a gradient"):
        saved_activations(nn.ReLU(), torch.zeros(3))


def test_buffers_are_no_activations():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(8))

        def forward(self, x):
            return x * self.mask

    found = saved_activations(nn.Sequential(nn.Linear(8, 8), Masked()), torch.zeros(2, 8))

    assert (1, 2 * 8 * 4) == (found.count, found.peak_bytes)
