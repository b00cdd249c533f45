"""The judge's part of lab11_tiles: what draws cases, and what known mistakes give. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab11_tiles.judge import drawn_attention_calls, drawn_tile_cases, kernel_slip_rules

__all__ = ["drawn_attention_calls", "drawn_tile_cases", "kernel_slip_rules"]
