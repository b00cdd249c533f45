"""The judge's part of lab09b_serving: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab09b_serving.judge import (
    drawn_caches,
    drawn_call_loads,
    drawn_day_loads,
    drawn_decoders,
    drawn_paged_loads,
    drawn_small_kernels,
)

__all__ = [
    "drawn_caches",
    "drawn_call_loads",
    "drawn_day_loads",
    "drawn_decoders",
    "drawn_paged_loads",
    "drawn_small_kernels",
]
