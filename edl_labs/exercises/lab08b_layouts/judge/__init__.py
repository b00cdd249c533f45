"""The judge's part of lab08b_layouts: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab08b_layouts.judge import drawn_nets, drawn_operator_graphs

__all__ = ["drawn_nets", "drawn_operator_graphs"]
