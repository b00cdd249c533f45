"""The judge's part of lab01_gpu_basics: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab01_gpu_basics.judge import drawn_rates, drawn_widths, faulty_timers, programs_and_machines

__all__ = ["drawn_rates", "drawn_widths", "faulty_timers", "programs_and_machines"]
