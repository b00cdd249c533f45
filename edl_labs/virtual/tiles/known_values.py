"""Values that the tracer knows: constants and their arithmetic, names, functions of the language."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse

_CONSTANT_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_LONGEST_TUPLE = 64  # shapes and results of published kernels have up to 5 parts


class Module:
    """The name `tl`, or `triton`."""


class Bound:
    """A function of the language, or a method with its value."""

    def __init__(self, name: str, owner: Any = None) -> None:
        self.name, self.owner = name, owner


def plain_equal(left: Any, right: Any) -> bool:
    return (
        not isinstance(left, Symbol) and not isinstance(right, Symbol) and type(left) is type(right) and left == right
    )


def known(op: type[ast.AST], left: Any, right: Any) -> Any:
    """An operator between values that are known: within 64 bits."""
    texts = isinstance(left, str) or isinstance(right, str)
    if op in (ast.Eq, ast.NotEq):
        return (left == right) == (op is ast.Eq)
    if op is ast.Add and isinstance(left, tuple) and isinstance(right, tuple) and len(left + right) <= _LONGEST_TUPLE:
        return left + right
    numbers = isinstance(left, bool | int | float) and isinstance(right, bool | int | float)
    if texts or not numbers or op not in _CONSTANT_OPERATIONS:
        raise refuse("Arithmetic on text, tuples or types is not supported.", next="compute with numbers")
    if op in (ast.Pow, ast.LShift) and (abs(right) > 64 or (op is ast.Pow and abs(left) > 2**32)):
        raise refuse("A constant needs more than 64 bits.", next="use smaller numbers")
    try:
        return bounded(_CONSTANT_OPERATIONS[op](left, right))
    except (ArithmeticError, ValueError, TypeError):
        raise refuse(
            "This operation on constants has no defined result.",
            next="check for division by zero and for negative numbers",
        ) from None


def bounded(value: Any) -> Any:
    """A known value; TileError beyond 64 bits."""
    if isinstance(value, complex):
        raise refuse("Complex numbers are not supported.", next="use real numbers")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise refuse("A constant needs more than 64 bits.", next="use smaller numbers")
    return value


OTHER_NAMES = {"float8e4m3fn": "float8e4nv", "float8_e4m3fn": "float8e4nv"}
_BLOCK_POINTER = "compute the offsets yourself: ptr + rows[:, None] * stride + columns[None, :]"
HINTS = {
    "make_block_ptr": _BLOCK_POINTER,
    "advance": "add an offset to the pointer: ptr += BLOCK",
    "make_tensor_descriptor": _BLOCK_POINTER,
    "tanh": "there is no tl.tanh; use 2 * tl.sigmoid(2 * x) - 1",
    "atomic_cas": "use tl.atomic_add or tl.atomic_max",
    "atomic_xchg": "use tl.atomic_add or tl.atomic_max",
    "sort": "use tl.max, tl.argmax or tl.histogram",
    "rand": "pass the random numbers, or a mask, as a tensor",
    "device_print": "store the value and look at it on the host",
    "device_assert": "use tl.static_assert for conditions that are known at compile time",
    "reduce": "use tl.sum, tl.max, tl.min, tl.argmax or tl.argmin",
    "associative_scan": "use tl.cumsum",
    "inline_asm_elementwise": "use the other functions of tl",
    "dot_scaled": "convert the operands and use tl.dot",
    "gather": "load the elements by their offsets",
}
