"""The exercises of lab08b_compilers: layouts, fusion, guards, captured steps and tuned kernels."""

from __future__ import annotations

EXERCISES = ()
