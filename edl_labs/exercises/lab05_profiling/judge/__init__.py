"""The judge's part of lab05_profiling: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab05_profiling.judge import drawn_monitors, drawn_profiles, drawn_runs, drawn_steps

__all__ = ["drawn_monitors", "drawn_profiles", "drawn_runs", "drawn_steps"]
