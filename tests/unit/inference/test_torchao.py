"""torchao, an optional extra, gives the integers and masks of ours; where it does not, the test says why."""

from __future__ import annotations

import pytest

from edl_labs.inference import integer_grid, two_of_four_mask

torch = pytest.importorskip("torch")
pytest.importorskip("torchao", reason="torchao is not installed: pip install 'edl-labs[ao]'")


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def theirs(values, mapping, *, block, lowest=-128):
    """(scales, zero points, integers) of torchao; a block is what has one scale."""
    from torchao.quantization.quant_primitives import MappingType, choose_qparams_affine, quantize_affine

    scales, zeros = choose_qparams_affine(values, MappingType[mapping], block, torch.int8, lowest, 127)
    return scales, zeros, quantize_affine(values, block, scales, zeros, torch.int8, lowest, 127).to(torch.int32)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shift", [0.0, 2.0, -0.4, -9.0])
def test_affine_per_tensor_has_the_same_integers(seed, shift):
    values = normal(seed, 4000) + shift
    scale, zero, integers = theirs(values, "ASYMMETRIC", block=(4000,))
    grid = integer_grid(values)

    assert float(scale) == pytest.approx(grid.scale, rel=1e-6)
    assert int(zero) == grid.zero_point
    assert torch.equal(integers, grid.integers(values))


@pytest.mark.parametrize(("axis", "block"), [(0, (1, 40)), (1, (6, 1))])
@pytest.mark.parametrize("symmetric", [False, True])
def test_per_channel_has_the_same_integers(axis, block, symmetric):
    values = normal(3, 6, 40) * torch.logspace(-2, 2, 6).view(-1, 1)
    mapping, lowest = ("SYMMETRIC", -127) if symmetric else ("ASYMMETRIC", -128)
    scales, zeros, integers = theirs(values, mapping, block=block, lowest=lowest)
    grid = integer_grid(values, symmetric=symmetric, axis=axis)

    assert scales.flatten().tolist() == pytest.approx(list(grid.scale), rel=1e-6)
    assert zeros.flatten().tolist() == list(grid.zero_point)
    assert torch.equal(integers, grid.integers(values))


def test_a_symmetric_grid_that_has_minus_128_is_half_a_step_finer():
    values = normal(4, 1000)
    scale, _, _ = theirs(values, "SYMMETRIC", block=(1000,))

    assert 127.5 / 127 == pytest.approx(integer_grid(values, symmetric=True).scale / float(scale), rel=1e-5)


def test_two_of_four_keeps_what_torchao_keeps_where_magnitudes_differ():
    from torchao.sparsity.utils import mask_creator

    weight = normal(5, 64, 128)

    assert torch.equal(mask_creator(weight).bool(), two_of_four_mask(weight))


def test_of_equal_magnitudes_torchao_keeps_two_as_well_and_ours_the_earlier():
    from torchao.sparsity.utils import mask_creator

    weight = torch.ones(1, 64)  # torchao sorts without an order among equals

    assert [2] * 16 == mask_creator(weight).view(-1, 4).sum(1).int().tolist()
    assert [True, True, False, False] * 16 == two_of_four_mask(weight).flatten().tolist()
