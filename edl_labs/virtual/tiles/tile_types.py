"""The types of a tile program: scalars, blocks and pointers, and how Triton promotes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edl_labs.virtual.tiles.tile_errors import refuse

MAX_ELEMENTS = 1 << 20  # of a block: TRITON_MAX_TENSOR_NUMEL
BOOLEAN, INTEGER, FLOAT = range(3)


@dataclass(frozen=True)
class Scalar:
    """One element type. `array` is the NumPy type that holds its values, `stored` the one that memory holds."""

    name: str
    kind: int
    bits: int
    array: str
    stored: str
    mantissa: int = 0
    signed: bool = False

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return self.kind == FLOAT

    @property
    def is_fp8(self) -> bool:
        """Whether it is one of the 8-bit floating-point types."""
        return self.is_float and self.bits == 8

    @property
    def item_bytes(self) -> int:
        """Bytes of one element in memory."""
        return max(1, self.bits // 8)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest integer."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def __repr__(self) -> str:
        return self.name


def _integer(name: str, bits: int, *, signed: bool) -> Scalar:
    return Scalar(name, INTEGER, bits, name, name, signed=signed)


INT1 = Scalar("int1", BOOLEAN, 1, "bool", "bool")
INT8, INT16, INT32, INT64 = (_integer(f"int{bits}", bits, signed=True) for bits in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (_integer(f"uint{bits}", bits, signed=False) for bits in (8, 16, 32, 64))
FP16 = Scalar("float16", FLOAT, 16, "float16", "float16", 10)
BF16 = Scalar("bfloat16", FLOAT, 16, "float32", "uint16", 7)
FP32 = Scalar("float32", FLOAT, 32, "float32", "float32", 23)
FP64 = Scalar("float64", FLOAT, 64, "float64", "float64", 52)
E4M3 = Scalar("float8e4nv", FLOAT, 8, "float32", "uint8", 3)
E5M2 = Scalar("float8e5", FLOAT, 8, "float32", "uint8", 2)
SCALARS = {
    one.name: one
    for one in (INT1, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FP16, BF16, FP32, FP64, E4M3, E5M2)
}
FROM_ARRAY = {one.stored: one for one in SCALARS.values() if one not in (BF16, E4M3, E5M2)}
FROM_TORCH = {"bfloat16": BF16, "float8_e4m3fn": E4M3, "float8_e5m2": E5M2}


@dataclass(frozen=True)
class TileType:
    """The type of one value: a scalar where `shape` is empty, else a block; pointers point to a `scalar`."""

    scalar: Scalar
    shape: tuple[int, ...] = ()
    pointer: bool = False

    @property
    def elements(self) -> int:
        """Elements of the block; 1 for a scalar."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of values; 0 for scalars, pointers and masks."""
        if not self.shape or self.pointer or self.scalar.kind == BOOLEAN:
            return 0
        return self.elements * self.scalar.item_bytes

    def shaped(self, shape: tuple[int, ...]) -> TileType:
        """The same elements in another shape."""
        return replace(self, shape=shape)

    def of(self, scalar: Scalar) -> TileType:
        """The same shape with other elements."""
        return TileType(scalar, self.shape)

    def __str__(self) -> str:
        name = f"pointer to {self.scalar}" if self.pointer else str(self.scalar)
        return f"{name} block {list(self.shape)}" if self.shape else name


def scalar_of_constant(value: bool | int | float) -> Scalar:
    """The type of a number in the source."""
    if isinstance(value, bool):
        return INT1
    if isinstance(value, float):
        return FP32 if _fits_fp32(value) else FP64
    for scalar in (INT32, UINT32, INT64, UINT64):
        if scalar.limits[0] <= value <= scalar.limits[1]:
            return scalar
    raise refuse(f"The number {str(value)[:20]}… has more than 64 bits.", next="use numbers below 2**63")


def _fits_fp32(value: float) -> bool:
    size = abs(value)
    return size in (0.0, float("inf")) or size != size or 2.0**-126 <= size <= (2 - 2**-23) * 2.0**127


def promote_integers(a: Scalar, b: Scalar) -> Scalar:
    """The common type of two integers: C's usual arithmetic conversions."""
    if a.signed == b.signed:
        return a if a.bits > b.bits else b
    unsigned, signed = (a, b) if not a.signed else (b, a)
    return unsigned if unsigned.bits >= signed.bits else signed


def promote(a: Scalar, b: Scalar, *, weak: tuple[bool, bool] = (False, False), division: bool = False) -> Scalar:
    """The type in which an operation of two types computes; `weak` marks numbers in the source."""
    if weak[0] != weak[1]:
        number, block = (a, b) if weak[0] else (b, a)
        if number.kind <= block.kind:
            a, b = block, block
    if FP64 in (a, b):
        return FP64
    if FP32 in (a, b) or (division and (a.is_float or b.is_float)):
        return FP32
    if FP16 in (a, b):
        return FP16
    if BF16 in (a, b):
        return BF16 if a == b else FP32
    if a.is_fp8 and b.is_fp8:
        return a if a == b else FP16
    if a.is_float or b.is_float:
        raise refuse(f"{a} and {b} have no common type.", next="convert one of them with .to(tl.float32)")
    if division and a.signed != b.signed:
        raise refuse(
            f"{a} cannot be divided by {b}.",
            why="only one of the two types is signed",
            next="convert one of them with .to(...)",
        )
    return promote_integers(a, b)
