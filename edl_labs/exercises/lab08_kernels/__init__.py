"""The exercises of lab08_kernels: what warps ask of memory, tiles, orders of sums, first layers, and paths."""

from __future__ import annotations

from edl_labs.exercises.lab08_kernels.coalesced_transposes import CoalescedTranspose
from edl_labs.exercises.lab08_kernels.first_layer_prices import FirstLayers
from edl_labs.exercises.lab08_kernels.orders_of_sums import OrderMatters
from edl_labs.exercises.lab08_kernels.paths_of_warps import WarpPaths
from edl_labs.exercises.lab08_kernels.tile_prices import TileChoice

EXERCISES = (
    CoalescedTranspose,
    TileChoice,
    OrderMatters,
    FirstLayers,
    WarpPaths,
)
