"""The judge's part of lab02_roofline: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab02_roofline.judge import (
    drawn_chains,
    drawn_clusters,
    drawn_operations,
    drawn_roofs,
    layers_to_diagnose,
)

__all__ = ["drawn_chains", "drawn_clusters", "drawn_operations", "drawn_roofs", "layers_to_diagnose"]
