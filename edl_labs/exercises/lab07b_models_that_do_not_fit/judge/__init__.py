"""The judge's part of lab07b_models_that_do_not_fit: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab07b_models_that_do_not_fit.judge import (
    drawn_blocks_in_parts,
    drawn_layouts,
    drawn_pipelines,
    drawn_sharded_layers,
    drawn_stages_of_zero,
)

__all__ = [
    "drawn_blocks_in_parts",
    "drawn_layouts",
    "drawn_pipelines",
    "drawn_sharded_layers",
    "drawn_stages_of_zero",
]
