"""From a kernel's source to a tile program: expressions. What is known is computed, the rest is written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from edl_labs.errors import did_you_mean
from edl_labs.virtual.tiles.builder import Builder
from edl_labs.virtual.tiles.kernel_parameters import bind
from edl_labs.virtual.tiles.kernel_source import KernelFunction
from edl_labs.virtual.tiles.known_values import HINTS, OTHER_NAMES, Bound, Module, bounded, known, plain_equal
from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import INT1, SCALARS, Scalar, TileType

_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_BITS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_MOST_CALLS = 20  # functions inside of functions


class Expressions(Builder):
    """Values of expressions: numbers, text, types, tuples and functions that are known, and symbols of the run."""

    functions: dict[str, Callable[..., Any]]
    """The functions of `tl` by name, filled in by `language`."""
    methods: frozenset[str]

    def value(self, node: ast.expr) -> Any:
        """The value of an expression."""
        return getattr(self, f"of_{type(node).__name__.lower()}")(node)

    def of_constant(self, node: ast.Constant) -> Any:
        """A number, a text, None or a truth value."""
        value = node.value
        if value is not None and not isinstance(value, bool | int | float | str):
            raise refuse(f"A kernel cannot contain a constant of type {type(value).__name__}.", next="use numbers")
        return bounded(value)

    def of_name(self, node: ast.Name) -> Any:
        """A local name, a kernel, a module-level constexpr, or a name of the language."""
        return self.name(node.id)

    def name(self, name: str) -> Any:
        """What a name means here."""
        if name in self.scope:
            return self.scope[name]
        if name in ("tl", "triton"):
            return Module()
        if name in self.module.kernels:
            return self.module.kernels[name]
        if name in self.module.constants:
            return self.value(self.module.constants[name])
        if name in ("range", "min", "max", "float", "int", "len"):
            return Bound(f"python {name}")
        near = did_you_mean(name, [*self.scope, *self.module.kernels])
        why = "it is not defined on every path to this line, or it is a global name that is not a constexpr"
        raise refuse(f"`{name[:40]}` is not defined.", why=why, next=near or "pass it as a parameter")

    def of_tuple(self, node: ast.Tuple | ast.List) -> Any:
        """Several values."""
        return tuple(self.value(one) for one in node.elts)

    of_list = of_tuple

    def of_attribute(self, node: ast.Attribute) -> Any:
        """`tl.x`, or a property or method of a value."""
        owner = self.value(node.value)
        if isinstance(owner, Module):
            return self.language_name(node.attr)
        if isinstance(owner, Symbol):
            return self.property_of(owner, node.attr)
        if isinstance(owner, TileType) and node.attr in ("element_ty", "scalar"):
            return owner.scalar
        if isinstance(owner, Scalar) and node.attr in ("primitive_bitwidth", "int_bitwidth"):
            return owner.bits
        if isinstance(owner, Scalar) and node.attr in ("is_floating", "is_int"):
            return Bound(f"scalar {node.attr}", owner)
        if node.attr == "value" and isinstance(owner, bool | int | float | str):
            return owner
        if isinstance(owner, bool | int | float) and node.attr in self.methods:
            return Bound(node.attr, owner)
        raise refuse(f"A {type(owner).__name__} has no `.{node.attr[:40]}`.", next="use the functions of tl")

    def language_name(self, name: str) -> Any:
        """`tl.name`."""
        if name in SCALARS or name in OTHER_NAMES:
            return SCALARS.get(OTHER_NAMES.get(name, name))
        if name in ("constexpr", "math", "language", "extra"):
            return Module() if name != "constexpr" else Bound("constexpr")
        if name in self.functions:
            return Bound(name)
        if name in HINTS:
            raise refuse(f"tl.{name} is not supported.", next=HINTS[name])
        near = did_you_mean(name, self.functions)
        raise refuse(f"There is no tl.{name[:40]}.", next=near or "see the list in docs/library/tiles.md")

    def property_of(self, owner: Symbol, name: str) -> Any:
        """A property or a method of a value."""
        if name == "dtype":
            return TileType(owner.type.scalar, (), pointer=True) if owner.type.pointer else owner.type.scalar
        if name == "type":
            return owner.type
        if name == "shape":
            return owner.type.shape
        if name == "numel":
            return owner.type.elements
        if name == "T":
            return self.functions["trans"](self, owner)
        if name in self.methods:
            return Bound(name, owner)
        near = did_you_mean(name, self.methods)
        raise refuse(f"A run-time value has no `.{name[:40]}`.", next=near or "use the functions of tl")

    def of_subscript(self, node: ast.Subscript) -> Any:
        """`x[:, None]`, or a part of a tuple or shape."""
        owner = self.value(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(owner, tuple):
            index = self.value(parts[0])
            if type(index) is not int or len(parts) != 1 or not -len(owner) <= index < len(owner):
                raise refuse("This index of a tuple does not exist.", next="use a constant index within the tuple")
            return owner[index]
        if not isinstance(owner, Symbol):
            raise refuse(f"A {type(owner).__name__} cannot be indexed.", next="index only blocks, with : and None")
        return self.indexed(owner, [self.index_part(one) for one in parts])

    def index_part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Slice) and (node.lower, node.upper, node.step) == (None, None, None):
            return ":"
        if isinstance(node, ast.Constant) and node.value is None:
            return "None"
        raise refuse("A block can be indexed only with : and None.", next="select with tl.where and tl.sum")

    def indexed(self, owner: Symbol, parts: list[str]) -> Symbol:
        """A block with new axes."""
        old = iter(owner.type.shape)
        try:
            shape = [1 if part == "None" else next(old) for part in parts]
        except StopIteration:
            raise refuse("There are more indices than axes.", next="use at most one `:` for each axis") from None
        return self.view("reshape", owner, (*shape, *old))

    def of_unaryop(self, node: ast.UnaryOp) -> Any:
        """`-x`, `~x`, `not x`."""
        value = self.value(node.operand)
        if not isinstance(value, Symbol):
            return self.constant_unary(node.op, value)
        if value.type.pointer:
            raise refuse("Arithmetic on a pointer is not supported.", next="compute with the offsets")
        if isinstance(node.op, ast.USub) and value.type.scalar.is_float:
            return self.elementwise("unary", [value], value.type.scalar, kind="-")
        if isinstance(node.op, ast.USub):
            return self.binary(ast.Sub, self.symbol(0, value.type.scalar), value)
        if isinstance(node.op, ast.UAdd):
            return value
        if value.type.scalar.is_float or (isinstance(node.op, ast.Not) and value.type.scalar != INT1):
            raise refuse(
                f"`{'not' if isinstance(node.op, ast.Not) else '~'}` is not possible for {value.type}.",
                next="compare with 0",
            )
        return self.elementwise("unary", [value], value.type.scalar, kind="~")

    def constant_unary(self, op: ast.unaryop, value: Any) -> Any:
        if isinstance(op, ast.Not):
            return not value
        if not isinstance(value, bool | int | float) or (isinstance(op, ast.Invert) and isinstance(value, float)):
            raise refuse(f"This operator cannot be applied to a {type(value).__name__}.", next="use a number")
        return bounded(-value if isinstance(op, ast.USub) else ~int(value) if isinstance(op, ast.Invert) else +value)

    def of_binop(self, node: ast.BinOp) -> Any:
        """An operator between two values."""
        return self.binary(type(node.op), self.value(node.left), self.value(node.right))

    def binary(self, op: type[ast.operator], left: Any, right: Any) -> Any:
        """The result of an operator."""
        if not isinstance(left, Symbol) and not isinstance(right, Symbol):
            return known(op, left, right)
        if op in (ast.Add, ast.Sub) and isinstance(left, Symbol) and left.type.pointer:
            return self.moved(left, right, 1 if op is ast.Add else -1)
        if op is ast.Add and isinstance(right, Symbol) and right.type.pointer:
            return self.moved(right, left, 1)
        if op in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[op], left, right)
        if op in _BITS:
            a, b = self.numbers(left, right)
            if a.type.scalar.is_float:
                raise refuse(
                    f"`{_BITS[op]}` is not possible for {a.type.scalar}.",
                    next="use it only between comparisons or integers",
                )
            return self.elementwise("bits", [a, b], a.type.scalar, kind=_BITS[op])
        raise refuse(
            "`**` and `@` are not possible for run-time values.",
            next="multiply, use tl.exp2(y * tl.log2(x)), or tl.dot",
        )

    def arithmetic(self, kind: str, left: Any, right: Any) -> Symbol:
        """+ - * / // % of numbers and blocks."""
        a, b = self.numbers(left, right, division=kind in ("/", "//", "%"))
        if kind == "/" and not a.type.scalar.is_float:
            a, b = self.cast(a, SCALARS["float32"]), self.cast(b, SCALARS["float32"])
        if kind == "//" and a.type.scalar.is_float:
            raise refuse("`//` is not possible for floating-point numbers.", next="use tl.floor(x / y)")
        if a.type.scalar.is_fp8:
            raise refuse(
                f"`{kind}` is not possible for {a.type.scalar}.",
                why="a GPU has no such instruction",
                next="convert with .to(tl.float32)",
            )
        return self.elementwise("arithmetic", [a, b], a.type.scalar, kind=kind)

    def of_compare(self, node: ast.Compare) -> Any:
        """A comparison, or a chain of them."""
        left, result = self.value(node.left), None
        for op, node_right in zip(node.ops, node.comparators, strict=True):
            right = self.value(node_right)
            one = self.compare(op, left, right)
            result = one if result is None else self.both("&", result, one)
            left = right
        return result

    def compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """One comparison."""
        if isinstance(op, ast.Is | ast.IsNot):
            same = left is right if left is None or right is None else plain_equal(left, right)
            return same == isinstance(op, ast.Is)
        if isinstance(op, ast.In | ast.NotIn):
            raise refuse("`in` is not part of the language.", next="compare with ==")
        if not isinstance(left, Symbol) and not isinstance(right, Symbol):
            return known(type(op), left, right)
        if left is None or right is None:
            raise refuse("A run-time value cannot be compared with None.", next="use `is None`")
        a, b = self.numbers(left, right)
        aligned, shape = self.aligned(a, b)
        return self.emit("compare", aligned, TileType(INT1, shape), kind=_COMPARISONS[type(op)])

    def of_boolop(self, node: ast.BoolOp) -> Any:
        """`and`, `or`: of known values as in Python, of the run as & and | of int1."""
        result: Any = None
        is_and = isinstance(node.op, ast.And)
        for index, one in enumerate(node.values):
            value = self.value(one)
            if not isinstance(value, Symbol):
                if bool(value) != is_and:
                    return value
                result = value if index == 0 else result
            else:
                result = value if not isinstance(result, Symbol) else self.both("&" if is_and else "|", result, value)
        return result

    def both(self, kind: str, a: Any, b: Any) -> Any:
        """& or | of truth values."""
        if not isinstance(a, Symbol) and not isinstance(b, Symbol):
            return (a and b) if kind == "&" else (a or b)
        a, b = self.symbol(a), self.symbol(b)
        if a.type.scalar != INT1 or b.type.scalar != INT1:
            raise refuse(
                "`and` and `or` are not possible for numbers.",
                why="both sides must be truth values",
                next="compare with 0 first",
            )
        return self.elementwise("bits", [a, b], INT1, kind=kind)

    def of_ifexp(self, node: ast.IfExp) -> Any:
        """`a if test else b`."""
        condition = self.condition(node.test)
        if not isinstance(condition, Symbol):
            return self.value(node.body if condition else node.orelse)
        regions, values = [], []
        for one in (node.body, node.orelse):
            region, value = self.region_of(one)
            region.results = (value.number,)
            regions.append(region)
            values.append(value)
        if values[0].type != values[1].type:
            raise refuse(
                f"The result would be {values[0].type} or {values[1].type}, depending on a condition.",
                next="convert both results to the same type",
            )
        return self.emit_region("if", (condition,), regions, [values[0].type])[0]

    def of_call(self, node: ast.Call) -> Any:
        """A call of a function of tl, of a method, or of another kernel."""
        function = self.value(node.func)
        unused = self.unused is node
        self.unused = None
        given = [self.value(one) for one in node.args]
        named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        if len(named) != len(node.keywords):
            raise refuse("A call cannot unpack a dictionary with `**`.", next="write out the arguments")
        self.line = node.lineno
        if isinstance(function, KernelFunction):
            return self.call_kernel(function, given, named)
        if not isinstance(function, Bound):
            raise refuse(f"A {type(function).__name__} cannot be called.", next="call a function of tl")
        if function.owner is not None:
            given.insert(0, function.owner)
        return self.call_language(function.name, given, named, unused=unused)

    def call_kernel(self, function: KernelFunction, given: list[Any], named: dict[str, Any]) -> Any:
        """What another function of the source returns, written in place."""
        if function.name in self.calls:
            raise refuse(f"`{function.name}` calls itself.", why="a kernel has no stack", next="write a loop")
        if len(self.calls) > _MOST_CALLS:
            raise refuse(
                f"Calls are nested more than {_MOST_CALLS} levels deep.", next="write the code in fewer functions"
            )
        scope = bind(function, given, named, self.value)
        self.calls.append(function.name)
        try:
            return self.call_body(function, scope)
        finally:
            self.calls.pop()

    def region_of(self, node: ast.expr) -> Any:
        """A region with one expression, and its value."""
        raise NotImplementedError

    def range_of(self, node: ast.expr) -> tuple[str, tuple[Any, Any, Any]]:
        """The kind and the bounds of a `for`; `language` has it."""
        raise NotImplementedError

    def condition(self, test: ast.expr) -> Any:
        """A test; the tracer has it."""
        raise NotImplementedError

    def call_body(self, function: KernelFunction, scope: dict[str, Any]) -> Any:
        """What a function returns; the tracer has it."""
        raise NotImplementedError

    def call_language(self, name: str, given: list[Any], named: dict[str, Any], *, unused: bool) -> Any:
        """A call of a function of tl; `language` has it."""
        raise NotImplementedError
