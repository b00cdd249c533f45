"""A value of all programs that run together, and what a run may cost."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from edl_labs.virtual.tiles.program import TileProgram
from edl_labs.virtual.tiles.tile_errors import TileError
from edl_labs.virtual.tiles.tile_memory import Storage

MOST_OPERATIONS = 300_000  # a run: some 10 µs each, so 3 s
MOST_ELEMENTS = 1_500_000_000  # of all operations of a run: about 1 ns each
Array = Any


class Tile(NamedTuple):
    """A value of all programs: its array, where it is undefined, and for a pointer the tensor of each lane."""

    array: Array
    undefined: Array | None = None
    tensor: Array | None = None

    def take(self, kept: Array) -> Tile:
        """The value of some programs."""
        parts = (one[kept] if one is not None and len(one) > 1 else one for one in self)
        return Tile(*parts)


class Budget:
    """What a run may still do."""

    def __init__(self, operations: int = MOST_OPERATIONS, elements: int = MOST_ELEMENTS) -> None:
        self.operations, self.elements = operations, elements

    def spend(self, elements: int, operations: int = 1) -> None:
        """TileError where the run is too long."""
        self.operations -= operations
        self.elements -= elements
        if self.operations < 0 or self.elements < 0:
            why = "the evaluator stops a launch that takes longer than a few seconds"
            then = "check that each loop ends, and try a smaller input"
            raise TileError("The kernel did not finish in time.", why=why, next=then, kind="budget")


class Running:
    """What the operations of a run share: types, tensors, the grid, the programs that run, and counts."""

    def __init__(
        self, program: TileProgram, storages: list[Storage], grid: tuple[int, int, int], budget: Budget
    ) -> None:
        self.types, self.storages, self.grid, self.budget = program.types, storages, grid, budget
        self.dot_flops = self.other_flops = 0
        self.dots = np.zeros(math.prod(grid), int)  # of each program
        self.programs = np.arange(0)

    def ids(self, programs: Array) -> tuple[Array, Array, Array]:
        """The numbers of programs along the axes of the grid."""
        x, y, _ = self.grid
        return programs % x, programs // x % y, programs // (x * y)


def or_false(undefined: Array | None) -> Array:
    """Lanes that are undefined, as an array."""
    return np.zeros(1, bool) if undefined is None else undefined


def undefined_lanes(inputs: list[Tile]) -> Array | None:
    """Where any of several values is undefined, in their common shape."""
    found = [one.undefined for one in inputs if one.undefined is not None]
    if not found:
        return None
    lanes = found[0]
    for one in found[1:]:
        lanes = lanes | one
    return np.broadcast_to(lanes, np.broadcast_shapes(lanes.shape, *(one.array.shape for one in inputs)))


def any_lane(undefined: Array | None, like: Array, axis: int) -> Array | None:
    """Where a lane along an axis is undefined."""
    return None if undefined is None else np.broadcast_to(undefined, like.shape).any(axis=axis)
