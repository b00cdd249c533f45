"""Operations on values: sources, shapes, arithmetic, reductions and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl_labs.virtual.tiles import tile_arithmetic as arithmetic
from edl_labs.virtual.tiles.program import Operation
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import Scalar
from edl_labs.virtual.tiles.tile_values import Array, Running, Tile, any_lane, or_false, undefined_lanes


class ValueOperations(Running):
    """One method for each operation of a program, `do_` and its name."""

    def flops(self, op: Operation, array: Array, each: int = 1) -> None:
        """Count floating-point arithmetic."""
        if op.options["scalar"].is_float:
            self.other_flops += each * (array.size // len(array)) * len(self.programs)

    # Sources

    def do_constant(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        scalar: Scalar = self.types[op.outputs[0]].scalar
        array = np.array([op.options["value"]])
        return Tile(arithmetic.rounded(array.astype(scalar.array), scalar))

    def do_program_id(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        return Tile(self.ids(self.programs)[op.options["axis"]].astype(np.int32))

    def do_num_programs(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        return Tile(np.array([self.grid[op.options["axis"]]], np.int32))

    def do_arange(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        return Tile(np.arange(op.options["start"], op.options["end"], dtype=np.int32)[None])

    # Shapes

    def do_reshape(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        shape = self.types[op.outputs[0]].shape
        return Tile(*(None if one is None else one.reshape(len(one), *shape) for one in inputs[0]))

    def do_broadcast(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        shape = self.types[op.outputs[0]].shape
        return Tile(*(None if one is None else np.broadcast_to(one, (len(one), *shape)) for one in inputs[0]))

    def do_permute(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        axes = (0, *(one + 1 for one in op.options["order"]))
        return Tile(*(None if one is None else one.transpose(axes) for one in inputs[0]))

    def do_splat(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        shape = self.types[op.outputs[0]].shape
        ones = (1,) * len(shape)
        return Tile(
            *(
                None if one is None else np.broadcast_to(one.reshape(len(one), *ones), (len(one), *shape))
                for one in inputs[0]
            )
        )

    def do_join(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        a, b = self.together(inputs)
        return Tile(np.stack([a, b], -1), self.merged(inputs, lambda x: np.stack(self.pair(x), -1)))

    def do_cat(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        a, b = self.together(inputs)
        axis = op.options["axis"] + 1
        merged = self.merged(inputs, lambda x: np.concatenate(self.pair(x), axis))
        return Tile(np.concatenate([a, b], axis), merged)

    def do_part(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        at = op.options["index"]
        return Tile(*(None if one is None else one[..., at] for one in inputs[0]))

    def together(self, inputs: list[Tile]) -> list[Array]:
        """Arrays with one length of the first axis."""
        most = max(len(one.array) for one in inputs)
        return [np.broadcast_to(one.array, (most, *one.array.shape[1:])) for one in inputs]

    def pair(self, inputs: list[Tile]) -> list[Array]:
        """Where two values are undefined."""
        shapes = self.together(inputs)
        return [
            np.zeros(like.shape, bool) if one.undefined is None else np.broadcast_to(one.undefined, like.shape)
            for one, like in zip(inputs, shapes, strict=True)
        ]

    def merged(self, inputs: list[Tile], merge: Any) -> Array | None:
        """`merge` of the undefined lanes, None where there are none."""
        return merge(inputs) if any(one.undefined is not None for one in inputs) else None

    # Element by element

    def do_arithmetic(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        (a, b), scalar, kind = inputs, op.options["scalar"], op.options["kind"]
        array = arithmetic.arithmetic(kind, a.array, b.array, scalar)
        self.flops(op, array)
        undefined = undefined_lanes(inputs)
        if kind in ("//", "%") and not scalar.is_float and not b.array.all():
            zero = np.broadcast_to(b.array == 0, array.shape)
            undefined = zero if undefined is None else zero | undefined
        return Tile(array, undefined)

    def do_bits(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        return Tile(arithmetic.BITS[op.options["kind"]](inputs[0].array, inputs[1].array), undefined_lanes(inputs))

    def do_compare(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        return Tile(arithmetic.COMPARE[op.options["kind"]](inputs[0].array, inputs[1].array), undefined_lanes(inputs))

    def do_unary(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        array = arithmetic.unary(op.options["kind"], inputs[0].array)
        self.flops(op, array)
        return Tile(array, inputs[0].undefined)

    def do_fma(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        array = arithmetic.fma(inputs[0].array, inputs[1].array, inputs[2].array, op.options["scalar"])
        self.flops(op, array, 2)
        return Tile(array, undefined_lanes(inputs))

    def do_cast(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        array = arithmetic.cast(inputs[0].array, op.options["source"], op.options["target"])
        return Tile(array, inputs[0].undefined)

    def do_bitcast(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        array = arithmetic.bitcast(inputs[0].array, op.options["source"], op.options["target"])
        return Tile(array, inputs[0].undefined)

    def do_where(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        test, a, b = inputs
        array = np.where(test.array, a.array, b.array)
        undefined = test.undefined
        if a.undefined is not None or b.undefined is not None:
            chosen = np.where(test.array, or_false(a.undefined), or_false(b.undefined))
            undefined = chosen if undefined is None else chosen | undefined
        tensor = None if a.tensor is None else np.where(test.array, a.tensor, b.tensor)
        return Tile(array, undefined, tensor)

    def do_move(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        pointer, offset = inputs
        step = offset.array.astype(np.int64, copy=False)
        array = pointer.array + step if op.options["sign"] > 0 else pointer.array - step
        return Tile(array, undefined_lanes(inputs), pointer.tensor)

    # Reductions and products

    def do_sum(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        value, axis = inputs[0], op.options["axis"] + 1
        array = arithmetic.total(value.array, axis, op.options["scalar"])
        self.flops(op, value.array)
        return Tile(array, any_lane(value.undefined, value.array, axis))

    def do_extreme(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        value, axis = inputs[0], op.options["axis"] + 1
        array = arithmetic.extreme(op.options["kind"], value.array, axis)
        return Tile(array, any_lane(value.undefined, value.array, axis))

    def do_arg(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        value, axis = inputs[0], op.options["axis"] + 1
        array = arithmetic.arg_extreme(op.options["kind"], value.array, axis)
        return Tile(array, any_lane(value.undefined, value.array, axis))

    def do_cumsum(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        value, axis = inputs[0], op.options["axis"] + 1
        array = arithmetic.cumulated(value.array, axis, op.options["scalar"], reverse=op.options["reverse"])
        self.flops(op, array)
        undefined = any_lane(value.undefined, value.array, axis)
        return Tile(array, None if undefined is None else np.broadcast_to(np.expand_dims(undefined, axis), array.shape))

    def do_histogram(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        values, *mask = self.together(inputs)
        array = arithmetic.histogram(values, op.options["bins"], mask[0] if mask else None)
        undefined = any_lane(inputs[0].undefined, inputs[0].array, 1)
        return Tile(array, None if undefined is None else np.broadcast_to(undefined[:, None], array.shape))

    def do_dot(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        a, b, *acc = inputs
        source, scalar = op.options["source"], op.options["scalar"]
        array = arithmetic.dot(a.array, b.array, acc[0].array if acc else None, source, scalar)
        work = a.array.shape[-1] * (array.size // len(array))
        self.dot_flops += 2 * work * len(self.programs)
        self.dots[self.programs] += 1
        self.budget.spend(work * len(array) // 16)
        undefined = acc[0].undefined if acc else None
        for one, axis in ((a, -1), (b, -2)):
            if one.undefined is not None:
                lanes = np.any(np.broadcast_to(one.undefined, one.array.shape), axis, keepdims=True)
                undefined = lanes if undefined is None else lanes | undefined
        return Tile(array, None if undefined is None else np.broadcast_to(undefined, array.shape))

    def do_assume(self, op: Operation, inputs: list[Tile], env: Any) -> None:
        if not inputs[0].array.all():
            raise refuse(
                "The condition of tl.assume is false in at least one program.",
                next="remove it, or correct the condition",
            )
