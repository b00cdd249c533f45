"""The judge's part of lab08c_compilers: what draws secret cases. It is in no install of students."""

from __future__ import annotations

from edl_labs.exercises.lab08c_compilers.judge import drawn_calls, drawn_kernels, drawn_matrices, drawn_towers

__all__ = ["drawn_calls", "drawn_kernels", "drawn_matrices", "drawn_towers"]
