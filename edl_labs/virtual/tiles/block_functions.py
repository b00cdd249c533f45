"""Functions of `tl` that make and shape blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.virtual.tiles.builder import Builder
from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import (
    INT1,
    INT32,
    Scalar,
    TileType,
)


def arange(t: Builder, start: Any, end: Any) -> Symbol:
    """start, start + 1, ..., end - 1."""
    if type(start) is not int or type(end) is not int:
        raise refuse(
            "tl.arange needs bounds that are known at compile time, not run-time values.",
            why="the shape of a block must be known at compile time",
            next="use a constexpr parameter",
        )
    if end <= start or (end - start) & (end - start - 1) or max(abs(start), abs(end)) >= 2**31:
        raise refuse(
            f"tl.arange({start}, {end}): its length is not a power of two.", next="round the length up and use a mask"
        )
    return t.emit("arange", (), TileType(INT32, (end - start,)), start=start, end=end)


def shape_of(t: Builder, shape: Any) -> tuple[int, ...]:
    """A shape: known powers of two."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    for extent in shape:
        if type(extent) is not int:
            why = "a name that is assigned in the kernel is a run-time value"
            raise refuse(
                "A shape depends on a run-time value.", why=why, next="use a constexpr, as in N: tl.constexpr = ..."
            )
        if extent < 1 or extent & (extent - 1):
            raise refuse(f"The length {extent} of a shape is not a power of two.", next="round it up and use a mask")
    return tuple(shape)


def _shapes(t: Builder, shape: tuple[Any, ...]) -> tuple[int, ...]:
    return shape_of(t, shape[0] if len(shape) == 1 else shape)


def type_of(value: Any) -> Scalar:
    """The element type that an argument names."""
    if isinstance(value, TileType) and not value.pointer and not value.shape:
        return value.scalar
    if not isinstance(value, Scalar):
        raise refuse("The dtype is missing.", next="pass tl.float32, or x.dtype")
    return value


def full(t: Builder, shape: Any, value: Any, dtype: Any) -> Symbol:
    """A block with one value."""
    if isinstance(value, Symbol):
        if value.type.elements != 1:
            raise refuse("tl.full needs a scalar, not a block.", next="pass a scalar")
        one = t.cast(t.view("reshape", value, ()), type_of(dtype))
    else:
        one = t.symbol(value, type_of(dtype))
    shape = shape_of(t, shape)
    return t.emit("splat", (one,), TileType(one.type.scalar, shape)) if shape else one


def zeros(t: Builder, shape: Any, dtype: Any) -> Symbol:
    """A block of zeros."""
    return full(t, shape, 0, dtype)


def zeros_like(t: Builder, input: Any) -> Symbol:
    """Zeros in the shape and type of a block."""
    like = t.symbol(input).type
    if like.pointer:
        raise refuse("tl.zeros_like does not accept a pointer.", next="pass a block of values")
    return full(t, like.shape, 0, like.scalar)


def to(t: Builder, input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False) -> Symbol:
    """A value in another type."""
    if fp_downcast_rounding not in (None, "rtne"):
        raise refuse("Only rounding to nearest is supported.", next="omit fp_downcast_rounding")
    if isinstance(dtype, TileType) and dtype.pointer:
        raise refuse(
            "A value cannot be cast to a pointer.",
            why="an address consists of a tensor and an offset",
            next="add an offset to a pointer",
        )
    value, scalar = t.symbol(input), type_of(dtype)
    if not bitcast:
        return t.cast(value, scalar)
    if value.type.pointer or value.type.scalar.bits != scalar.bits:
        raise refuse(
            f"A bitcast from {value.type.scalar} to {scalar} is not possible.",
            why="the two types have different sizes",
            next="use .to(...)",
        )
    return t.emit("bitcast", (value,), value.type.of(scalar), source=value.type.scalar, target=scalar)


def reshape(t: Builder, input: Any, *shape: Any, can_reorder: Any = False) -> Symbol:
    """The same elements in another shape."""
    value, new = t.symbol(input), _shapes(t, shape)
    if TileType(INT1, new).elements != value.type.elements:
        raise refuse(
            f"A block of shape {list(value.type.shape)} cannot be reshaped to {list(new)}.",
            why="the two shapes have different numbers of elements",
            next="use a shape with the same number of elements",
        )
    return t.view("reshape", value, new)


def ravel(t: Builder, x: Any, can_reorder: Any = False) -> Symbol:
    """One axis."""
    return t.view("reshape", t.symbol(x), (x.type.elements,))


def expand_dims(t: Builder, input: Any, axis: Any) -> Symbol:
    """New axes of length 1."""
    value = t.symbol(input)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shape = list(value.type.shape)
    rank = len(shape) + len(axes)
    if not all(type(one) is int and -rank <= one < rank for one in axes):
        raise refuse("expand_dims got an axis that is out of range.", next=f"use 0 to {rank - 1}")
    for one in sorted(one % rank for one in axes):
        shape.insert(one, 1)
    return t.view("reshape", value, tuple(shape))


