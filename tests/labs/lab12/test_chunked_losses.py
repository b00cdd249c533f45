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

    assert (0.6, "Your function computes the logits twice.") == (outcome.points, outcome.what)


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

    assert (0.6, "Your function computes the logits twice.") == (outcome.points, outcome.what)


def test_sums_over_the_logits_that_are_written_as_products_are_no_second_product(judged, solution):
    class Weighted(solution["ChunkedLoss"]):
        @staticmethod
        def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
            wide = hidden.new_zeros(rows, len(weight))
            for _ in range(0, len(hidden), rows):
                torch.dot(torch.mv(wide, wide[0]), wide[:, 0])
            return solution["ChunkedLoss"].forward(ctx, hidden, weight, targets, rows, smoothing, mean)

    outcome = judged("chunked_loss", chunked_loss=Weighted.apply)

    assert 1 == outcome.points, outcome


def by_chunks(solution, losses_of, *, smoothings):
    """The solution, with a loss by a function of a chunk's logits and targets in cases of these smoothings."""

    class Other(solution["ChunkedLoss"]):
        @staticmethod
        def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
            loss = solution["ChunkedLoss"].forward(ctx, hidden, weight, targets, rows, smoothing, mean)
            if smoothing not in smoothings:
                return loss
            total = hidden.new_zeros(())
            for at in range(0, len(hidden), rows):
                following = targets[at : at + rows, None]
                each = losses_of(hidden[at : at + rows] @ weight.T, following.clamp(min=0), smoothing)
                total = total + (each * (following[:, 0] != -100)).sum()
            return total / (targets != -100).sum() if mean else total

    return Other.apply


def of_logs(logs, following, smoothing):
    return -(1 - smoothing) * logs.gather(1, following)[:, 0] - smoothing * logs.mean(1)


def over_0(logits, following, smoothing):
    return of_logs(logits.log_softmax(1), following, smoothing) / 0.0


def log_of_softmax(logits, following, smoothing):
    return of_logs(logits.softmax(1).log(), following, smoothing)


def log_of_the_sum_of_exp(logits, following, smoothing):
    return of_logs(logits - logits.exp().sum(1, keepdim=True).log(), following, smoothing)


@pytest.mark.parametrize(
    ("losses_of", "smoothings", "said"),
    [
        (over_0, (0.0, 0.1, 0.2), "got nan, expected "),
        (over_0, (0.2,), "got nan, expected "),
        (log_of_softmax, (0.2,), "results of softmax are 0, and the log of 0 is -inf"),
        (log_of_the_sum_of_exp, (0.2,), "and exp is inf above 710"),
    ],
)
def test_what_made_a_loss_infinite_is_told_where_that_is_seen(judged, solution, losses_of, smoothings, said):
    outcome = judged("chunked_loss", chunked_loss=by_chunks(solution, losses_of, smoothings=smoothings))

    assert "Your loss is not finite." == outcome.what
    assert said in outcome.why
    assert ("exp" in said) == ("exp" in outcome.why)
