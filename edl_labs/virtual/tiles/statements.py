"""From a kernel's source to a tile program: statements and branches.

As in Triton, a number that is assigned to a name becomes a value of the run, unless the name is annotated with
`tl.constexpr`; parameters with that annotation, and numbers in expressions, are known to the tracer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from edl_labs.virtual.tiles.expressions import Expressions
from edl_labs.virtual.tiles.kernel_source import KernelFunction, is_constexpr
from edl_labs.virtual.tiles.program import Region, Symbol
from edl_labs.virtual.tiles.tile_errors import TileError, refuse
from edl_labs.virtual.tiles.tile_types import INT1

Scope = dict[str, Any]


class Returned(Exception):
    """The value of a `return`, on its way to the end of the function."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Statements(Expressions):
    """Traces statements, one method for each kind."""

    def call_body(self, function: KernelFunction, scope: Scope) -> Any:
        """What a function returns when its body is traced with these values."""
        outer, depth = self.scope, self.loops
        self.scope, self.loops = dict(scope), 0
        try:
            return self.run_to_return(list(function.body))
        finally:
            self.scope, self.loops = outer, depth

    def run_to_return(self, statements: list[ast.stmt]) -> Any:
        """Trace statements up to their `return`, and give its value."""
        try:
            self.statements(statements)
        except Returned as returned:
            return returned.value
        return None

    def statements(self, statements: Sequence[ast.stmt]) -> None:
        """Trace statements in order."""
        for index, node in enumerate(statements):
            self.line = node.lineno
            self.count_one()
            if isinstance(node, ast.If) and self.if_with_return(node, statements[index + 1 :]):
                return
            try:
                getattr(self, f"do_{type(node).__name__.lower()}")(node)
            except TileError as error:
                raise error.at(node.lineno) from None

    def do_pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def do_expr(self, node: ast.Expr) -> None:
        """An expression for its effect; its unused value is known as such to atomics."""
        if isinstance(node.value, ast.Call):
            self.unused = node.value
        self.value(node.value)

    def do_return(self, node: ast.Return) -> None:
        """Ends the function."""
        if self.loops:
            raise refuse("A `return` inside a loop is not possible.", next="use `while` with a condition")
        raise Returned(None if node.value is None else self.value(node.value))

    def do_assign(self, node: ast.Assign) -> None:
        """`name = value` and `a, b = values`."""
        if len(node.targets) != 1:
            raise refuse("One statement contains two assignments.", next="write two statements")
        self.assign(node.targets[0], self.value(node.value))

    def do_annassign(self, node: ast.AnnAssign) -> None:
        """`NAME: tl.constexpr = value` keeps a value known to the tracer."""
        if node.value is None:
            raise refuse(
                "A variable is annotated without being assigned a value.", next="assign a value in the same statement"
            )
        value = self.value(node.value)
        if not is_constexpr(node.annotation) or not isinstance(node.target, ast.Name):
            return self.assign(node.target, value)
        if node.target.id in self.scope:
            raise refuse(
                f"`{node.target.id}` is already defined.", why="a constexpr can be assigned only once", next="rename it"
            )
        self.scope[node.target.id] = value
        return None

    def do_augassign(self, node: ast.AugAssign) -> None:
        """`name += value`."""
        if not isinstance(node.target, ast.Name):
            raise refuse("Assigning to part of a value is not possible.", next="build the value with tl.where")
        left = self.name(node.target.id)
        self.assign(node.target, self.binary(type(node.op), left, self.value(node.value)))

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind names; numbers become values of the run."""
        if isinstance(target, ast.Name):
            self.scope[target.id] = self.materialized(value)
        elif isinstance(target, ast.Tuple | ast.List):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise refuse(
                    f"The statement assigns to {len(target.elts)} names, but there is a different number of values.",
                    next="use as many names as values",
                )
            for one, part in zip(target.elts, value, strict=True):
                self.assign(one, part)
        else:
            raise refuse("Assigning to part of a value is not possible.", next="build the value with tl.where")

    def materialized(self, value: Any) -> Any:
        """A value of the run for a number; everything else as it is."""
        if isinstance(value, tuple):
            return tuple(self.materialized(one) for one in value)
        return self.symbol(value) if isinstance(value, bool | int | float) else value

    def if_with_return(self, node: ast.If, rest: Sequence[ast.stmt]) -> bool:
        """Trace an `if` that may return, with all that follows it, as two branches that end the function."""
        if not any(isinstance(one, ast.Return) for one in ast.walk(node)):
            return False
        condition = self.condition(node.test)
        if not isinstance(condition, Symbol):
            self.statements([*(node.body if condition else node.orelse), *rest])
            return True
        if self.loops:
            raise refuse("A `return` inside a loop is not possible.", next="use `while` with a condition").at(
                node.lineno
            )
        kept = self.scope.keys() | (assigned_names(node.body) & assigned_names(node.orelse))
        branches = [self.branch([*body, Forget(kept), *rest]) for body in (node.body, node.orelse)]
        values = [self.materialized(value) for _, value in branches]
        raise Returned(self.join_branches(condition, [region for region, _ in branches], values))

    def branch(self, statements: Sequence[ast.stmt]) -> tuple[Region, Any]:
        """A region of statements that end the function, and what they return."""
        outer, self.region, scope = self.region, Region(), self.scope
        self.scope = dict(scope)
        try:
            value = self.materialized(self.run_to_return(list(statements)))
            return self.region, value
        finally:
            self.region, self.scope = outer, scope

    def join_branches(self, condition: Symbol, regions: list[Region], values: list[Any]) -> Any:
        """One value from what two branches return."""
        parts = [_parts(value) for value in values]
        if len({tuple(one.type for one in part) for part in parts}) != 1 or type(values[0]) is not type(values[1]):
            raise refuse("Two `return`s return different types.", next="convert both values to the same type")
        for region, part in zip(regions, parts, strict=True):
            region.results = tuple(one.number for one in part)
        outputs = self.emit_region("if", (condition,), regions, [one.type for one in parts[0]])
        return outputs if isinstance(values[0], tuple) else (outputs[0] if outputs else None)

    def do_forget(self, node: Forget) -> None:
        """Drop names that only one branch defined."""
        self.scope = {name: value for name, value in self.scope.items() if name in node.kept}

    def do_if(self, node: ast.If) -> None:
        """`if` on a scalar of the run, or on what is known."""
        condition = self.condition(node.test)
        if not isinstance(condition, Symbol):
            return self.statements(node.body if condition else node.orelse)
        before = self.scope
        ends = [self.body_of(statements) for statements in (node.body, node.orelse)]
        regions, scopes = [region for region, _ in ends], [scope for _, scope in ends]
        names = self.changed_names(before, scopes, node)
        for region, scope in zip(regions, scopes, strict=True):
            region.results = tuple(scope[name].number for name in names)
        merged = self.emit_region("if", (condition,), regions, [scopes[0][name].type for name in names])
        for name, symbol in zip(names, merged, strict=True):
            self.mixed_origins |= scopes[0][name].origin != scopes[1][name].origin
            before[name] = Symbol(symbol.number, symbol.type, scopes[0][name].origin)
        self.scope = before
        return None

    def body_of(self, statements: Sequence[ast.stmt]) -> tuple[Region, Scope]:
        """A region of statements, and the names at its end."""
        outer, self.region, scope = self.region, Region(), self.scope
        self.scope = dict(scope)
        try:
            self.statements(statements)
            return self.region, self.scope
        finally:
            self.region, self.scope = outer, scope

    def changed_names(self, before: Scope, scopes: list[Scope], node: ast.If) -> list[str]:
        """Names whose value an `if` changes, or that both branches define."""
        names = []
        for name in scopes[0].keys() & scopes[1].keys():
            ends = [scope[name] for scope in scopes]
            if same(ends[0], ends[1]) and (name not in before or same(ends[0], before[name])):
                if name not in before:
                    before[name] = ends[0]
                continue
            known = [before[name]] if name in before else []
            types = {one.type if isinstance(one, Symbol) else repr(one) for one in (*known, *ends)}
            if len(types) != 1 or not isinstance(ends[0], Symbol):
                shown = " and ".join(sorted(map(str, types)))
                raise refuse(
                    f"`{name}` has different types after the `if`: {shown}.",
                    why="a value must have the same type, whichever branch runs",
                    next="convert with .to(...) in the branches",
                ).at(node.lineno)
            names.append(name)
        return sorted(names)

    def condition(self, test: ast.expr) -> Any:
        """A test: a known value, or an int1 scalar of the run."""
        value = self.value(test)
        if isinstance(value, Symbol):
            if value.type.elements != 1:
                raise refuse("A block of values cannot be a condition.", next="use tl.where, or reduce it with tl.max")
            if value.type.shape:
                value = self.view("reshape", value, ())
            return self.cast(value, INT1)
        if value is not None and not isinstance(value, bool | int):
            raise refuse(f"A {type(value).__name__} cannot be a condition.", next="write a comparison")
        return bool(value)


class Forget(ast.Pass):
    """Between the branches of an `if` that may return and what follows it."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept, self.lineno = kept, 0


def assigned_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that statements assign."""
    nodes = (node for one in statements for node in ast.walk(one))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _parts(value: Any) -> list[Symbol]:
    parts = value if isinstance(value, tuple) else (() if value is None else (value,))
    if not all(isinstance(one, Symbol) for one in parts):
        raise refuse(
            "A function can return only blocks and scalars.", next="return a block, a scalar or a tuple of them"
        )
    return list(parts)


def same(a: Any, b: Any) -> bool:
    """Whether two names have one value."""
    if isinstance(a, Symbol) and isinstance(b, Symbol):
        return a.number == b.number
    return type(a) is type(b) and a == b


def shown_type(value: Any) -> str:
    """The type of a value, for a message."""
    return str(value.type) if isinstance(value, Symbol) else type(value).__name__
