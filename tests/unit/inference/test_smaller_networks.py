"""Folding, rounding and 2:4: same answers as the model, or as torch's own; and histograms that lose nothing."""

from __future__ import annotations

import pytest

from edl_labs.errors import UsageError
from edl_labs.inference import (
    ActivationHistogram,
    fold_batch_norms,
    pack_two_of_four,
    rounded_network,
    sqnr_db,
    two_of_four_mask,
)

torch = pytest.importorskip("torch")
nn = torch.nn


def trained(model, *shape, seed=1):
    """With statistics and factors of its own in every batch norm."""
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_()
            module.running_var.uniform_(0.1, 3)
            if module.affine:
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
    return model.eval(), torch.randn(*shape)


@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        (nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6, eps=1e-2), (2, 4, 8, 8)),
        (nn.Conv2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6), (2, 4, 8, 8)),
        (nn.Conv1d(4, 4, 3, groups=4), nn.BatchNorm1d(4), (2, 4, 8)),
        (nn.Conv3d(2, 4, 2), nn.BatchNorm3d(4, affine=False), (2, 2, 4, 4, 4)),
        (nn.ConvTranspose2d(4, 6, 3, stride=2), nn.BatchNorm2d(6), (2, 4, 8, 8)),
        (nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6), (2, 4, 8, 8)),
        (nn.Linear(4, 6), nn.BatchNorm1d(6), (5, 4)),
    ],
)
def test_a_folded_pair_answers_as_before(layer, norm, shape):
    model, x = trained(nn.Sequential(nn.Sequential(layer, norm), nn.ReLU()), *shape)
    folded = fold_batch_norms(model)

    assert not [one for one in folded.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    assert torch.allclose(model(x), folded(x), rtol=1e-5, atol=1e-5)
    assert isinstance(model[0][1], nn.modules.batchnorm._BatchNorm)


@pytest.mark.parametrize(
    ("layer", "transpose"), [(nn.Conv2d(4, 6, 3, groups=2), False), (nn.ConvTranspose2d(4, 6, 3), True)]
)
def test_a_pair_is_folded_as_torch_does_it(layer, transpose):
    model, _ = trained(nn.Sequential(layer, nn.BatchNorm2d(6)), 1)
    ours, theirs = fold_batch_norms(model)[0], nn.utils.fuse_conv_bn_eval(*model, transpose)

    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert torch.allclose(ours.bias, theirs.bias, atol=1e-6)


def test_what_stands_elsewhere_stays_and_a_norm_of_batches_is_told():
    model = nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 2, 1), nn.ReLU(), nn.BatchNorm2d(2))
    kept = [type(one).__name__ for one in fold_batch_norms(model)]

    assert ["BatchNorm2d", "Conv2d", "ReLU", "BatchNorm2d"] == kept
    with pytest.raises(UsageError, match="batch norm 1 keeps no running statistics"):
        fold_batch_norms(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1, track_running_stats=False)))


def test_a_rounded_network_is_near_and_nearer_with_more_bits():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)).eval()
    x = torch.randn(16, 3, 8, 8)
    near = {bits: sqnr_db(model(x), rounded_network(model, [x[:8], x[8:]], bits=bits)(x)) for bits in (4, 6, 8)}

    assert near[4] < near[6] - 8 < near[8] - 16
    assert near[8] > 30
    with pytest.raises(UsageError, match=r"needs an nn\.Sequential and batches, got Sequential and 0"):
        rounded_network(model, [])


def test_channels_of_unequal_size_want_grids_of_their_own():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 16)).eval()
    with torch.no_grad():
        scale = torch.logspace(-2, 2, 16)
        model[0].weight.mul_(scale.view(-1, 1))
        model[0].bias.mul_(scale)
        model[2].weight.div_(scale)
    x = torch.randn(200, 32)
    together, apart = (
        sqnr_db(model(x), rounded_network(model, [x], per_channel=one, bits=8)(x)) for one in (False, True)
    )

    assert apart >= together


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_packed_weights_are_those_of_torch_before_it_reorders_their_places(dtype):
    from torch.sparse._semi_structured_conversions import (
        sparse_semi_structured_from_dense_cutlass,
        sparse_semi_structured_to_dense_cutlass,
    )

    weight = torch.randint(1, 100, (64, 64), generator=torch.Generator().manual_seed(1)).to(dtype)
    pruned = weight * two_of_four_mask(weight)
    packed = pack_two_of_four(pruned)
    values, meta = sparse_semi_structured_from_dense_cutlass(pruned)

    assert torch.equal(values, packed.values)
    assert sorted(meta.view(torch.int16).flatten().tolist()) == sorted(packed.places.flatten().tolist())
    assert torch.equal(sparse_semi_structured_to_dense_cutlass(values, meta), packed.dense())


@pytest.mark.parametrize(("dtype", "share"), [(torch.float16, 0.5625), (torch.int8, 0.625)])
def test_packed_bytes(dtype, share):
    weight = torch.ones(8, 64, dtype=dtype)

    assert share == pack_two_of_four(weight).nbytes / (weight.numel() * weight.element_size())


def test_two_of_each_four_are_kept_and_the_earlier_of_equals():
    mask = two_of_four_mask([[1.0, -3.0, 2.0, 0.0, 5.0, 5.0, 5.0, 5.0]])

    assert [[False, True, True, False, True, True, False, False]] == mask.tolist()
    with pytest.raises(UsageError, match=r"a weight cannot have the shape \(1, 6\)"):
        two_of_four_mask(torch.ones(1, 6))


def test_a_histogram_that_grows_counts_what_it_would_have_counted_at_once():
    values = torch.randn(5000, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 2, 5000)
    seen = ActivationHistogram(bins=64)
    for part in values.split(500):
        seen.add(part)
    counts, edges = torch.tensor(seen.counts), torch.tensor(seen.edges)
    wanted = torch.histogram(values, edges)[0]

    assert 5000 == counts.sum()
    assert float((counts - wanted).abs().sum()) <= 2  # what lies on an edge, or at the very end
    assert len(seen.trimmed(16)[0]) <= 16
    assert sum(seen.trimmed(16)[0]) == 5000


def test_old_batches_decay_and_bad_input_is_told():
    seen = ActivationHistogram(bins=4, width=1.0, decay=0.5)
    seen.add([1.5])
    seen.add([0.5])

    assert [0.0, 0.0, 1.0, 0.5] == seen.counts
    with pytest.raises(UsageError, match="must be finite numbers"):
        seen.add([float("nan")])
    with pytest.raises(UsageError, match="no activations have been counted"):
        ActivationHistogram().trimmed(4)
    with pytest.raises(UsageError, match="6 bins"):
        ActivationHistogram(bins=6)
