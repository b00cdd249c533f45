"""Grids of integers: 0 is on them, the calibrations do what they say, and torch's own gives the same integers."""

from __future__ import annotations

import math

import pytest

from edl_labs.errors import UsageError
from edl_labs.inference import integer_grid, sqnr_db

torch = pytest.importorskip("torch")
METHODS = ("max", "percentile", "least")


def normal(seed, *shape, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def squared(values, rounded):
    return float(((values - rounded) ** 2).sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("shift", [-9.0, -1.0, 0.0, 0.3, 9.0])
def test_zero_is_a_number_of_every_grid(method, symmetric, shift):
    grid = integer_grid(normal(1, 500) + shift, method=method, symmetric=symmetric)

    assert 0.0 == float(grid.rounded(torch.zeros(1)))
    assert grid.lowest <= grid.zero_point <= grid.highest


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shift", [0.0, 2.0, -0.4])
def test_affine_max_has_the_integers_of_torchs_observer(seed, shift):
    from torch.ao.quantization import MinMaxObserver

    values = normal(seed, 4000) + shift
    observer = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    observer(values)
    scale, zero = observer.calculate_qparams()
    theirs = torch.fake_quantize_per_tensor_affine(values, float(scale), int(zero), -128, 127)
    theirs = torch.round(theirs / scale + zero)
    grid = integer_grid(values)

    assert float(scale) == pytest.approx(grid.scale, rel=1e-6)
    assert int(zero) == grid.zero_point
    # theirs multiplies by the reciprocal of the scale in float32: on a tie it may go the other way
    assert int((theirs.int() - grid.integers(values)).abs().max()) <= 1
    assert int((theirs.int() != grid.integers(values)).sum()) <= 1


@pytest.mark.parametrize("axis", [0, 1])
def test_symmetric_per_channel_has_the_integers_of_torchs_observer_from_minus_127(axis):
    from torch.ao.quantization import PerChannelMinMaxObserver

    values = normal(3, 6, 40) * torch.logspace(-2, 2, 6).view(-1, 1)
    options = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric, "quant_min": -127, "quant_max": 127}
    observer = PerChannelMinMaxObserver(ch_axis=axis, **options)
    observer(values)
    scale, zero = observer.calculate_qparams()
    theirs = torch.fake_quantize_per_channel_affine(values, scale, zero.int(), axis, -127, 127)
    theirs = torch.round(theirs / scale.view([-1 if at == axis else 1 for at in range(2)]))

    assert torch.equal(theirs.int(), integer_grid(values, symmetric=True, axis=axis).integers(values))


def test_symmetric_grids_of_torch_are_half_a_step_finer_because_they_reach_minus_128():
    from torch.ao.quantization import MinMaxObserver

    values = normal(4, 1000)
    observer = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
    observer(values)

    theirs = float(observer.calculate_qparams()[0])

    assert 127.5 / 127 == pytest.approx(integer_grid(values, symmetric=True).scale / theirs, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "laplace", "outliers", "one-sided", "skewed"])
def test_least_error_is_within_two_per_cent_of_a_fine_search(shape):
    values = normal(5, 8000)
    if shape == "laplace":
        values = values.sign() * torch.expm1(values.abs())
    if shape == "outliers":
        values[:8] *= 40
    if shape == "one-sided":
        values = values.relu()
    if shape == "skewed":
        values = torch.exp(values) - 0.2
    found = integer_grid(values, method="least", bits=4)
    low, high = min(0.0, float(values.min())), float(values.max())
    best = math.inf
    for left in torch.linspace(0, 1, 40):
        for right in torch.linspace(0.02, 1, 80):
            grid = integer_grid([float(left) * low, float(right) * high], bits=4)
            best = min(best, squared(values, grid.rounded(values)))

    assert squared(values, found.rounded(values)) <= 1.02 * best


def test_least_error_is_no_worse_than_torchs_histogram_observer():
    from torch.ao.quantization import HistogramObserver

    for seed in range(3):
        values = normal(seed, 20000) ** 3
        observer = HistogramObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine)
        observer(values)
        scale, zero = observer.calculate_qparams()
        theirs = torch.fake_quantize_per_tensor_affine(values, float(scale), int(zero), -128, 127)
        ours = integer_grid(values, method="least").rounded(values)

        assert squared(values, ours) <= 1.001 * squared(values, theirs)


def test_a_percentile_leaves_out_what_it_says():
    values = torch.arange(10_001.0) - 5000
    grid = integer_grid(values, method="percentile", share=0.99)

    assert 9900 == pytest.approx(grid.scale * 255, abs=2)
    assert 4950 == pytest.approx(
        integer_grid(values, method="percentile", share=0.99, symmetric=True).scale * 127, abs=1
    )


def test_a_channel_has_the_grid_that_it_would_have_alone():
    values = normal(7, 3, 5, 4)
    whole = integer_grid(values, method="least", axis=1)
    alone = [integer_grid(values[:, at], method="least") for at in range(5)]

    assert whole.scale == tuple(one.scale for one in alone)
    assert torch.equal(whole.integers(values)[:, 2], alone[2].integers(values[:, 2]))


def test_sqnr_is_six_decibel_a_bit():
    values = 2 * torch.rand(100_000, generator=torch.Generator().manual_seed(1)) - 1
    at = {bits: sqnr_db(values, integer_grid(values, bits=bits).rounded(values)) for bits in (6, 8)}

    assert 12.04 == pytest.approx(at[8] - at[6], abs=0.2)
    assert math.inf == sqnr_db(values, values)


def test_all_zeros_have_a_grid_too():
    assert 0.0 == float(integer_grid(torch.zeros(3)).rounded(torch.zeros(3)).abs().max())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "entropy"}, "'entropy' is not a calibration method"),
        ({"bits": 1}, "a grid cannot have 1 bits"),
        ({"share": 0}, "the share of values to keep is 0"),
    ],
)
def test_bad_settings_are_told(options, said):
    with pytest.raises(UsageError, match=said):
        integer_grid([1.0], **options)


@pytest.mark.parametrize("values", [[math.nan], [math.inf, 1.0], []])
def test_values_that_are_no_numbers_are_told(values):
    with pytest.raises(UsageError, match="A grid needs finite numbers"):
        integer_grid(values)
    with pytest.raises(UsageError, match="a grid along dimension 2"):
        integer_grid(torch.ones(1, 1, 1), axis=2).integers(torch.ones(2))
