"""Loads, stores and atomics: bounds are checked before anything is touched."""

from __future__ import annotations

from typing import Any

import numpy as np

from edl_labs.virtual.tiles import tile_arithmetic as arithmetic
from edl_labs.virtual.tiles.program import Operation
from edl_labs.virtual.tiles.tile_errors import TileError, refuse
from edl_labs.virtual.tiles.tile_memory import Storage
from edl_labs.virtual.tiles.tile_values import Array, Running, Tile

_ACCESS_OPERATIONS = 20  # an access with its records takes as long as so many small operations: measured


class AccessOperations(Running):
    """What programs do with memory."""

    def do_load(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        pointer, *rest = inputs
        mask = rest[0] if rest else None
        array, undefined = None, None
        for storage, index, active in self.accesses("read", pointer, mask):
            values = storage.values_at(index)
            storage.note("read", index, self.programs, self.count(index))
            array = values if array is None else np.where(active, values, array)
        assert array is not None
        if mask is not None and not mask.array.all():
            lanes = np.broadcast_to(mask.array, np.broadcast_shapes(mask.array.shape, array.shape))
            other = rest[1].array if len(rest) == 2 else np.zeros(1, array.dtype)
            array = np.where(lanes, array, other.astype(array.dtype, copy=False))
            undefined = ~lanes if len(rest) == 1 else rest[1].undefined
        return Tile(array, undefined)

    def count(self, index: Array) -> int:
        """Programs that make an access."""
        return len(self.programs)

    def accesses(self, verb: str, pointer: Tile, mask: Tile | None) -> list[tuple[Storage, Array, Array]]:
        """For each tensor that is touched: where, with masked lanes at its size, and which lanes are its own."""
        self.budget.spend(0, _ACCESS_OPERATIONS)
        self.check_defined(verb, pointer, mask)
        shape = pointer.array.shape if mask is None else np.broadcast_shapes(pointer.array.shape, mask.array.shape)
        active = np.broadcast_to(np.True_ if mask is None else mask.array, shape)
        offsets, tensors = np.broadcast_to(pointer.array, shape), np.asarray(pointer.tensor)
        found = []
        for number in np.unique(tensors).tolist():
            storage = self.storages[number]
            own = active if tensors.size == 1 else active & np.broadcast_to(tensors == number, shape)
            full = tensors.size == 1 and (mask is None or bool(own.all()))
            index = offsets if full else np.where(own, offsets, storage.size)
            self.check_bounds(verb, storage, index, own)
            found.append((storage, index, own))
        return found

    def check_defined(self, verb: str, pointer: Tile, mask: Tile | None) -> None:
        """TileError where an address or a mask is undefined."""
        if pointer.undefined is not None and np.any(pointer.undefined & (True if mask is None else mask.array)):
            raise refuse(
                f"The kernel {verb}s at an undefined address.",
                next="pass `other` to the load that gives this value",
                kind="undefined",
            )
        if mask is not None and mask.undefined is not None and np.any(mask.undefined):
            raise refuse(
                f"The kernel {verb}s with an undefined mask.",
                next="pass `other` to the load that gives this value",
                kind="undefined",
            )

    def check_bounds(self, verb: str, storage: Storage, index: Array, own: Array) -> None:
        """TileError for the first access outside of the tensor."""
        if index.size and index.min() >= 0 and index.max() < storage.size:
            return
        wrong = own & ((index < 0) | (index >= storage.size))
        if not wrong.any():
            return
        place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        program = tuple(int(one[place[0] % len(self.programs)]) for one in self.ids(self.programs))
        element, size = int(index[place]), storage.size
        shown = program[: 3 if program[2] else 2 if program[1] else 1]
        raise TileError(
            f"Program {shown} {verb}s element {element:,} of `{storage.name}`, which has {size:,} elements.",
            why="on a GPU, this access would reach another tensor's memory, or crash",
            next="mask the lanes that are outside the tensor",
            kind=verb, tensor=storage.name, element=element, size=size, program=program,
        )  # fmt: skip

    def do_store(self, op: Operation, inputs: list[Tile], env: Any) -> None:
        pointer, value, *mask = inputs
        for storage, index, own in self.accesses("write", pointer, mask[0] if mask else None):
            self.require_defined(value, own, storage)
            storage.note("write", index, self.programs, self.count(index))
            shape = np.broadcast_shapes(index.shape, value.array.shape)
            chosen = np.broadcast_to(own, shape)
            values = np.broadcast_to(value.array, shape)
            storage.put(np.broadcast_to(index, shape)[chosen], values[chosen])

    def require_defined(self, value: Tile, own: Array, storage: Storage) -> None:
        """TileError where an undefined value would be written."""
        if value.undefined is None or not np.any(value.undefined & own):
            return
        raise TileError(
            f"The kernel stores an undefined value in `{storage.name}`.",
            why="a load with a mask but without `other` leaves masked lanes undefined, and x // 0 is undefined too",
            next="pass `other` to the load, or use the same mask for the store",
            kind="undefined",
            tensor=storage.name,
        )

    def do_atomic(self, op: Operation, inputs: list[Tile], env: Any) -> Tile:
        pointer, value, *mask = inputs
        scalar, kind = op.options["scalar"], op.options["kind"]
        old = np.zeros(1, scalar.array)
        for storage, index, own in self.accesses("write", pointer, mask[0] if mask else None):
            self.require_defined(value, own, storage)
            storage.note("atomic", index, self.programs, self.count(index))
            shape = (len(self.programs), *np.broadcast_shapes(index.shape, value.array.shape)[1:])
            chosen = np.broadcast_to(own, shape)
            at, values = np.broadcast_to(index, shape), np.broadcast_to(value.array, shape)
            old = np.where(chosen, storage.values_at(at), old)
            self.apply(kind, storage, at[chosen], values[chosen])
        return Tile(old, None)

    def apply(self, kind: str, storage: Storage, index: Array, values: Array) -> None:
        """Combine values with those in memory, one after the other."""
        if storage.scalar.array == storage.scalar.stored:
            {"add": np.add, "max": np.fmax, "min": np.fmin}[kind].at(storage.flat, index, values)
            return
        for at, value in zip(index.tolist(), values.tolist(), strict=True):
            there = storage.values_at(np.array([at]))
            storage.put(np.array([at]), arithmetic.rounded(there + np.float32(value), storage.scalar))
