"""From a kernel's source to a tile program: loops, and the program as a whole."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from edl_labs.virtual.tiles.kernel_source import KernelFunction
from edl_labs.virtual.tiles.program import Region, Symbol, TileProgram, find_captures
from edl_labs.virtual.tiles.statements import Scope, Statements, assigned_names, same, shown_type
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import TileType, promote_integers

_MOST_UNROLLED = 1_000  # iterations of tl.static_range: each is compiled


class Tracer(Statements):
    """Writes the program of one kernel."""

    def trace(self, function: KernelFunction, scope: Scope) -> TileProgram:
        """The program of a kernel whose parameters have the values `scope`."""
        symbols = {name: value.number for name, value in scope.items() if isinstance(value, Symbol)}
        self.calls = [function.name]
        returned = self.call_body(function, scope)
        if returned is not None:
            raise refuse("A kernel cannot return a value.", next="store the value with tl.store").at(function.line)
        find_captures(self.region)
        written = frozenset(self.origins if self.mixed_origins else self.written)
        lines = tuple(sorted(self.tf32_lines))
        return TileProgram(
            function.name, symbols, self.region, self.types, written, serial=self.serial, tf32_lines=lines
        )

    def do_for(self, node: ast.For) -> None:
        """`for` over range, tl.range or tl.static_range."""
        kind, bounds = self.range_of(node.iter)
        if not isinstance(node.target, ast.Name):
            raise refuse(
                "A loop cannot have several loop variables.", next="use one variable, and compute the others from it"
            )
        if kind == "static":
            return self.unrolled(node, bounds)
        low, high, step = bounds
        negative = isinstance(step, int) and step < 0
        if step == 0:
            raise refuse("The step of a loop is 0.", why="the loop would never end", next="use a positive step")
        low, high, step = (self.symbol(one) for one in (low, high, step))
        for one in (low, high, step):
            if one.type.shape or one.type.pointer or one.type.scalar.is_float:
                raise refuse(f"A loop bound cannot be a {one.type}.", next="use integer scalars")
        scalar = promote_integers(promote_integers(low.type.scalar, high.type.scalar), step.type.scalar)
        index = self.new(TileType(scalar))
        self.loop("for", node.body, [low, high, step], index_name=node.target.id, index=index, negative=negative)
        self.scope.pop(node.target.id, None)
        return None

    def unrolled(self, node: ast.For, bounds: tuple[Any, Any, Any]) -> None:
        """One copy of the body for each value."""
        if not all(type(one) is int for one in bounds) or not bounds[2]:
            raise refuse(
                "tl.static_range needs bounds that are known at compile time.", next="use range, or constexpr bounds"
            )
        values = range(*bounds)
        if len(values) > _MOST_UNROLLED:
            raise refuse(f"A tl.static_range loop cannot have {len(values):,} iterations.", next="use range")
        assert isinstance(node.target, ast.Name)
        for value in values:
            self.count_one()
            self.scope[node.target.id] = value
            self.statements(node.body)

    def do_while(self, node: ast.While) -> None:
        """`while` on a scalar of the run."""
        self.loop("while", node.body, [], test=node.test)

    def loop(
        self,
        kind: str,
        statements: Sequence[ast.stmt],
        bounds: list[Symbol],
        *,
        index_name: str = "",
        index: Symbol | None = None,
        negative: bool = False,
        test: ast.expr | None = None,
    ) -> None:
        """A loop whose assigned names are carried from one iteration to the next."""
        before = self.scope
        assigned = assigned_names(statements) - {index_name}
        names = sorted(name for name in assigned if isinstance(before.get(name), Symbol))
        carried = [self.new(before[name].type, before[name].origin) for name in names]
        self.scope = {**before, **dict(zip(names, carried, strict=True))}
        regions = [self.test_region(test, carried)] if test is not None else []
        if index is not None:
            self.scope[index_name] = index
        self.loops += 1
        body, after = self.body_of(statements)
        self.loops -= 1
        self.check_carried(before, after, names, assigned)
        body.arguments = (*([index.number] if index is not None else []), *(one.number for one in carried))
        body.results = tuple(after[name].number for name in names)
        initial = [before[name] for name in names]
        self.scope = before
        options = {"negative": negative} if kind == "for" else {}
        types = [one.type for one in carried]
        results = self.emit_region(kind, (*bounds, *initial), [*regions, body], types, **options)
        for name, symbol in zip(names, results, strict=True):
            self.scope[name] = Symbol(symbol.number, symbol.type, before[name].origin)

    def test_region(self, test: ast.expr, carried: list[Symbol]) -> Region:
        """The condition of a `while`, computed before each iteration."""
        outer, self.region = self.region, Region(tuple(one.number for one in carried))
        try:
            condition = self.symbol(self.condition(test))
            self.region.results = (condition.number,)
            return self.region
        finally:
            self.region = outer

    def check_carried(self, before: Scope, after: Scope, names: list[str], assigned: frozenset[str]) -> None:
        """TileError where a loop changes the type of a name, or a name that the compiler knows."""
        for name in sorted(assigned & before.keys()):
            new = after.get(name)
            if name not in names:
                if not same(before[name], new):
                    raise refuse(f"The loop changes `{name}`, which is a compile-time value.", next="use another name")
            elif not isinstance(new, Symbol) or new.type != before[name].type:
                raise refuse(
                    f"The loop changes the type of `{name}`: {before[name].type} before, {shown_type(new)} after.",
                    why="a value that a loop updates must keep its type",
                    next="start with the right type, or convert with .to(...) in the loop",
                )
            else:
                self.mixed_origins |= new.origin != before[name].origin
