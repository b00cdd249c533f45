"""lora: its numbers against torch's own counter and autograd, and right answers in other ways."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode


def test_the_operations_are_those_that_torch_counts(solution):
    positions, rows, columns, rank = 5, 24, 16, 3
    x = torch.randn(positions, columns, requires_grad=True)  # comes from a layer before
    weight = torch.randn(rows, columns)
    down, up = (torch.randn(*shape, requires_grad=True) for shape in ((rank, columns), (rows, rank)))
    with FlopCounterMode(display=False) as counter:
        solution["adapted"](x, weight, down, up, 6).sum().backward()

    assert counter.get_total_flops() == solution["step_flop"](positions, rows, columns, rank)
    assert weight.grad is None


def test_the_states_are_those_that_the_text_predicts(solution):
    rows = columns = 4096
    count = 8e9 / (rows * columns)
    adapters = 4e7 / count / (rows + columns)  # rank of 40 million weights in layers of this shape

    assert 128 == 8 * 16
    assert count * solution["state_bytes"](rows, columns, adapters) / 1e9 == pytest.approx(8 * 2 + 0.04 * 16)


def test_a_merged_weight_gives_the_adapted_output(solution):
    x, weight, down, up = (torch.randn(*shape) for shape in ((4, 12), (7, 12), (3, 12), (7, 3)))
    merged = solution["merged"](weight, down, up, 6)

    torch.testing.assert_close(solution["adapted"](x, weight, down, up, 6), x @ merged.T)


def through_the_weight(x, weight, down, up, alpha):
    return torch.nn.functional.linear(x, weight + up.mm(down).mul(alpha / down.shape[0]))


def in_double(weight, down, up, alpha):
    thin = torch.einsum("or,ri->oi", up.double(), down.double())
    return weight.double().add(thin, alpha=alpha / up.shape[1])


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("other", [{"adapted": through_the_weight}, {"merged": in_double}], ids=["adapted", "merged"])
def test_other_ways_to_the_same_numbers_earn_all(judged, other, seed):
    outcome = judged("lora", seed=seed, **other)

    assert 1 == outcome.points, outcome
