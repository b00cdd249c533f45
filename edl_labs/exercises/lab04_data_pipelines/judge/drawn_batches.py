"""Sequences to batch: the cases of collate_pad, bucket_sampler and pack_sequences."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_COUNTS = (12, 60, 250, 400)  # one to read, and some where n² looks show


@case_source("collate_pad")
def batches(rng: Any) -> list[Case]:
    """Batches with and without rounding, and two that hold no token at all."""
    drawn = [_batch_case(rng, count=int(rng.integers(2, 9)), multiple=multiple) for multiple in (1, 8, 1, 16, 4, 8)]
    return [Case(given=one) for one in (drawn + [_without_tokens(rng, multiple=multiple) for multiple in (1, 8)])]


def _batch_case(rng: Any, *, count: int, multiple: int) -> dict[str, Any]:
    pad_id = int(rng.integers(0, 5))
    lengths = [int(n) for n in rng.integers(1, 40, size=count)]
    if multiple > 1:
        # One longest length on each side of the rounding, and an empty sequence.
        lengths[0] = multiple * int(rng.integers(3, 6)) + (0 if count % 2 else 1)
        lengths[-1] = 0
    sequences = [[int(token) for token in rng.integers(0, 12, size=length)] for length in lengths]
    sequences[0][-1] = pad_id
    return {"sequences": sequences, "pad_id": pad_id, "multiple": multiple}


def _without_tokens(rng: Any, *, multiple: int) -> dict[str, Any]:
    sequences: list[list[int]] = [[] for _ in range(int(rng.integers(2, 6)))]
    return {"sequences": sequences, "pad_id": int(rng.integers(0, 5)), "multiple": multiple}


@case_source("bucket_sampler")
def data_sets(rng: Any) -> list[Case]:
    """Data sets with lengths like those of text."""
    sizes = ((1201, 12), (900, 8), (1500, 16), (1033, 10))
    return [Case(given=_lengths_case(rng, count, batch)) for count, batch in sizes]


def _lengths_case(rng: Any, count: int, batch_size: int) -> dict[str, Any]:
    drawn = rng.lognormal(mean=float(rng.uniform(3.8, 4.6)), sigma=float(rng.uniform(0.6, 0.8)), size=count)
    lengths = [int(min(4000, max(1, value))) for value in drawn]
    return {"lengths": lengths, "batch_size": batch_size, "seed": int(rng.integers(1000))}


@case_source("pack_sequences")
def packings(rng: Any) -> list[Case]:
    """Few and many sequences, some of which one is too long, and some of which no two share a row."""
    cases = [_packing(rng, count) for count in _COUNTS]
    drawn = [*cases, _too_long(_packing(rng, 20), rng), _one_to_a_row(_packing(rng, 16), rng)]
    return [Case(given=one) for one in drawn]


def _packing(rng: Any, count: int) -> dict[str, Any]:
    capacity = int(rng.integers(180, 600))
    # Mostly two or three to a row, so that there are many rows to choose from.
    lengths = [int(n) for n in rng.integers(capacity // 8, int(0.7 * capacity), size=count)]
    mask_lengths = [int(n) for n in rng.integers(1, 5, size=int(rng.integers(2, 5)))]
    return {
        "lengths": lengths,
        "capacity": capacity,
        "mask_lengths": mask_lengths,
        "mask_capacity": sum(mask_lengths) + int(rng.integers(1, 4)),
    }


def _too_long(case: Any, rng: Any) -> dict[str, Any]:
    place = int(rng.integers(1, len(case["lengths"])))
    lengths = list(case["lengths"])
    lengths[place] = case["capacity"] + int(rng.integers(1, 50))
    return {**case, "lengths": lengths}


def _one_to_a_row(case: Any, rng: Any) -> dict[str, Any]:
    """As many rows as the tree has: who never looks at its second half finds no room."""
    half = case["capacity"] // 2
    return {**case, "lengths": [int(n) for n in rng.integers(half + 1, 2 * half + 1, size=len(case["lengths"]))]}
