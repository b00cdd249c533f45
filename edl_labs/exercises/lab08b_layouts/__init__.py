"""The exercises of lab08b_layouts: memory layouts and fused kernels."""

from __future__ import annotations

from edl_labs.exercises.lab08b_layouts.fused_kernels import Fuse
from edl_labs.exercises.lab08b_layouts.memory_layouts import Strides

EXERCISES = (Strides, Fuse)
