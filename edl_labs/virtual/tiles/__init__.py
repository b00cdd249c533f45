"""Triton kernels from their source on any machine: values, and what each launch moves, computes and races on."""

from __future__ import annotations

from edl_labs.virtual.tiles.kernel_source import KernelModule, parse_kernels
from edl_labs.virtual.tiles.launch_record import LaunchRecord, TensorTraffic, TileRace
from edl_labs.virtual.tiles.machine import Kernel, jit, launch, launch_on_gpu, launches_of, recorded_launches, tl
from edl_labs.virtual.tiles.replay import evaluate
from edl_labs.virtual.tiles.tile_errors import TileError
from edl_labs.virtual.tiles.tile_values import Budget

__all__ = [
    "Budget",
    "Kernel",
    "KernelModule",
    "LaunchRecord",
    "TensorTraffic",
    "TileError",
    "TileRace",
    "evaluate",
    "jit",
    "launch",
    "launch_on_gpu",
    "launches_of",
    "parse_kernels",
    "recorded_launches",
    "tl",
]
