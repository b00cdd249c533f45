"""What operations compute, on NumPy arrays whose first axis is the program."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from edl_labs.virtual.tiles.tile_types import BF16, BOOLEAN, E4M3, E5M2, Scalar

Array = Any


def rounded(values: Array, scalar: Scalar) -> Array:
    """Values as `scalar` holds them: bf16 and fp8 live in float32 arrays."""
    if scalar == BF16:
        return _bf16(np.asarray(values, np.float32))
    if scalar.is_fp8:
        return _fp8_values(scalar)[encoded(values, scalar)]
    return values if values.dtype == scalar.array else values.astype(scalar.array)


def _bf16(values: Array) -> Array:
    bits = values.view(np.uint32)
    bits = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), bits.view(np.float32))


def encoded(values: Array, scalar: Scalar) -> Array:
    """Values as memory holds them."""
    if scalar == BF16:
        return (_bf16(np.asarray(values, np.float32)).view(np.uint32) >> 16).astype(np.uint16)
    if scalar.is_fp8:
        return _nearest(np.asarray(values, np.float32), scalar)
    return values


def decoded(stored: Array, scalar: Scalar) -> Array:
    """Values from what memory holds."""
    if scalar == BF16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return _fp8_values(scalar)[stored] if scalar.is_fp8 else stored


@lru_cache(maxsize=2)
def _fp8_values(scalar: Scalar) -> Array:
    """The value of each byte."""
    bias, width = (7, 3) if scalar == E4M3 else (15, 2)
    byte = np.arange(256)
    exponent, fraction = (byte >> width) & ((1 << (7 - width)) - 1), byte & ((1 << width) - 1)
    normal = (1 + fraction / 2**width) * 2.0 ** (exponent - bias)
    values = np.where(exponent == 0, fraction / 2**width * 2.0 ** (1 - bias), normal)
    if scalar == E4M3:
        values[byte & 127 == 127] = np.nan
    else:
        values[(exponent == 31) & (fraction == 0)] = np.inf
        values[(exponent == 31) & (fraction > 0)] = np.nan
    return np.where(byte & 128, -values, values).astype(np.float32)


def _nearest(values: Array, scalar: Scalar) -> Array:
    """The byte of the nearest value, ties to even; beyond the largest it saturates, as Triton's conversion does."""
    table = _fp8_values(scalar)[:128]
    finite = table[np.isfinite(table)]
    size = np.minimum(np.abs(values), finite[-1])
    high = np.minimum(np.searchsorted(finite, size), len(finite) - 1)
    low = np.maximum(high - 1, 0)
    up, down = finite[high] - size, size - finite[low]
    code = np.where((up < down) | ((up == down) & (high % 2 == 0)), high, low)
    code = np.where(np.isnan(values), 127, code) | np.where(np.signbit(values), 128, 0)
    return code.astype(np.uint8)


def cast(values: Array, source: Scalar, target: Scalar) -> Array:
    """A conversion; integers wrap, floating-point numbers round to nearest."""
    if target.kind == BOOLEAN:
        return values != 0
    if target in (BF16, E4M3, E5M2):
        return rounded(values.astype(np.float32), target)
    return values.astype(target.array)


def bitcast(values: Array, source: Scalar, target: Scalar) -> Array:
    """The same bits as another type."""
    stored = np.ascontiguousarray(encoded(values, source))
    return decoded(stored.view(target.stored), target)


def _truncated(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    return (a - np.fmod(a, safe)) // safe


def _modulo(a: Array, b: Array) -> Array:
    return np.fmod(a, b) if a.dtype.kind == "f" else np.fmod(a, np.where(b == 0, 1, b).astype(b.dtype))


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": _truncated, "%": _modulo,
    "max": np.fmax, "min": np.fmin,
}  # fmt: skip
_TRUTH = {"+": np.logical_xor, "-": np.logical_xor, "*": np.logical_and, "max": np.logical_or, "min": np.logical_and}
COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift}


def arithmetic(kind: str, a: Array, b: Array, scalar: Scalar) -> Array:
    """+ - * / // % min max in one type."""
    if scalar.kind == BOOLEAN:
        return _TRUTH.get(kind, np.logical_and)(a, b)
    return rounded(np.asarray(ARITHMETIC[kind](a, b)), scalar)


def _erf(values: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(values)).astype(values.dtype)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "-": np.negative, "~": np.invert, "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2,
    "sqrt": np.sqrt, "sqrt_rn": np.sqrt, "rsqrt": lambda x: np.asarray(1 / np.sqrt(x)).astype(x.dtype), "erf": _erf,
    "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


def unary(kind: str, values: Array) -> Array:
    """A function of one value."""
    return _UNARY[kind](values) if values.dtype != bool or kind == "~" else values


def fma(a: Array, b: Array, c: Array, scalar: Scalar) -> Array:
    """a * b + c: the product is exact in float64."""
    if not scalar.is_float:
        return a * b + c
    return rounded(np.asarray(a, np.float64) * b + c, scalar) if scalar.bits < 64 else a * b + c


def total(values: Array, axis: int, scalar: Scalar) -> Array:
    """The sum along an axis; narrow types round at each step of a tree, as threads of a GPU add."""
    if scalar.is_float and scalar.bits < 32:
        values = np.moveaxis(values, axis, -1)
        while values.shape[-1] > 1:
            half = values.shape[-1] // 2
            values = rounded(values[..., :half] + values[..., half:], scalar)
        return values[..., 0]
    return values.sum(axis=axis, dtype=values.dtype)


def extreme(kind: str, values: Array, axis: int) -> Array:
    """The largest or least value along an axis; NaN is dropped."""
    return (np.fmax if kind == "max" else np.fmin).reduce(values, axis=axis)


def arg_extreme(kind: str, values: Array, axis: int) -> Array:
    """Where the largest or least value is; the first one of equals."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -np.inf if kind == "max" else np.inf, values)
    return (np.argmax if kind == "max" else np.argmin)(values, axis=axis).astype(np.int32)


def cumulated(values: Array, axis: int, scalar: Scalar, *, reverse: bool) -> Array:
    """Running sums."""
    values = np.flip(values, axis) if reverse else values
    sums = rounded(np.cumsum(values, axis=axis, dtype=values.dtype), scalar)
    return np.flip(sums, axis) if reverse else sums


def histogram(values: Array, bins: int, mask: Array | None) -> Array:
    """Counts of each program."""
    rows = np.broadcast_to(np.arange(len(values))[:, None], values.shape)
    valid = (values >= 0) & (values < bins)
    valid = valid if mask is None else valid & mask
    keys = (rows * bins + values.astype(np.int64))[valid]
    return np.bincount(keys, minlength=len(values) * bins).reshape(len(values), bins).astype(np.int32)


def dot(a: Array, b: Array, acc: Array | None, source: Scalar, scalar: Scalar) -> Array:
    """A matrix product: exact products, sums in float32 (integers: exact)."""
    wide = np.float64 if not source.is_float or source.bits == 64 else np.float32
    product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    if not scalar.is_float:
        product = product.astype(np.int64).astype(np.int32)
    if acc is not None:
        product = product + (acc if acc.dtype == product.dtype else acc.astype(product.dtype))
    return rounded(product, scalar)
