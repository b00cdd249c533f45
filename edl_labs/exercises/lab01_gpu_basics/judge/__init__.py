"""The judge's part of lab01_gpu_basics: what draws hidden cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab01_gpu_basics.judge import faulty_timers

__all__ = ["faulty_timers"]
