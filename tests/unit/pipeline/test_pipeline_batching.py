"""Batching, packing, waste and shuffling: exact counts, permutations, bounds, and refusals that name the sample."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.errors import UsageError
from edl_labs.pipeline import (
    bucket_batches,
    budget_batches,
    frontier,
    pack,
    pad_collate,
    random_batches,
    shuffling,
    waste,
)

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=200)


def lognormal(n: int = 2000, seed: int = 0) -> list[int]:
    return [int(x) for x in np.clip(np.random.default_rng(seed).lognormal(4.5, 0.7, n), 1, 2000)]


def flat(batches: Any) -> list[int]:
    return sorted(sample for batch in batches for sample in batch)


@given(LENGTHS, st.integers(1, 9), st.integers(1, 12), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_every_way_to_batch_is_a_permutation_that_its_seed_decides(
    lengths: list[int], size: int, window: int, seed: int
) -> None:
    everything = list(range(len(lengths)))
    budget = max(lengths) * 2
    ways = (
        lambda: bucket_batches(lengths, size, window=window, seed=seed),
        lambda: budget_batches(lengths, budget, window=window, seed=seed),
        lambda: random_batches(len(lengths), size, seed=seed),
    )
    for way in ways:
        assert everything == flat(way())
        assert way() == way()
    assert all(len(b) * max(lengths[s] for s in b) <= budget for b in budget_batches(lengths, budget, seed=seed))


@given(LENGTHS, st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_waste_is_what_padding_really_adds(lengths: list[int], multiple: int) -> None:
    batches = random_batches(len(lengths), 7, seed=1)
    padded = [pad_collate([[1] * lengths[s] for s in b], multiple=multiple)["mask"] for b in batches]
    counted = sum(int((~mask).sum()) for mask in padded), sum(mask.size for mask in padded)

    assert Fraction(*counted) == waste(lengths, batches, multiple=multiple).exact


def test_another_epoch_has_other_batches() -> None:
    lengths = lognormal()
    first, second = (bucket_batches(lengths, 32, window=10, epoch=epoch) for epoch in (0, 1))

    assert first != second
    assert shuffling(lengths, first, next_epoch=second).fresh > 0.9  # type: ignore[operator]


def test_larger_windows_waste_less_and_are_less_random() -> None:
    lengths = lognormal()
    found = [
        (waste(lengths, b).fraction, shuffling(lengths, b).within)
        for b in (bucket_batches(lengths, 32, window=w, seed=3) for w in (1, 4, 60))
    ]

    assert found == sorted(found, reverse=True)
    assert found[0][1] == pytest.approx(1, abs=0.05)
    assert found[-1][0] < 0.1


def test_sorted_epochs_are_not_random_in_any_way() -> None:
    lengths = sorted(lognormal())
    batches = [list(range(start, start + 40)) for start in range(0, 2000, 40)]
    measured = shuffling(lengths, batches, next_epoch=batches)

    assert (True, 0.0) == (measured.permutation, measured.fresh)
    assert measured.within < 0.01
    assert measured.order < 0.15


def test_random_batches_are_random_in_every_way() -> None:
    lengths = lognormal()
    measured = shuffling(lengths, random_batches(2000, 40), next_epoch=random_batches(2000, 40, epoch=1))

    assert min(measured.within, measured.order, measured.fresh or 0) > 0.8


def test_a_lost_or_doubled_sample_is_no_permutation() -> None:
    assert not shuffling([1, 2, 3], [[0, 1], [1, 2]]).permutation


@given(LENGTHS)
@settings(max_examples=80, deadline=None)
def test_packing_is_first_fit_decreasing_and_counts_n_log_n_comparisons(lengths: list[int]) -> None:
    capacity = max(lengths) + 20
    packed = pack(lengths, capacity)
    naive: list[list[int]] = []
    for sample in sorted(range(len(lengths)), key=lambda s: -lengths[s]):
        for row in naive:
            if sum(lengths[s] for s in row) + lengths[sample] <= capacity:
                row.append(sample)
                break
        else:
            naive.append([sample])

    assert tuple(map(tuple, naive)) == packed.bins
    assert packed.comparisons <= len(lengths) * (math.ceil(math.log2(len(lengths))) + 1)


def test_packing_a_hundred_thousand_samples_is_quick_enough_to_count() -> None:
    lengths = lognormal(100_000)
    packed = pack(lengths, 4096)

    assert packed.comparisons == 100_000 * 17
    assert packed.waste.fraction < 0.01
    assert list(range(100_000)) == flat(packed.bins)


@given(LENGTHS)
@settings(max_examples=40, deadline=None)
def test_the_waste_of_a_packing_counts_the_pairs_that_its_mask_allows(lengths: list[int]) -> None:
    capacity = max(lengths) + 20
    packed = pack(lengths, capacity)
    real = sum(lengths[sample] ** 2 for row in packed.bins for sample in row)

    assert (real, len(packed.bins) * capacity**2) == (packed.waste.real_pairs, packed.waste.attended_pairs)
    assert real == waste(lengths).real_pairs


def test_the_frontier_has_every_method_and_its_best_points_are_not_beaten() -> None:
    found = frontier(lognormal(), max_tokens=8000, capacity=2048, windows=(1, 8, 1000))

    assert {"buckets", "budget", "packing"} == {point.method for point in found.points}
    assert 0 < len(found.best) < len(found.points)
    assert all(point.waste.samples == 2000 for point in found.points)
    assert found.to_json()["schema"] == 1


@pytest.mark.parametrize(("batch_size", "largest"), [(32, 16), (1, 8)])
def test_the_largest_packed_batch_is_one_that_there_is(batch_size: int, largest: int) -> None:
    packed = frontier([3, 5, 2, 4], batch_size=batch_size, capacity=8, windows=(1, 4)).points[-1].waste

    assert (largest, 16) == (packed.largest_batch_tokens, packed.computed_tokens)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: budget_batches([5, 90, 3], 80), "sample 1 of 90"),
        (lambda: pack([5, 90, 3, 95], 80), "sample 1 of 90"),
        (lambda: waste([3, 0]), "sample 1 has length 0"),
        (lambda: waste([3, 2.5]), "list with 2.5 at index 1"),
        (lambda: waste([3], [[0], [1]]), "batch 1 contains sample 1"),
        (lambda: waste([3], [[]]), "batch 0 is empty"),
        (lambda: bucket_batches([1], 0), "batch_size is 0"),
        (lambda: pad_collate([]), "empty batch"),
        (lambda: pad_collate([[1], []]), "sample 1 has length 0"),
        (lambda: shuffling([1], []), "no batches"),
    ],
)
def test_bad_input_names_the_sample(call: Any, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        call()
