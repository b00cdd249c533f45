"""Functions of `tl` that reduce and multiply blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.virtual.tiles.block_functions import shape_of, type_of
from edl_labs.virtual.tiles.builder import Builder
from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import (
    BF16,
    BOOLEAN,
    FP16,
    FP32,
    FP64,
    INT8,
    INT32,
    UINT8,
    UINT32,
    Scalar,
    TileType,
)

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")  # of Triton's NVIDIA backend


def _reduced(
    t: Builder, name: str, value: Symbol, axis: Any, keep_dims: Any, scalar: Scalar, /, **options: Any
) -> Symbol:
    if not value.type.shape or value.type.pointer:
        raise refuse(f"A {value.type} cannot be reduced.", why="it has no axis", next="use the value itself")
    rank = len(value.type.shape)
    if axis is None:
        flat = t.view("reshape", value, (value.type.elements,))
        out = t.emit(name, (flat,), TileType(scalar), axis=0, **options)
        return t.view("reshape", out, (1,) * rank) if keep_dims else out
    if type(axis) is not int or not -rank <= axis < rank:
        raise refuse(f"A block with {rank} axes has no axis {axis}.", next=f"use an axis from 0 to {rank - 1}")
    axis %= rank
    shape = value.type.shape[:axis] + value.type.shape[axis + 1 :]
    out = t.emit(name, (value,), TileType(scalar, shape), axis=axis, **options)
    return t.view("reshape", out, (*shape[:axis], 1, *shape[axis:])) if keep_dims else out


def summed_type(scalar: Scalar) -> Scalar:
    """The type of a sum."""
    if scalar.is_float or scalar.bits >= 32:
        return scalar
    return INT32 if scalar.signed else UINT32


def sum_(t: Builder, input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> Symbol:
    """The sum along an axis, or of all elements."""
    value = t.symbol(input)
    value = t.cast(value, type_of(dtype) if dtype is not None else summed_type(value.type.scalar))
    return _reduced(t, "sum", value, axis, keep_dims, value.type.scalar, scalar=value.type.scalar)


def _extreme(kind: str) -> Callable[..., Any]:
    def call(
        t: Builder,
        input: Any,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        value = t.symbol(input)
        if return_indices:
            best = _reduced(t, "extreme", value, axis, keep_dims, value.type.scalar, kind=kind)
            return best, _reduced(t, "arg", value, axis, keep_dims, INT32, kind=kind)
        scalar = value.type.scalar
        if scalar.bits < 32:
            value = t.cast(value, FP32 if scalar.is_float else INT32)
        return _reduced(t, "extreme", value, axis, keep_dims, value.type.scalar, kind=kind)

    return call


def _arg(kind: str) -> Callable[..., Any]:
    def call(t: Builder, input: Any, axis: Any, tie_break_left: Any = True, keep_dims: Any = False) -> Any:
        return _reduced(t, "arg", t.symbol(input), axis, keep_dims, INT32, kind=kind)

    return call


def cumsum(t: Builder, input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Symbol:
    """Running sums along an axis."""
    value = t.symbol(input)
    rank = len(value.type.shape)
    if type(axis) is not int or not -rank <= axis < rank:
        raise refuse(f"A block with {rank} axes has no axis {axis}.", next="use one of its axes")
    value = t.cast(value, type_of(dtype) if dtype is not None else summed_type(value.type.scalar))
    return t.emit("cumsum", (value,), value.type, axis=axis % rank, reverse=bool(reverse), scalar=value.type.scalar)


def histogram(t: Builder, input: Any, num_bins: Any, mask: Any = None) -> Symbol:
    """How often each of 0, ..., num_bins - 1 occurs."""
    value, bins = t.symbol(input), shape_of(t, num_bins)[0]
    if len(value.type.shape) != 1 or value.type.scalar.is_float or value.type.scalar.bits != 32:
        raise refuse(f"tl.histogram is not possible for {value.type}.", next="pass int32 values with one axis")
    inputs = [value] if mask is None else [value, t.broadcast(t.symbol(mask), value.type.shape)]
    if any(one.type.scalar.kind != BOOLEAN for one in inputs[1:]):
        raise refuse("The mask does not consist of truth values.", next="use a comparison")
    return t.emit("histogram", inputs, TileType(INT32, (bins,)), bins=bins)


def dot(
    t: Builder,
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Symbol:
    """The matrix product of two blocks, plus `acc`."""
    a, b = t.symbol(input), t.symbol(other)
    _check_dot(a, b)
    if allow_tf32 is not None:
        input_precision = "tf32" if allow_tf32 else "ieee"
    if input_precision is not None and str(input_precision).lower() not in _PRECISIONS:
        raise refuse(f"input_precision={str(input_precision)[:20]!r} is not supported.", next='use "ieee" or "tf32"')
    if a.type.scalar == FP32 and str(input_precision).lower() != "ieee":
        t.tf32_lines.add(t.line)
    scalar = _dot_type(a.type.scalar, type_of(out_dtype) if out_dtype is not None else None, acc)
    shape = a.type.shape[:-1] + b.type.shape[-1:]
    if acc is not None and t.symbol(acc).type != TileType(scalar, shape):
        raise refuse(
            f"`acc` is a {t.symbol(acc).type}, but the product is a {TileType(scalar, shape)}.",
            next="convert `acc` to the type of the product",
        )
    inputs = (a, b) if acc is None else (a, b, t.symbol(acc))
    return t.emit("dot", inputs, TileType(scalar, shape), source=a.type.scalar, scalar=scalar)


def _check_dot(a: Symbol, b: Symbol) -> None:
    allowed = (INT8, UINT8, FP16, BF16, FP32, FP64)
    kinds = (a.type.scalar, b.type.scalar)
    ranks = (len(a.type.shape), len(b.type.shape))
    if a.type.pointer or b.type.pointer or ranks not in ((2, 2), (3, 3)):
        raise refuse("tl.dot needs two blocks with two axes each.", next="add axes with x[:, None]")
    if not all(one.is_fp8 for one in kinds) and (kinds[0] != kinds[1] or kinds[0] not in allowed):
        raise refuse(
            f"tl.dot cannot multiply {kinds[0]} and {kinds[1]}.", next="convert both to one floating-point type"
        )
    if kinds[0] == UINT8:
        raise refuse("tl.dot does not support uint8.", next="use int8")
    shapes = f"{list(a.type.shape)} and {list(b.type.shape)}"
    if a.type.shape[-1] != b.type.shape[-2] or a.type.shape[:-2] != b.type.shape[:-2]:
        raise refuse(
            f"tl.dot of {shapes}: the inner lengths differ.", next="check the shapes; tl.trans transposes a block"
        )
    least = {8: 32, 16: 16, 32: 8, 64: 4}[kinds[0].bits]
    if a.type.shape[-1] < least:
        raise refuse(
            f"tl.dot of {shapes}: K is below {least}.",
            why="a tensor core needs at least this length",
            next="use larger tiles",
        )


def _dot_type(source: Scalar, out: Scalar | None, acc: Any) -> Scalar:
    out = out or (acc.type.scalar if isinstance(acc, Symbol) else FP32)
    if source == INT8:
        return INT32
    if out == BF16:
        raise refuse(
            "tl.dot cannot accumulate in bfloat16.", next="accumulate in float32 and convert with .to(tl.bfloat16)"
        )
    if source in (FP32, BF16):
        return FP32
    return FP64 if source == FP64 else out


REDUCTION_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": sum_, "max": _extreme("max"), "min": _extreme("min"), "argmax": _arg("max"), "argmin": _arg("min"),
    "cumsum": cumsum, "histogram": histogram, "dot": dot,
}  # fmt: skip
