"""The judge's part of lab03_mixed_precision: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab03_mixed_precision.judge import drawn_formats, drawn_recipes, drawn_sums, scripted_training

__all__ = ["drawn_formats", "drawn_recipes", "drawn_sums", "scripted_training"]
