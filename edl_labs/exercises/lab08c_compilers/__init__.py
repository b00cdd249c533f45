"""The exercises of lab08c_compilers: guards, captured steps, tuned kernels and whole graphs."""

from __future__ import annotations

from edl_labs.exercises.lab08c_compilers.captured_training import Capture
from edl_labs.exercises.lab08c_compilers.compiled_calls import Guards
from edl_labs.exercises.lab08c_compilers.one_graph import WholeGraph
from edl_labs.exercises.lab08c_compilers.tuned_kernels import AutotunerOfKernels

EXERCISES = (Guards, Capture, AutotunerOfKernels, WholeGraph)
