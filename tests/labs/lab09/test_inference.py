"""lab09's exercises: what the solutions give by hand and against the library's, and drawn cases that decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab09_inference.folded_layers import drawn_layers
from edl_labs.exercises.lab09_inference.integer_scales import _judge_ranges, with_slips
from edl_labs.exercises.lab09_inference.judge.histogram_slips import PRICED_WRONGLY
from edl_labs.exercises.lab09_inference.range_symptoms import WITHIN, expected_error, is_grid
from edl_labs.inference import integer_grid, pack_two_of_four, two_of_four_mask

torch = pytest.importorskip("torch")


def test_a_batch_norm_in_front_of_a_padded_convolution_stays(solution):
    norm = {"gain": [2.0], "shift": [3.0], "mean": [0.0], "var": [1.0]}
    norm = {"kind": "batch_norm", "eps": 0.0, **{name: torch.tensor(one) for name, one in norm.items()}}
    conv = {"kind": "conv", "weight": torch.ones(1, 1, 3, 3), "bias": None, "stride": 1, "groups": 1}
    found = {
        padding: solution["fold_batch_norm"]([norm, {**conv, "padding": padding}])[0]["kind"] for padding in (0, 1)
    }

    assert {0: "conv", 1: "batch_norm"} == found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chains_fold_as_torch_folds_pairs(exercises, solution, seed):
    case = exercises["fold_batch_norm"].drawing()(np.random.default_rng(seed))[0]
    conv, norm, _ = drawn_layers(case)
    weight, bias = torch.nn.utils.fuse_conv_bn_weights(
        conv["weight"], conv["bias"], norm["mean"], norm["var"], norm["eps"], norm["gain"], norm["shift"]
    )
    folded = solution["fold_batch_norm"](drawn_layers(case))[0]

    assert torch.allclose(weight, folded["weight"])
    assert torch.allclose(bias, folded["bias"])


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("ends", [(-3.0, 1.0), (2.0, 5.0), (-7.0, -6.5), (0.0, 0.0)])
def test_grids_and_integers_are_the_librarys(solution, symmetric, ends):
    values = torch.linspace(*ends, 301, dtype=torch.float64) + 0.001
    ours = integer_grid(torch.tensor(ends), symmetric=symmetric)
    scale, zero = solution["grid"](*ends, symmetric=symmetric)
    integers = solution["integers"](values, ours.scale, ours.zero_point, axis=None, symmetric=symmetric)

    assert (ours.scale, ours.zero_point) == (pytest.approx(scale), zero)
    assert int((integers.int() - ours.integers(values)).abs().max()) <= 1


def test_the_expected_error_is_what_rounding_costs():
    values = torch.rand(200_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 8
    counts, edges = torch.histogram(values, 80, range=(0.0, 8.0))
    seen = {"counts": counts.tolist(), "edges": edges.tolist(), "symmetric": False}
    for end in (8.0, 7.5, 5.0):
        grid = integer_grid([0.0, end])
        measured = float(((grid.rounded(values) - values) ** 2).sum())

        assert measured == pytest.approx(expected_error(seen, grid.scale, grid.zero_point), rel=0.03)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_histograms_are_decided_by_their_outliers(exercises, solution, seed):
    ratios = []
    for case in exercises["calibrate"].draw_cases(seed):
        for one in case["histograms"]:
            given = (one["counts"], one["edges"])
            price = {
                method: expected_error(one, *solution["calibrate"](*given, method=method, symmetric=one["symmetric"]))
                for method in ("max", "percentile", "least")
            }
            ratios.append((price["max"] / price["least"], price["percentile"] / price["least"]))

    assert all(whole > 1.02 for whole, _ in ratios)
    assert any(inner > 1.05 for _, inner in ratios)
    assert min(min(pair) for pair in ratios) >= 1


def test_a_wrong_price_of_a_bin_never_chooses_the_percentiles_range(exercises, solution):
    for seed in range(6):  # one in seven did, and was told of the percentile
        for case in exercises["calibrate"].draw_cases(seed):
            for one in with_slips(case):
                least, inner = (
                    solution["calibrate"](one["counts"], one["edges"], method=name, symmetric=one["symmetric"])
                    for name in ("least", "percentile")
                )
                mistaken = [name for name in PRICED_WRONGLY if is_grid(one["slips"][name], inner)]

                assert not mistaken or expected_error(one, *inner) <= WITHIN * expected_error(one, *least)


def test_one_symmetric_histogram_tells_both_ends_together_from_each_by_itself(exercises, solution):
    for seed in range(500, 506):  # one draw in eight had none, and both passed
        symmetric = [h for case in exercises["calibrate"].draw_cases(seed) for h in with_slips(case) if h["symmetric"]]
        right = [solution["calibrate"](h["counts"], h["edges"], method="percentile", symmetric=True) for h in symmetric]

        assert not all(is_grid(h["slips"]["each end"], one) for h, one in zip(symmetric, right, strict=True))


@pytest.mark.parametrize("cut", [math.trunc, math.floor, math.ceil])
def test_a_zero_point_that_is_cut_off_is_told_though_a_whole_place_came_out_beside_itself(cut):
    ranges = [{"low": low, "high": high, "symmetric": False} for low, high in ((-1.9, 0.0), (-8.1, 0.0), (-1.0, 5.7))]
    places = [-128 - one["low"] / ((one["high"] - one["low"]) / 255) for one in ranges]
    grids = [((one["high"] - one["low"]) / 255, at) for one, at in zip(ranges, places, strict=True)]

    with pytest.raises(Wrong, match="your function does not round the zero point to the nearest integer"):
        _judge_ranges(ranges, [(s, cut(z)) for s, z in grids], [(s, round(z)) for s, z in grids])


def test_a_range_within_two_per_cent_counts_and_no_other(judged, solution):
    def off(factor):
        def calibrate(counts, edges, *, method, symmetric):
            scale, zero = solution["calibrate"](counts, edges, method=method, symmetric=symmetric)
            return (scale * factor, zero) if method == "least" else (scale, zero)

        return calibrate

    assert 1 == judged("calibrate", calibrate=off(1.001)).points
    assert "your range does not have the smallest error" == judged("calibrate", calibrate=off(1.3)).what


@pytest.mark.parametrize("relu", [False, True])
def test_the_product_in_integers_is_that_of_the_numbers(solution, relu):
    drawn = torch.Generator().manual_seed(3)
    x = torch.randint(-128, 128, (4, 300), generator=drawn, dtype=torch.int8)
    weight = torch.randint(-127, 128, (300, 3), generator=drawn, dtype=torch.int8)
    bias = torch.tensor([1.0, -20.0, 300.0], dtype=torch.float64)
    scales, zeros = [0.01, 0.02, 0.005], [3, -9, 0]
    exact = 0.1 * (x.double() + 17) @ ((weight.double() - torch.tensor(zeros)) * torch.tensor(scales)) + bias
    given = {"x_scale": 0.1, "x_zero": -17, "weight_scale": scales, "weight_zero": zeros, "out_scale": 2.5}
    made = solution["ahead"](weight, bias, **given)
    out = solution["int8_product"](x, weight, *made, weight_zero=zeros, out_zero=-20, relu=relu)
    right = (torch.round((exact.relu() if relu else exact) / 2.5) - 20).clamp(-128, 127)

    assert int((out - right).abs().max()) <= 1
    assert out.dtype == torch.int8


def test_masks_and_values_are_the_librarys_of_the_transposed_weight(solution):
    weight = torch.randn(32, 6, generator=torch.Generator().manual_seed(2))
    values, places = solution["pack"](weight)
    packed = pack_two_of_four(weight.T)

    assert torch.equal(two_of_four_mask(weight.T).T, solution["mask"](weight))
    assert torch.equal(packed.values.T, values)
    assert packed.places.numel() * 2 == places.numel()


def test_the_product_from_packed_weights_is_that_of_the_pruned_one(solution):
    weight = torch.randn(16, 5, generator=torch.Generator().manual_seed(4))
    x = torch.randn(3, 16, generator=torch.Generator().manual_seed(5))
    found = solution["sparse_product"](x, *solution["pack"](weight))

    assert torch.allclose(x @ (weight * solution["mask"](weight)), found, atol=1e-5)


def test_bad_answers_are_told_and_do_not_break_the_check(judged):
    assert 0 == judged("two_of_four", mask=lambda weight: None).points
    assert 0 == judged("fold_batch_norm", fold_batch_norm=lambda layers: []).points
    nan = judged("calibrate", calibrate=lambda *given, **named: (math.nan, 0))

    assert "one of your scales is not positive and finite" == nan.what


def test_no_batch_norm_is_gone_without_a_trace(judged):
    outcome = judged("fold_batch_norm", fold_batch_norm=lambda layers: [one for one in layers if "gain" not in one])

    assert (0, "your weights are unchanged") == (outcome.points, outcome.what)


def test_a_mask_that_does_not_fit_is_told_though_nothing_can_be_packed_by_it(judged, solution):
    def along_outputs(weight):
        kept = torch.zeros_like(weight, dtype=torch.bool)
        kept[:, :2] = True
        return kept

    def unpacked(weight):
        raise RuntimeError("shape is invalid")

    outcome = judged("two_of_four", mask=along_outputs, pack=unpacked)

    assert (0, "your mask does not keep two weights in every group") == (outcome.points, outcome.what)


def test_an_order_is_not_a_rank(judged):
    def order(weight):
        return (weight.abs().unflatten(0, (-1, 4)).argsort(dim=1, descending=True) < 2).flatten(0, 1)

    assert "your code uses the result of argsort as the ranks of the weights" == judged("two_of_four", mask=order).what


@pytest.mark.parametrize("seed", [1, 2, 506])
def test_row_sums_are_told_by_what_became_of_them(judged, seed):
    def rows_as(dtype):
        def product(x, weight, offset, multiplier, *, weight_zero, out_zero, relu):
            rows = x.sum(1, keepdim=True, dtype=dtype).int() if dtype else 0
            sums = x.int() @ weight.int() + offset - rows * torch.tensor(weight_zero)
            return (torch.round(sums * multiplier) + out_zero).clamp(out_zero if relu else -128, 127).to(torch.int8)

        return judged("int8_product", seed=seed, int8_product=product)

    assert 1 == rows_as(torch.int32).points
    assert "your code does not subtract the weights' zero points" == rows_as(None).what
    if seed != 506:  # there both mistakes give the same outputs
        assert "your sums of the rows of x wrap around" == rows_as(torch.int8).what
