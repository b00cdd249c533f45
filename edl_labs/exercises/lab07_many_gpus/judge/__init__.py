"""The judge's part of lab07_many_gpus: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab07_many_gpus.judge import (
    drawn_buckets,
    drawn_hangs,
    drawn_links,
    drawn_prices,
    drawn_ring_sums,
    drawn_rows_of_ranks,
    drawn_token_counts,
)

__all__ = [
    "drawn_buckets",
    "drawn_hangs",
    "drawn_links",
    "drawn_prices",
    "drawn_ring_sums",
    "drawn_rows_of_ranks",
    "drawn_token_counts",
]
