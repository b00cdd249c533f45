"""The judge's part of lab07_many_gpus: what draws hidden cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab07_many_gpus.judge import drawn_buckets, drawn_hangs, drawn_prices, drawn_ring_sums

__all__ = ["drawn_buckets", "drawn_hangs", "drawn_prices", "drawn_ring_sums"]
