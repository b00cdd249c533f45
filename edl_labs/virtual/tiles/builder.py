"""Writes operations: types, casts and broadcasting, as Triton's semantics have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edl_labs.virtual.tiles.kernel_source import KernelModule
from edl_labs.virtual.tiles.program import Operation, Region, Symbol
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import (
    BOOLEAN,
    INT1,
    INT32,
    MAX_ELEMENTS,
    Scalar,
    TileType,
    promote,
    scalar_of_constant,
)

_MOST_OPERATIONS = 20_000  # of a program: an unrolled attention kernel has some 500
Number = bool | int | float


class Builder:
    """The region that is written, and the types of all values."""

    def __init__(self, module: KernelModule) -> None:
        self.module = module
        self.region = Region()
        self.types: dict[int, TileType] = {}
        self.scope: dict[str, Any] = {}
        self.loops = 0
        self.line = 0
        self.calls: list[str] = []
        self.unused: Any = None
        self.count = 0
        self.serial = False
        self.mixed_origins = False
        self.origins: set[str] = set()
        self.written: set[str] = set()
        self.tf32_lines: set[int] = set()

    def new(self, kind: TileType, origin: str = "") -> Symbol:
        """A new value of a type."""
        if kind.elements > MAX_ELEMENTS:
            shape = " × ".join(map(str, kind.shape))
            raise refuse(
                f"A block of {shape} elements is too large.",
                why=f"a block has at most {MAX_ELEMENTS:,} elements",
                next="use smaller tiles",
            )
        number = len(self.types)
        self.types[number] = kind
        return Symbol(number, kind, origin)

    def parameter(self, kind: TileType, name: str = "") -> Symbol:
        """A parameter of the kernel; `name` for a pointer."""
        if name:
            self.origins.add(name)
        return self.new(kind, name)

    def emit(
        self, name: str, inputs: Sequence[Symbol], kind: TileType, /, *, origin: str = "", **options: Any
    ) -> Symbol:
        """An operation with one output."""
        out = self.new(kind, origin)
        self._append(Operation(name, tuple(one.number for one in inputs), (out.number,), self.line, options))
        return out

    def emit_region(
        self, name: str, inputs: Sequence[Symbol], regions: list[Region], kinds: Sequence[TileType], /, **options: Any
    ) -> tuple[Symbol, ...]:
        """An operation with regions."""
        out = tuple(self.new(kind) for kind in kinds)
        numbers = tuple(one.number for one in out)
        self._append(Operation(name, tuple(one.number for one in inputs), numbers, self.line, options, tuple(regions)))
        return out

    def effect(self, name: str, inputs: Sequence[Symbol], /, **options: Any) -> None:
        """An operation without an output."""
        self._append(Operation(name, tuple(one.number for one in inputs), (), self.line, options))

    def _append(self, operation: Operation) -> None:
        self.count_one()
        self.region.operations.append(operation)

    def count_one(self) -> None:
        """Count an operation, or a statement: copies of an empty body take time as well."""
        self.count += 1
        if self.count > _MOST_OPERATIONS:
            what = f"The kernel has more than {_MOST_OPERATIONS:,} operations."
            raise refuse(
                what,
                why="the body of a tl.static_range loop is copied for each iteration, and a function's body for each "
                "call",
                next="use range instead of tl.static_range",
                kind="budget",
            ).at(self.line)

    def symbol(self, value: Any, scalar: Scalar | None = None) -> Symbol:
        """A value of the run; a number becomes a constant of its own type or of `scalar`."""
        if isinstance(value, Symbol):
            return value
        if not isinstance(value, bool | int | float):
            raise refuse(f"A value of type {_kind(value)} cannot be used at run time.", next="use a number or a block")
        scalar = scalar or scalar_of_constant(value)
        if not scalar.is_float and isinstance(value, float) and value != int_or_zero(value):
            raise refuse(
                f"The number {value} is not an integer, but the type is {scalar}.",
                next="write an integer, or use tl.float32",
            )
        if not scalar.is_float and scalar.kind != BOOLEAN and not scalar.limits[0] <= value <= scalar.limits[1]:
            raise refuse(
                f"The number {value} does not fit into {scalar}.", next="convert the block first: x.to(tl.int32)"
            )
        return self.emit("constant", (), TileType(scalar), value=value)

    def view(self, name: str, value: Symbol, shape: tuple[int, ...], **options: Any) -> Symbol:
        """The same values in another shape."""
        return self.emit(name, (value,), value.type.shaped(shape), origin=value.origin, **options)

    def aligned(self, *values: Symbol) -> tuple[tuple[Symbol, ...], tuple[int, ...]]:
        """Values with equal ranks, and the shape that they broadcast to."""
        rank = max(len(one.type.shape) for one in values)
        shape = [1] * rank
        for one in values:
            own = (1,) * (rank - len(one.type.shape)) + one.type.shape
            for axis, extent in enumerate(own):
                if shape[axis] != extent and 1 not in (shape[axis], extent):
                    shapes = " and ".join(str(list(value.type.shape)) for value in values)
                    raise refuse(
                        f"Blocks of shapes {shapes} cannot be broadcast together.", next="add an axis with x[:, None]"
                    )
                shape[axis] = max(shape[axis], extent)
        return tuple(self.ranked(one, rank) for one in values), tuple(shape)

    def ranked(self, value: Symbol, rank: int) -> Symbol:
        """A value with leading axes of length 1."""
        missing = rank - len(value.type.shape)
        return self.view("reshape", value, (1,) * missing + value.type.shape) if missing else value

    def broadcast(self, value: Symbol, shape: tuple[int, ...]) -> Symbol:
        """A value in a shape that it broadcasts to."""
        if value.type.shape == shape:
            return value
        return self.view("broadcast", self.ranked(value, len(shape)), shape)

    def numbers(self, a: Any, b: Any, *, division: bool = False) -> tuple[Symbol, Symbol]:
        """Two operands in the type that their operation computes in."""
        weak = (not isinstance(a, Symbol), not isinstance(b, Symbol))
        kinds = [scalar_of_constant(_number(v)) if w else v.type.scalar for v, w in zip((a, b), weak, strict=True)]
        for one in (a, b):
            if isinstance(one, Symbol) and one.type.pointer:
                raise refuse(
                    "Arithmetic on a pointer is not supported.",
                    why="a pointer supports only + and -",
                    next="compute the offset first",
                )
        common = promote(kinds[0], kinds[1], weak=weak, division=division)
        return self.in_type(a, common), self.in_type(b, common)

    def in_type(self, value: Any, scalar: Scalar) -> Symbol:
        """An operand in a type."""
        if isinstance(value, Symbol):
            return self.cast(value, scalar)
        return self.symbol(float(value) if scalar.is_float else value, scalar)

    def cast(self, value: Symbol, scalar: Scalar) -> Symbol:
        """A value in another type."""
        if value.type.pointer:
            raise refuse(
                "A pointer is not a number.",
                why="an address consists of a tensor and an offset",
                next="compute with the offsets",
            )
        if value.type.scalar == scalar:
            return value
        return self.emit("cast", (value,), value.type.of(scalar), source=value.type.scalar, target=scalar)

    def elementwise(self, name: str, values: Sequence[Symbol], scalar: Scalar, /, **options: Any) -> Symbol:
        """An operation element by element, with broadcasting."""
        if any(one.type.pointer for one in values):
            raise refuse(
                "A pointer is not a number.", why="a pointer supports only + and -", next="compute with the offsets"
            )
        aligned, shape = self.aligned(*values)
        return self.emit(name, aligned, TileType(scalar, shape), scalar=values[-1].type.scalar, **options)

    def moved(self, pointer: Symbol, offset: Any, sign: int) -> Symbol:
        """A pointer plus or minus an offset in elements."""
        offset = self.symbol(offset)
        if offset.type.pointer or offset.type.scalar.is_float:
            raise refuse(f"Cannot add a {offset.type} to a pointer.", next="add an integer offset")
        aligned, shape = self.aligned(pointer, offset)
        kind = TileType(pointer.type.scalar, shape, pointer=True)
        return self.emit("move", aligned, kind, origin=pointer.origin, sign=sign)

    def constant_mask(self) -> Symbol:
        """True, for an access without a mask."""
        return self.symbol(True, INT1)

    def integer(self, value: int) -> Symbol:
        """An int32 constant."""
        return self.symbol(value, INT32)


def int_or_zero(value: float) -> int:
    """The integer part; 0 for NaN and infinities."""
    return int(value) if value - value == 0 else 0


def _number(value: Any) -> Number:
    if not isinstance(value, bool | int | float):
        raise refuse(
            f"Arithmetic is not possible with a value of type {_kind(value)}.", next="use only numbers and blocks"
        )
    return value


def _kind(value: Any) -> str:
    return {type(None): "None", str: "text", tuple: "tuple"}.get(type(value), type(value).__name__)
