"""A tile program: what a kernel does for given types and constants, in static single assignment form.

The tracer writes it, the engine runs it. Each value has a number. An operation may hold regions: the body of a loop or
the branches of an `if`. A region has arguments, operations and results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from edl_labs.virtual.tiles.tile_types import TileType

VIEWS = frozenset({"reshape", "permute", "broadcast"})  # the same values in another shape


@dataclass(frozen=True, slots=True)
class Symbol:
    """A value of the program. `origin` is the parameter that a pointer comes from, "" where it is not known."""

    number: int
    type: TileType
    origin: str = ""


@dataclass(slots=True)
class Operation:
    """One operation: its name, the numbers of its inputs and outputs, and what else it needs."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    line: int
    options: dict[str, Any] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()


@dataclass(slots=True)
class Region:
    """Operations in order, between arguments and results."""

    arguments: tuple[int, ...] = ()
    operations: list[Operation] = field(default_factory=list)
    results: tuple[int, ...] = ()
    captures: tuple[int, ...] = ()


@dataclass(slots=True)
class TileProgram:
    """A kernel for given types and constants: its region, the type of each value, and what is written."""

    kernel: str
    parameters: dict[str, int]
    body: Region
    types: dict[int, TileType]
    written: frozenset[str]
    serial: bool
    tf32_lines: tuple[int, ...] = ()

    def peak_live_bytes(self) -> int:
        """The largest sum of block values that are still needed, over all operations."""
        return _LiveBytes(self).peak_of(self.body, frozenset())

    def total_bytes(self) -> int:
        """Bytes of all values of the program together, one execution of each operation."""
        return sum(8 * self.types[one].elements for op in operations_of(self.body) for one in op.outputs)


def operations_of(region: Region) -> Iterator[Operation]:
    """All operations, those of inner regions included."""
    for op in region.operations:
        yield op
        for inner in op.regions:
            yield from operations_of(inner)


def find_captures(region: Region) -> frozenset[int]:
    """Values from outside that a region uses; noted in each region."""
    defined, used = set(region.arguments), set(region.results)
    for op in region.operations:
        used.update(op.inputs)
        for inner in op.regions:
            used |= find_captures(inner)
        defined.update(op.outputs)
    region.captures = tuple(sorted(used - defined))
    return frozenset(region.captures)


class _LiveBytes:
    """Liveness of block values, from the last operation to the first."""

    def __init__(self, program: TileProgram) -> None:
        self.types = program.types
        self.root: dict[int, int] = {}
        for op in operations_of(program.body):
            if op.name in VIEWS:
                self.root[op.outputs[0]] = self.root.get(op.inputs[0], op.inputs[0])

    def roots(self, numbers: tuple[int, ...]) -> frozenset[int]:
        return frozenset(self.root.get(one, one) for one in numbers)

    def size(self, live: frozenset[int]) -> int:
        return sum(self.types[one].block_bytes for one in live)

    def peak_of(self, region: Region, through: frozenset[int]) -> int:
        """The peak of a region while the values `through` are needed by others."""
        live = through | self.roots(region.results)
        peak = self.size(live)
        for op in reversed(region.operations):
            peak = max(peak, self.size(live))
            live = live if op.name in VIEWS else live - frozenset(op.outputs)
            for inner in op.regions:
                held = self.roots(inner.captures) if op.name in ("for", "while") else frozenset()
                peak = max(peak, self.peak_of(inner, live | held))
            captured = [self.roots(inner.captures) for inner in op.regions]
            live = live.union(self.roots(op.inputs), *captured)
        return max(peak, self.size(live))
