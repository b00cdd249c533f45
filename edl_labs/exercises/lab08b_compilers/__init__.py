"""The exercises of lab08b_compilers: layouts, fusion, guards, captured steps and tuned kernels."""

from __future__ import annotations

from edl_labs.exercises.lab08b_compilers.captured_training import Capture
from edl_labs.exercises.lab08b_compilers.compiled_calls import Guards
from edl_labs.exercises.lab08b_compilers.fused_kernels import Fuse
from edl_labs.exercises.lab08b_compilers.memory_layouts import Strides
from edl_labs.exercises.lab08b_compilers.tuned_kernels import AutotunerOfKernels

EXERCISES = (Strides, Fuse, Guards, Capture, AutotunerOfKernels)
