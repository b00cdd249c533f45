"""The functions of `tl`: their parameters and checks are Triton's."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from edl_labs.virtual.tiles.block_functions import BLOCK_FUNCTIONS
from edl_labs.virtual.tiles.expressions import Expressions
from edl_labs.virtual.tiles.memory_functions import MEMORY_FUNCTIONS
from edl_labs.virtual.tiles.program import Region, Symbol
from edl_labs.virtual.tiles.reduction_functions import REDUCTION_FUNCTIONS
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import FP32, FP64, INT32, TileType
from edl_labs.virtual.tiles.tracer import Tracer


def program_id(t: Expressions, axis: Any) -> Symbol:
    """Which program this is, along an axis of the grid."""
    return t.emit("program_id", (), TileType(INT32), axis=_axis(axis))


def num_programs(t: Expressions, axis: Any) -> Symbol:
    """How many programs there are along an axis."""
    return t.emit("num_programs", (), TileType(INT32), axis=_axis(axis))


def _axis(axis: Any) -> int:
    if axis not in (0, 1, 2):
        raise refuse("A grid has only the axes 0, 1 and 2.", next="use one of these axes")
    return int(axis)


def _float_function(kind: str) -> Callable[..., Symbol]:
    def call(t: Expressions, x: Any) -> Symbol:
        x = t.symbol(x)
        if x.type.pointer or x.type.scalar not in (FP32, FP64):
            why = "the function computes in float32 or float64"
            raise refuse(
                f"tl.{kind} is not possible for {x.type.scalar}.",
                why=why,
                next="convert the value first: x.to(tl.float32)",
            )
        return t.elementwise("unary", [x], x.type.scalar, kind=kind)

    return call


def absolute(t: Expressions, x: Any) -> Symbol:
    """|x|."""
    x = t.symbol(x)
    return t.elementwise("unary", [x], x.type.scalar, kind="abs")


def fma(t: Expressions, x: Any, y: Any, z: Any) -> Symbol:
    """x * y + z, rounded once."""
    x, y = t.numbers(x, y)
    x, z = t.numbers(x, z)
    y = t.cast(y, x.type.scalar)
    return t.elementwise("fma", [x, y, z], x.type.scalar)


def _extreme(kind: str) -> Callable[..., Any]:
    def call(t: Expressions, x: Any, y: Any, propagate_nan: Any = None) -> Any:
        if propagate_nan is not None:
            raise refuse("propagate_nan is not supported.", next="test for NaN with x != x")
        x, y = t.numbers(x, y)
        return t.elementwise("arithmetic", [x, y], x.type.scalar, kind=kind)

    return call


def clamp(t: Expressions, x: Any, min: Any, max: Any) -> Any:
    """x, at least `min` and at most `max`."""
    return _extreme("min")(t, _extreme("max")(t, x, min), max)


def fdiv(t: Expressions, x: Any, y: Any, ieee_rounding: bool = False) -> Any:
    """x / y."""
    return t.binary(ast.Div, x, y)


def cdiv(t: Expressions, x: Any, div: Any) -> Any:
    """x / div, rounded up."""
    return t.binary(ast.FloorDiv, t.binary(ast.Add, x, t.binary(ast.Sub, div, 1)), div)


def sigmoid(t: Expressions, x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    negative = t.binary(ast.Sub, 0, x) if not isinstance(x, Symbol) else t.elementwise(
        "unary", [x], x.type.scalar, kind="-"
    )  # fmt: skip
    return t.binary(ast.Div, 1, t.binary(ast.Add, 1, t.functions["exp"](t, negative)))


def softmax(t: Expressions, x: Any, dim: Any = None, keep_dims: Any = None, ieee_rounding: bool = False) -> Any:
    """exp(x - max) / sum of them, along an axis; 0 where none is given."""
    dim = 0 if dim is None else dim
    top = t.functions["max"](t, x, dim, keep_dims=True)
    parts = t.functions["exp"](t, t.binary(ast.Sub, x, top))
    return t.binary(ast.Div, parts, t.functions["sum"](t, parts, dim, keep_dims=True))


def constexpr(t: Expressions, value: Any) -> Any:
    """A known value."""
    if isinstance(value, Symbol):
        raise refuse(
            "tl.constexpr needs a value that is known at compile time.",
            next="use a parameter with the annotation tl.constexpr",
        )
    return value


def static_assert(t: Expressions, cond: Any, msg: Any = "") -> None:
    """TileError unless a known condition holds."""
    if isinstance(cond, Symbol):
        raise refuse(
            "tl.static_assert needs a condition that is known at compile time.", next="use constexpr parameters"
        )
    if not cond:
        said = f": {str(msg)[:80]}" if msg else "."
        raise refuse(f"tl.static_assert failed{said}", next="launch the kernel with different constants")


def assume(t: Expressions, cond: Any) -> None:
    """A promise to the compiler: checked here."""
    if isinstance(cond, Symbol):
        t.effect("assume", [cond])
    elif not cond:
        raise refuse("The condition of tl.assume is false.", next="remove it, or correct the condition")


def hint(t: Expressions, x: Any, values: Any) -> Any:
    """A promise about divisibility or contiguity, which changes no value."""
    return x


def python_min(t: Expressions, *values: Any) -> Any:
    """The least of several values."""
    return _fold(t, values, "min", min)


def python_max(t: Expressions, *values: Any) -> Any:
    """The largest of several values."""
    return _fold(t, values, "max", max)


def _fold(t: Expressions, values: Any, kind: str, known: Callable[..., Any]) -> Any:
    if not values:
        raise refuse(f"{kind}() was called without values.", next="pass at least two values")
    result = values[0]
    for one in values[1:]:
        is_run = isinstance(result, Symbol) or isinstance(one, Symbol)
        result = _extreme(kind)(t, result, one) if is_run else known(result, one)
    return result


def python_float(t: Expressions, value: Any) -> float:
    """A number, "inf", "-inf" or "nan"."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise refuse("float() is not possible for a run-time value.", next="convert with .to(tl.float32)") from None


