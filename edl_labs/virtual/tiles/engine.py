"""Runs a tile program for many programs at once: NumPy arrays whose first axis is the program.

A value that is equal in all programs has a first axis of length 1. Where programs take different branches or leave a
loop at different times, the rest goes on with fewer of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from edl_labs.virtual.tiles.access_operations import AccessOperations
from edl_labs.virtual.tiles.program import VIEWS, Operation, Region
from edl_labs.virtual.tiles.tile_errors import TileError, refuse
from edl_labs.virtual.tiles.tile_values import Array, Tile, or_false
from edl_labs.virtual.tiles.value_operations import ValueOperations

_COSTS = {"erf": 200, "unary": 10, "//": 20, "%": 20, "cumsum": 10, "load": 20, "store": 20, "atomic": 100}
"""The time per element, relative to an addition; measured."""


class Engine(ValueOperations, AccessOperations):
    """Programs of one launch that run together."""

    def run(self, body: Region, env: dict[int, Tile], programs: Array) -> None:
        """Run the programs with these numbers."""
        self.programs = programs
        with np.errstate(all="ignore"):
            self.region(body, env)

    def region(self, region: Region, env: dict[int, Tile]) -> list[Tile]:
        """Run a region; the values of its results."""
        for op in region.operations:
            try:
                self.operation(op, env)
            except TileError as error:
                raise error.at(op.line) from None
        return [env[one] for one in region.results]

    def operation(self, op: Operation, env: dict[int, Tile]) -> None:
        """Run one operation."""
        inputs = [env[one] for one in op.inputs]
        result = getattr(self, f"do_{op.name}")(op, inputs, env)
        if isinstance(result, list):
            env.update(zip(op.outputs, result, strict=True))
            return
        arrays = [one.array.size for one in (*inputs, *([result] if op.outputs else []))]
        cost = _COSTS.get(op.options.get("kind", op.name), _COSTS.get(op.name, 1))
        self.budget.spend(cost * (1 if op.name in VIEWS else max(arrays, default=1)))
        if op.outputs:
            env[op.outputs[0]] = result

    def do_if(self, op: Operation, inputs: list[Tile], env: dict[int, Tile]) -> list[Tile]:
        if inputs[0].undefined is not None and inputs[0].undefined.any():
            raise refuse(
                "The condition of an `if` is undefined.",
                next="pass `other` to the load that gives this value",
                kind="undefined",
            )
        test = inputs[0].array
        if test.all() or not test.any():
            return self.region(op.regions[0 if test.all() else 1], dict(env))
        parts = [
            self.some(region, env, np.flatnonzero(test == side))
            for region, side in zip(op.regions, (True, False), strict=True)
        ]
        return [self.scattered(a, b, test) for a, b in zip(*parts, strict=True)]

    def some(self, region: Region, env: dict[int, Tile], kept: Array) -> list[Tile]:
        """A region for some of the programs."""
        outer, self.programs = self.programs, self.programs[kept]
        try:
            return self.region(region, {one: env[one].take(kept) for one in region.captures})
        finally:
            self.programs = outer

    def scattered(self, a: Tile, b: Tile, test: Array) -> Tile:
        """One value from those of two groups of programs."""
        out: list[Any] = []
        for x, y in zip(a, b, strict=True):
            if x is None and y is None:
                out.append(None)
                continue
            x, y = or_false(x), or_false(y)
            shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
            whole = np.empty((len(test), *shape), np.result_type(x, y))
            whole[test], whole[~test] = x, y
            out.append(whole)
        return Tile(*out)

    def do_for(self, op: Operation, inputs: list[Tile], env: dict[int, Tile]) -> list[Tile]:
        low, high, step = (one.array for one in inputs[:3])
        if not (step != 0).all():
            raise refuse("The step of a loop is 0.", next="use a positive step", kind="budget")
        kind = self.types[op.regions[0].arguments[0]].scalar.array
        wide = [one.astype(np.int64) for one in (low, high, step)]
        trips = np.maximum(0, -((wide[0] - wide[1]) // wide[2])) if not op.options["negative"] else np.maximum(
            0, -((wide[1] - wide[0]) // -wide[2])
        )  # fmt: skip
        if not op.options["negative"] and (wide[2] < 0).any():
            raise refuse(
                "The step of a loop is a negative run-time value.", next="use a constexpr for the step", kind="budget"
            )

        def index(turn: int, kept: Array | None) -> Tile:
            value = wide[0] + turn * wide[2]
            value = value if kept is None or len(value) == 1 else value[kept]
            return Tile(value.astype(kind))

        return self.loop(op.regions[0], inputs[3:], env, lambda turn, kept, state: trips > turn, index)

    def do_while(self, op: Operation, inputs: list[Tile], env: dict[int, Tile]) -> list[Tile]:
        test, body = op.regions

        def going(turn: int, kept: Array | None, state: list[Tile]) -> Array:
            inner = self.inner(test, env, kept) | dict(zip(test.arguments, state, strict=True))
            result = self.region(test, inner)[0]
            if result.undefined is not None and result.undefined.any():
                raise refuse(
                    "The condition of a `while` is undefined.",
                    next="pass `other` to the load that gives this value",
                    kind="undefined",
                )
            return result.array

        return self.loop(body, inputs, env, going, None)

    def inner(self, region: Region, env: dict[int, Tile], kept: Array | None) -> dict[int, Tile]:
        """What a region uses from outside."""
        return {one: env[one] if kept is None else env[one].take(kept) for one in region.captures}

    def loop(self, body: Region, state: list[Tile], env: dict[int, Tile], going: Any, index: Any) -> list[Tile]:
        """Repeat the body; programs whose condition fails leave with the values that they carry."""
        outer, kept, turn = self.programs, None, 0
        final: list[Tile] | None = None
        captured = self.inner(body, env, None)
        try:
            while True:
                active = going(turn, kept, state)
                if kept is not None and index is not None and len(active) > 1:
                    active = active[kept]
                if not active.any():
                    break
                if not active.all():
                    count = len(outer)
                    kept_before = np.arange(count) if kept is None else kept
                    final = [self.placed(f, s, kept_before, count) for f, s in zip(final or state, state, strict=True)]
                    kept = kept_before[active]
                    state = [one.take(np.flatnonzero(active)) for one in state]
                    captured, self.programs = self.inner(body, env, kept), outer[kept]
                self.budget.spend(1)
                given = [index(turn, kept)] if index is not None else []
                state = self.region(body, captured | dict(zip(body.arguments, [*given, *state], strict=True)))
                turn += 1
        finally:
            self.programs = outer
        if final is None or kept is None:
            return state
        return [self.placed(f, s, kept, len(outer)) for f, s in zip(final, state, strict=True)]

    def placed(self, whole: Tile, part: Tile, kept: Array, count: int) -> Tile:
        """A value of all programs in which some have a new one."""
        out: list[Any] = []
        for x, y in zip(whole, part, strict=True):
            if x is None and y is None:
                out.append(None)
                continue
            x, y = or_false(x), or_false(y)
            shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
            copy = np.array(np.broadcast_to(x, (count, *shape)))
            copy[kept] = y
            out.append(copy)
        return Tile(*out)
