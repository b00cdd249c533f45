"""chunked_loss: products that are written as sums of elements are products too."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint


def product_by_columns(part, weight):
    """`part @ weight.T` without a product of matrices."""
    logits = part[:, :1] * weight[:, 0]
    for column in range(1, weight.shape[1]):
        logits = logits + part[:, column : column + 1] * weight[:, column]
    return logits


@pytest.mark.parametrize("product", [product_by_columns, lambda part, weight: part @ weight.T])
def test_logits_that_are_computed_again_without_a_product_cost_as_much(judged, product):
    def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
        def of_chunk(part, following):
            logs = product(part, weight).log_softmax(1)
            picked = logs.gather(1, following.clamp(min=0)[:, None])[:, 0]
            each = (1 - smoothing) * picked + smoothing * logs.mean(1)
            return -(each * (following != -100)).sum()

        total = hidden.new_zeros(())
        for at in range(0, len(hidden), rows):
            chunk = slice(at, at + rows)
            total = total + checkpoint(of_chunk, hidden[chunk], targets[chunk], use_reentrant=False)
        return total / (targets != -100).sum() if mean else total

    outcome = judged("chunked_loss", chunked_loss=chunked_loss)

    assert (0.6, "The logits are computed twice.") == (outcome.points, outcome.what)


def test_gradients_that_are_scaled_in_several_steps_are_made_once(judged, solution):
    class Scaled(solution["ChunkedLoss"]):
        @staticmethod
        def backward(ctx, grad):
            made = [torch.ones_like(one) * one * grad for one in ctx.saved_tensors]
            return *[one.clone() for one in made], None, None, None, None

    assert 1 == judged("chunked_loss", chunked_loss=Scaled.apply).points


@pytest.mark.parametrize(
    "product",
    [
        lambda part, weight: torch.addbmm(part.new_zeros(len(part), len(weight)), part[None], weight.T[None]),
        lambda part, weight: torch.stack([torch.mv(weight, row) for row in part]),
        lambda part, weight: part @ weight.T,
    ],
)
def test_logits_that_are_computed_twice_in_the_forward_pass_cost_as_much_by_any_product(judged, solution, product):
    class Twice(solution["ChunkedLoss"]):
        @staticmethod
        def forward(ctx, hidden, weight, *others):
            for at in range(0, len(hidden), 8):
                product(hidden[at : at + 8], weight)
            return solution["ChunkedLoss"].forward(ctx, hidden, weight, *others)

    outcome = judged("chunked_loss", chunked_loss=Twice.apply)

    assert (0.6, "The logits are computed twice.") == (outcome.points, outcome.what)
