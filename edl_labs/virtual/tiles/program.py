"""A tile program: what a kernel does for given types and constants, in static single assignment form.

The tracer writes it, the engine runs it. Each value has a number. An operation may hold regions: the body of a loop or
the branches of an `if`. A region has arguments, operations and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edl_labs.virtual.tiles.tile_types import TileType

VIEWS = frozenset({"reshape", "permute", "broadcast"})  # the same values in another shape
LOOPS = frozenset({"for", "while"})


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


def handed_on(op: Operation) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each output of an operation with regions: the names that get its value, and the values that come there.

    A name that a loop assigns is carried from one iteration to the next, also where each iteration begins with a new
    value of it: its old value is then used by no operation.
    """
    is_loop, count = op.name in LOOPS, len(op.outputs)
    bodies = op.regions[-1:] if is_loop else op.regions
    for number, output in enumerate(op.outputs, start=-count):
        values = tuple(inner.results[number] for inner in bodies)
        if is_loop:
            yield (output, bodies[0].arguments[number]), (*values, op.inputs[number])
        else:
            yield (output,), values


def find_used(body: Region) -> frozenset[int]:
    """Values that an operation uses, itself or from a region that hands them on."""
    used, handed = set(body.results), dict[int, list[int]]()
    for op in operations_of(body):
        used.update(op.inputs[: len(op.inputs) - len(op.outputs)] if op.name in LOOPS else op.inputs)
        if op.name == "while":
            used.update(op.regions[0].results)
        for names, values in handed_on(op) if op.regions else ():
            for name in names:
                handed.setdefault(name, []).extend(values)
    found = [*used]
    while found:
        new = set(handed.get(found.pop(), ())) - used
        used |= new
        found += new
    return frozenset(used)


class _LiveBytes:
    """Liveness of block values, from the last operation to the first."""

    def __init__(self, program: TileProgram) -> None:
        self.types = program.types
        self.root: dict[int, int] = {}
        for op in operations_of(program.body):
            if op.name in VIEWS:
                self.root[op.outputs[0]] = self.root.get(op.inputs[0], op.inputs[0])
        self.used = find_used(program.body)

    def roots(self, numbers: Iterable[int]) -> frozenset[int]:
        return frozenset(self.root.get(one, one) for one in numbers)

    def size(self, live: frozenset[int]) -> int:
        return sum(self.types[one].block_bytes for one in live)

    def peak_of(self, region: Region, live: frozenset[int]) -> int:
        """The peak of a region behind which the values `live` are needed."""
        peak = self.size(live)
        for op in reversed(region.operations):
            peak = max(peak, self.size(live))
            live = live if op.name in VIEWS else live - frozenset(op.outputs)
            if not op.regions:
                live |= self.roots(op.inputs)
                continue
            peak = max(peak, *(self.peak_of(inner, live | ends) for inner, ends in self.ends(op)))
            live = live.union(self.needed(op), *(self.roots(inner.captures) for inner in op.regions))
        return max(peak, self.size(live))

    def ends(self, op: Operation) -> list[tuple[Region, frozenset[int]]]:
        """The regions of an operation, and what is needed behind each of them by what comes next."""
        handed = [values for names, values in handed_on(op) if not self.used.isdisjoint(names)]
        if op.name not in LOOPS:
            return [(inner, self.roots(values[at] for values in handed)) for at, inner in enumerate(op.regions)]
        held = self.roots(one for inner in op.regions for one in inner.captures)
        results = self.roots(values[0] for values in handed)
        body = op.regions[-1]
        if len(op.regions) == 1:
            return [(body, held | results)]
        kept = self.roots(one for one in body.arguments if one in self.used)
        return [(op.regions[0], held | kept), (body, held | results)]

    def needed(self, op: Operation) -> frozenset[int]:
        """Inputs of an operation with regions, but for values of names that nothing uses."""
        if op.name not in LOOPS:
            return self.roots(op.inputs)
        handed = [values[-1] for names, values in handed_on(op) if not self.used.isdisjoint(names)]
        return self.roots((*op.inputs[: len(op.inputs) - len(op.outputs)], *handed))
