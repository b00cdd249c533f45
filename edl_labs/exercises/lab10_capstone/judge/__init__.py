"""The judge's part of lab10_capstone: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab10_capstone.judge import drawn_budgets, drawn_curves, drawn_plants, drawn_qualities

__all__ = ["drawn_budgets", "drawn_curves", "drawn_plants", "drawn_qualities"]