def broadcast_to(t: Builder, input: Any, *shape: Any) -> Symbol:
    """A block repeated along its axes of length 1."""
    value, new = t.symbol(input), _shapes(t, shape)
    old = value.type.shape
    if old and (len(old) != len(new) or any(a not in (1, b) for a, b in zip(old, new, strict=True))):
        raise refuse(f"The shape {list(old)} cannot be broadcast to {list(new)}.", next="add an axis with x[:, None]")
    return t.broadcast(value, new)


def broadcast(t: Builder, input: Any, other: Any) -> tuple[Symbol, ...]:
    """Two blocks in their common shape."""
    both, shape = t.aligned(t.symbol(input), t.symbol(other))
    return tuple(t.broadcast(one, shape) for one in both)


def permute(t: Builder, input: Any, *dims: Any) -> Symbol:
    """The axes in another order."""
    value = t.symbol(input)
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], tuple) else dims
    rank = len(value.type.shape)
    if any(type(one) is not int for one in order) or sorted(order) != list(range(rank)):
        raise refuse("permute needs each axis exactly once.", next=f"pass the axes 0 to {rank - 1} in the new order")
    shape = tuple(value.type.shape[one] for one in order)
    return t.view("permute", value, shape, order=tuple(order))


def trans(t: Builder, input: Any, *dims: Any) -> Symbol:
    """The last two axes exchanged, or the axes in the order `dims`."""
    value = t.symbol(input)
    rank = len(value.type.shape)
    if rank < 2 and not dims:
        raise refuse("tl.trans needs a block with at least two axes.", next="add an axis with x[:, None]")
    return permute(t, value, *(dims or (*range(rank - 2), rank - 1, rank - 2)))


def join(t: Builder, a: Any, b: Any) -> Symbol:
    """Two blocks along a new last axis."""
    both = broadcast(t, a, b)
    if both[0].type.scalar != both[1].type.scalar:
        raise refuse("tl.join needs two blocks of the same type.", next="convert one of them")
    return t.emit("join", both, both[0].type.shaped((*both[0].type.shape, 2)))


def interleave(t: Builder, a: Any, b: Any) -> Symbol:
    """Elements of two blocks in turn, along the last axis."""
    joined = join(t, a, b)
    shape = joined.type.shape
    return t.view("reshape", joined, (*shape[:-2], 2 * shape[-2]) if len(shape) > 1 else shape)


def split(t: Builder, a: Any) -> tuple[Symbol, ...]:
    """The two halves of a block whose last axis has length 2."""
    value = t.symbol(a)
    if not value.type.shape or value.type.shape[-1] != 2:
        raise refuse("tl.split needs a last axis of length 2.", next="reshape the block first")
    kind = value.type.shaped(value.type.shape[:-1])
    return tuple(t.emit("part", (value,), kind, index=index) for index in (0, 1))


def cat(t: Builder, input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Symbol:
    """Two blocks one after the other along an axis."""
    a, b = t.symbol(input), t.symbol(other)
    rank = len(a.type.shape)
    if a.type != b.type or a.type.pointer or type(dim) is not int or not -rank <= dim < rank:
        raise refuse(
            f"tl.cat cannot join {a.type} and {b.type}.",
            why="tl.cat needs two blocks of the same type",
            next="convert one of them, or use tl.join",
        )
    if can_reorder and rank != 1:
        raise refuse("tl.cat with can_reorder works only on blocks with one axis.", next="omit can_reorder")
    shape = list(a.type.shape)
    shape[dim] *= 2
    return t.emit("cat", (a, b), a.type.shaped(tuple(shape)), axis=dim % rank)


def where(t: Builder, condition: Any, x: Any, y: Any) -> Symbol:
    """x where the condition holds, else y."""
    condition = t.cast(t.symbol(condition), INT1)
    if isinstance(x, Symbol) and isinstance(y, Symbol) and x.type.pointer and y.type.pointer:
        if x.type.scalar != y.type.scalar:
            raise refuse(
                "tl.where cannot choose between pointers to different types.",
                next="load the values first, and choose between them",
            )
        pair, origin = (x, y), x.origin if x.origin == y.origin else ""
        t.mixed_origins |= x.origin != y.origin
    else:
        pair, origin = t.numbers(x, y), ""
    aligned, shape = t.aligned(condition, *pair)
    kind = TileType(pair[0].type.scalar, shape, pointer=pair[0].type.pointer)
    return t.emit("where", aligned, kind, origin=origin)


BLOCK_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arange": arange, "full": full, "zeros": zeros, "zeros_like": zeros_like, "to": to, "cast": to,
    "reshape": reshape, "view": reshape, "ravel": ravel, "expand_dims": expand_dims, "broadcast_to": broadcast_to,
    "broadcast": broadcast, "permute": permute, "trans": trans, "join": join, "interleave": interleave,
    "split": split, "cat": cat, "where": where,
}  # fmt: skip
