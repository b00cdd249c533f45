"""The judge's part of lab12_language_model: what draws cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab12_language_model.judge import (
    drawn_int8_caches,
    drawn_losses,
    drawn_low_ranks,
    drawn_outliers,
    drawn_probabilities,
    drawn_scaled_blocks,
    drawn_shapes,
    drawn_trainings,
    drawn_weights,
)

__all__ = [
    "drawn_int8_caches",
    "drawn_losses",
    "drawn_low_ranks",
    "drawn_outliers",
    "drawn_probabilities",
    "drawn_scaled_blocks",
    "drawn_shapes",
    "drawn_trainings",
    "drawn_weights",
]
