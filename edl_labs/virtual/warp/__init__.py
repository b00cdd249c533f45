"""VirtualWarp: kernels thread by thread, what their warps ask of memory, and what would race; recorded, replayed."""

from __future__ import annotations

from edl_labs.virtual.warp.kernel_threads import KernelArray, KernelThread, Register
from edl_labs.virtual.warp.memory_requests import BANKS, LANES, LINE_BYTES, SECTOR_BYTES, WarpRequest
from edl_labs.virtual.warp.replay import AccessSummary, WarpReplay, replay_warp
from edl_labs.virtual.warp.virtual_warp import VirtualWarp
from edl_labs.virtual.warp.warp_races import WarpRace

__all__ = [
    "BANKS",
    "LANES",
    "LINE_BYTES",
    "SECTOR_BYTES",
    "AccessSummary",
    "KernelArray",
    "KernelThread",
    "Register",
    "VirtualWarp",
    "WarpRace",
    "WarpReplay",
    "WarpRequest",
    "replay_warp",
]
