"""The judge's part of lab08_kernels: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab08_kernels.judge import (
    drawn_orders,
    drawn_paths,
    drawn_stems,
    drawn_tiles,
    drawn_transposes,
)

__all__ = ["drawn_orders", "drawn_paths", "drawn_stems", "drawn_tiles", "drawn_transposes"]
