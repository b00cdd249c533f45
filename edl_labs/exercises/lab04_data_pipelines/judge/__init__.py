"""The judge's part of lab04_data_pipelines: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab04_data_pipelines.judge import drawn_batches, drawn_loaders, drawn_loops, drawn_storage

__all__ = ["drawn_batches", "drawn_loaders", "drawn_loops", "drawn_storage"]
