"""The judge's part of lab09_inference: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab09_inference.judge import (
    drawn_activations,
    drawn_foldable_chains,
    drawn_histograms,
    drawn_integer_layers,
    drawn_sparse_weights,
    drawn_tactics,
)

__all__ = [
    "drawn_activations",
    "drawn_foldable_chains",
    "drawn_histograms",
    "drawn_integer_layers",
    "drawn_sparse_weights",
    "drawn_tactics",
]
