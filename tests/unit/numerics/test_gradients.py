"""Gradients of a real run: what deck [002] shows, drawn again."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edl_labs.errors import UsageError
from edl_labs.numerics import recorded_gradients, training_gradients, underflow_report


@pytest.fixture(scope="module")
def gradients() -> dict[str, torch.Tensor]:
    return training_gradients()


@pytest.mark.slow
def test_unscaled_a_large_part_of_the_gradients_flushes_to_zero_in_fp16(gradients) -> None:
    plain, scaled = (underflow_report(gradients, "fp16", scale=scale) for scale in (1.0, 2.0**16))

    assert 0.2 < plain.flushed < 0.8
    assert scaled.flushed < 0.6 * plain.flushed
    assert (0.0, 0.0) == (plain.overflowed, scaled.overflowed)


def test_bf16_needs_no_scale(gradients) -> None:
    assert underflow_report(gradients, "bf16").flushed < 0.001


@pytest.mark.slow
def test_fp16s_range_would_cover_nearly_all_of_them(gradients) -> None:
    shares = [underflow_report(gradients, "fp16", scale=2.0**power) for power in range(0, 40, 4)]

    assert any(report.flushed < 0.02 and report.overflowed < 0.005 for report in shares)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_leaves_the_callers_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = training_gradients(steps=1, seed=5)

    assert torch.equal(expected, torch.rand(2))
    assert all(torch.equal(first[name], value) for name, value in training_gradients(steps=1, seed=5).items())


def test_outputs_and_parameters_are_named() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    found = recorded_gradients(model, lambda: model(torch.ones(2, 4)).sum())

    assert {"0 output", "1 output", "0.weight", "0.bias"} == set(found)
    assert torch.equal(torch.ones(2, 3), found["1 output"])


def test_a_loss_without_a_gradient_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing that can be differentiated"):
        recorded_gradients(nn.Linear(2, 2), lambda: torch.zeros(()))


def test_a_second_pass_gives_the_same_gradients_not_their_sum() -> None:
    model = nn.Linear(4, 3)
    first, second = (recorded_gradients(model, lambda: model(torch.ones(2, 4)).sum()) for _ in range(2))

    assert torch.equal(first["weight"], second["weight"])