def python_int(t: Expressions, value: Any) -> int:
    """A known integer."""
    if not isinstance(value, bool | int | float) or value - value != 0:
        raise refuse("int() is not possible for a run-time value.", next="convert with .to(tl.int32)")
    return int(value)


def python_len(t: Expressions, value: Any) -> int:
    """Parts of a tuple."""
    if not isinstance(value, tuple):
        raise refuse("len() works only on tuples.", next="use x.shape[0]")
    return len(value)


def next_power_of_2(t: Expressions, n: Any) -> int:
    """The least power of two that is at least n."""
    if type(n) is not int or n > 2**40:
        raise refuse(
            "next_power_of_2 is not possible for a run-time value.",
            next="compute it on the host, and pass it as a constexpr",
        )
    return 1 << max(0, n - 1).bit_length()


_FLOATS = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "erf", "sin", "cos", "floor", "ceil", "sqrt_rn")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **BLOCK_FUNCTIONS,
    **MEMORY_FUNCTIONS,
    **REDUCTION_FUNCTIONS,
    **dict.fromkeys(("static_range", "range"), lambda t: None),
    **{name: _float_function(name) for name in _FLOATS},
    "program_id": program_id, "num_programs": num_programs, "abs": absolute, "fma": fma, "maximum": _extreme("max"),
    "minimum": _extreme("min"), "clamp": clamp, "fdiv": fdiv, "div_rn": fdiv, "cdiv": cdiv, "sigmoid": sigmoid,
    "softmax": softmax, "constexpr": constexpr, "static_assert": static_assert, "assume": assume,
    "multiple_of": hint, "max_contiguous": hint, "max_constancy": hint, "next_power_of_2": next_power_of_2,
    "python min": python_min, "python max": python_max, "python float": python_float, "python int": python_int,
    "python len": python_len, "scalar is_floating": lambda t, s: s.is_float,
    "scalar is_int": lambda t, s: not s.is_float,
}  # fmt: skip
METHODS = frozenset(
    {"to", "cast", "trans", "permute", "reshape", "view", "expand_dims", "broadcast_to", "split", "ravel", "cdiv"}
    | {"sum", "max", "min", "argmax", "argmin", "cumsum", "softmax", "sigmoid", "histogram", "abs", "atomic_add"}
    | {"store", "atomic_max", *_FLOATS}
)
_RANGES = ("static_range", "range", "python range")
_PIPELINE = frozenset(
    {"num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm"}
)


class KernelTracer(Tracer):
    """The tracer with the functions of the language."""

    functions = FUNCTIONS
    methods = METHODS

    def call_language(self, name: str, given: list[Any], named: dict[str, Any], *, unused: bool) -> Any:
        """A call of a function of tl."""
        if name in _RANGES or name not in self.functions:
            raise refuse(
                f"`{name.removeprefix('python ')}` is used outside a `for`.",
                next="use it only as in `for i in range(n)`",
            )
        function = self.functions[name]
        if name.startswith("atomic_"):
            named["used"] = not unused
        try:
            inspect.signature(function).bind(self, *given, **named)
        except TypeError as error:
            raise refuse(f"tl.{name}: {error}.", next="see the parameters in Triton's reference") from None
        return function(self, *given, **named)

    def range_of(self, node: ast.expr) -> tuple[str, tuple[Any, Any, Any]]:
        """The kind and the bounds of a `for`."""
        kind = getattr(self.value(node.func), "name", "") if isinstance(node, ast.Call) else ""
        if kind not in _RANGES or not isinstance(node, ast.Call):
            raise refuse("A loop must run over a range.", next="use range, tl.range or tl.static_range")
        given = [self.value(one) for one in node.args]
        extra = {one.arg for one in node.keywords} - (_PIPELINE if kind == "range" else frozenset())
        if extra or not 1 <= len(given) <= 3:
            raise refuse(
                "A range needs 1 to 3 numbers.", next="write range(end), range(first, end) or range(first, end, step)"
            )
        low, high = (0, given[0]) if len(given) == 1 else given[:2]
        step = given[2] if len(given) == 3 else 1
        return ("static" if kind == "static_range" else "run"), (low, high, step)

    def region_of(self, node: ast.expr) -> tuple[Region, Symbol]:
        """A region with one expression."""
        outer, self.region = self.region, Region()
        try:
            value = self.symbol(self.value(node))
            return self.region, value
        finally:
            self.region = outer
