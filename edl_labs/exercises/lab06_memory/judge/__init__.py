"""The judge's part of lab06_memory: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab06_memory.judge import (
    drawn_accumulations,
    drawn_blocks,
    drawn_copies,
    drawn_methods,
    drawn_micro_batches,
    drawn_segments,
    drawn_statistics,
    drawn_step_recipes,
    drawn_tapes,
)

__all__ = [
    "drawn_accumulations",
    "drawn_blocks",
    "drawn_copies",
    "drawn_methods",
    "drawn_micro_batches",
    "drawn_segments",
    "drawn_statistics",
    "drawn_step_recipes",
    "drawn_tapes",
]
