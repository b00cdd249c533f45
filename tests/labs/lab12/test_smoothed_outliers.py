"""smooth_outliers: smoothing changes no product, folding no layer; draws hold every kind of row; other right ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from edl_labs.exercises.lab12_language_model.judge.drawn_outliers import outliers

SEEDS = range(1, 6)


def drawn(seed):
    return [case.given for case in outliers(np.random.default_rng(seed))]


def an_outlier_layer():
    torch.manual_seed(0)
    x, weight = torch.randn(64, 128), 0.1 * torch.randn(48, 128)
    x[:, 7] *= 60
    return x, weight


@pytest.mark.parametrize("alpha", [0, 0.3, 0.5, 1])
def test_smoothing_changes_no_product(solution, alpha):
    x, weight = an_outlier_layer()
    s = solution["smoothing_scales"](x, weight, alpha)

    torch.testing.assert_close(x @ weight.T, (x / s) @ (weight * s).T, rtol=1e-4, atol=1e-3)


def test_alpha_one_levels_the_activations_and_alpha_zero_the_weights(solution):
    x, weight = an_outlier_layer()
    level = torch.ones(128)

    torch.testing.assert_close(level, (x / solution["smoothing_scales"](x, weight, 1)).abs().amax(0))
    torch.testing.assert_close(level, (weight * solution["smoothing_scales"](x, weight, 0)).abs().amax(0))


def test_both_ends_are_worse_than_the_middle(solution):
    x, weight = an_outlier_layer()
    exact = x @ weight.T

    def error(s):
        made = solution["w8a8_product"](*solution["int8_rows"](x / s), *solution["int8_rows"](weight * s))
        return (made - exact).norm() / exact.norm()

    plain, *smoothed = [error(1), *(error(solution["smoothing_scales"](x, weight, alpha)) for alpha in (0, 0.5, 1))]

    assert smoothed[1] < min(smoothed[0], smoothed[2], plain) / 3


def test_the_folded_norm_gives_the_smoothed_product(solution):
    x, weight = an_outlier_layer()
    gain, bias, s = torch.rand(128) + 0.5, torch.randn(128), torch.rand(128) + 0.5
    new_gain, new_bias, new_weight = solution["folded"](gain, bias, weight, s)

    before, after = layer_norm(x, (128,), gain, bias), layer_norm(x, (128,), new_gain, new_bias)
    torch.testing.assert_close(before / s, after)
    torch.testing.assert_close(before @ weight.T, after @ new_weight.T, rtol=1e-4, atol=1e-4)


def test_the_values_rows_can_be_divided_as_the_text_says():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 4, 10, 8).double()
    s = torch.rand(8).double() + 0.5

    torch.testing.assert_close(scaled_dot_product_attention(q, k, v / s), scaled_dot_product_attention(q, k, v) / s)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_draw_has_every_kind_of_channel_row_and_alpha(solution, seed):
    assert {0.0, 1.0} < {case["alpha"] for case in drawn(seed)}
    for case in drawn(seed):
        x, weight, table = (np.array(case[name]) for name in ("x", "weight", "table"))
        scales = np.abs(table).max(1) / 127
        places = table / np.where(scales > 0, scales, 1)[:, None]
        sums = np.array(case["left"]) @ np.array(case["right"]).T

        assert (1, 1) == ((abs(x).max(0) == 0).sum(), (abs(weight).max(0) == 0).sum())
        assert abs(x).max() > 6 * np.sort(abs(x).max(0))[-2]
        assert ((abs(x).max(0) < 0.1) & (abs(weight).max(0) < 0.3) & (abs(x).max(0) > 0)).any()
        assert (scales == 0).any()
        assert 4 <= (places % 1 == 0.5).sum()
        assert sums.max() > 32767
        assert 127 == abs(solution["int8_rows"](torch.tensor(table))[0]).max()


def of_numbers(x, weight, alpha):
    pairs = zip(x.abs().amax(0).tolist(), weight.abs().amax(0).tolist(), strict=True)
    return [a**alpha / b ** (1 - alpha) if a and b else 1.0 for a, b in pairs]


def in_logarithms(x, weight, alpha):
    most = [t.double().abs().max(dim=0).values.log2() for t in (x, weight)]
    s = (alpha * most[0] - (1 - alpha) * most[1]).exp2()
    return torch.where(torch.isfinite(most[0]) & torch.isfinite(most[1]), s, torch.ones_like(s))


def times_the_inverse(table):
    amax = torch.linalg.vector_norm(table.double(), float("inf"), dim=1, keepdim=True)
    integers = torch.clamp(torch.round(table * torch.where(amax > 0, 127 / amax, 0)), -127, 127)
    return integers.to(torch.int8), (amax / 127).masked_fill(amax == 0, 1)[:, 0].float()


def in_floats(x, x_scales, weight, weight_scales):
    return linear(x.float() * x_scales[:, None], weight.float() * weight_scales[:, None])


def with_reciprocals(norm_weight, norm_bias, weight, scales):
    inverse = scales.double().reciprocal()
    return norm_weight * inverse, norm_bias * inverse, weight @ torch.diag(scales)


@pytest.mark.parametrize(
    "other",
    [
        {"smoothing_scales": of_numbers, "int8_rows": times_the_inverse},
        {"smoothing_scales": in_logarithms, "w8a8_product": in_floats},
        {"folded": with_reciprocals},
    ],
    ids=["numbers", "logarithms", "reciprocals"],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_ways_to_the_same_numbers_earn_all(judged, other, seed):
    outcome = judged("smooth_outliers", seed=seed, **other)

    assert 1 == outcome.points, outcome
