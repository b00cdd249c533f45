"""The cases of mend_accumulation: lists of micro-batches with positions that count and positions that do not."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab06_memory.micro_batches import CLASSES, IGNORED


@case_source("mend_accumulation")
def trainings(rng: Any) -> list[Case]:
    window = int(rng.integers(3, 6))
    rows = int(rng.integers(3, 7))
    equal = [
        ("order", _equal(rng, count=2 * window, rows=rows), window, 0.0),
        ("order", _equal(rng, count=3 * window, rows=rows + 1), window, round(float(rng.uniform(0.1, 0.4)), 3)),
        ("last window", _equal(rng, count=2 * window + window // 2, rows=rows), window, 0.0),
        ("last window", _equal(rng, count=window + window - 1, rows=rows), window, 0.0),
        ("last window", _equal(rng, count=window - 1, rows=rows), window, 0.0),
    ]
    ragged = [
        ("tokens", _ragged(rng, count=2 * window), window, 0.0),
        ("tokens", _padded(rng, count=2 * window, rows=rows + 3), window, 0.0),
        ("tokens", _with_an_empty_one(rng, count=2 * window + 1), window, 0.0),
    ]
    return [
        Case.split(
            {
                "aspect": aspect,
                "seed": int(rng.integers(1, 10**6)),
                "window": size,
                "before": before,
                "labels": labels,
            },
            "aspect",
        )
        for aspect, labels, size, before in equal + ragged
    ]


def _labels(rng: Any, rows: int) -> list[int]:
    return [int(label) for label in rng.integers(0, CLASSES, size=rows)]


def _equal(rng: Any, *, count: int, rows: int) -> list[list[int]]:
    return [_labels(rng, rows) for _ in range(count)]


def _ragged(rng: Any, *, count: int) -> list[list[int]]:
    """Lengths that differ, all positions of which count."""
    return [_labels(rng, int(rows)) for rows in rng.permutation([2, 9, *rng.integers(3, 9, size=count - 2)])]


def _padded(rng: Any, *, count: int, rows: int) -> list[list[int]]:
    """Equal lengths, of which the last positions are padding."""
    kept = rng.permutation([1, rows - 1, *rng.integers(2, rows - 1, size=count - 2)])
    return [_labels(rng, int(n)) + [IGNORED] * (rows - int(n)) for n in kept]


def _with_an_empty_one(rng: Any, *, count: int) -> list[list[int]]:
    """One micro-batch of the first window has no position that counts; the last window has one micro-batch."""
    drawn = _padded(rng, count=count, rows=7)
    drawn[1] = [IGNORED] * 7
    return drawn
