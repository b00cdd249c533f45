"""Functions of `tl` that read and write memory."""

from __future__ import annotations

from typing import Any

from edl_labs.virtual.tiles.builder import Builder
from edl_labs.virtual.tiles.program import Symbol
from edl_labs.virtual.tiles.tile_errors import refuse
from edl_labs.virtual.tiles.tile_types import BF16, BOOLEAN, FP16, TileType

_HINTS = {
    "cache_modifier": ("", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt", None),
    "eviction_policy": ("", "evict_first", "evict_last", None),
    "sem": (None, "acquire", "release", "acq_rel", "relaxed"),
    "scope": (None, "gpu", "cta", "sys"),
}


def _check_hints(**given: Any) -> None:
    for name, value in given.items():
        if value not in _HINTS[name]:
            raise refuse(
                f"{name}={str(value)[:20]!r} is not supported.",
                next="omit this argument: it does not change any result",
            )


def _pointer(value: Any, what: str) -> Symbol:
    if not isinstance(value, Symbol) or not value.type.pointer:
        raise refuse(
            f"tl.{what} was called without a pointer.",
            why="its first argument must be an address",
            next="add an offset to a pointer",
        )
    return value


def _mask(t: Builder, mask: Any, shape: tuple[int, ...]) -> Symbol:
    mask = t.symbol(mask)
    if mask.type.scalar.kind != BOOLEAN:
        raise refuse(
            f"The mask has the type {mask.type.scalar}.",
            why="a mask must consist of truth values",
            next="use a comparison",
        )
    return _fitted(t, mask, shape, "mask")


def _fitted(t: Builder, value: Symbol, shape: tuple[int, ...], what: str) -> Symbol:
    if not shape and value.type.shape:
        raise refuse(f"A scalar address cannot have a block as its {what}.", next="use a block of addresses")
    _, common = t.aligned(t.ranked(value, len(shape)), t.new(TileType(value.type.scalar, shape)))
    if common != shape:
        raise refuse(f"The {what} has more elements than there are addresses.", next="add an axis to the addresses")
    return t.broadcast(value, shape)


def load(
    t: Builder,
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    *,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> Symbol:
    """The values at addresses; lanes outside of the mask have the value `other`."""
    _check_hints(cache_modifier=cache_modifier, eviction_policy=eviction_policy)
    pointer = _pointer(pointer, "load")
    if mask is None and other is not None:
        raise refuse(
            "tl.load got `other` without `mask`.",
            why="without a mask, every lane is loaded",
            next="pass a mask, or omit `other`",
        )
    scalar = pointer.type.scalar
    inputs = [pointer]
    if mask is not None:
        if pointer.type.shape:
            both, shape = t.aligned(pointer, t.symbol(mask))
            pointer = t.broadcast(both[0], shape)
        inputs = [pointer, _mask(t, mask, pointer.type.shape)]
    if other is not None:
        other = t.cast(t.symbol(other), scalar)
        inputs.append(_fitted(t, other, pointer.type.shape, "other"))
    return t.emit("load", inputs, TileType(scalar, pointer.type.shape))


def store(
    t: Builder, pointer: Any, value: Any, mask: Any = None, *, cache_modifier: Any = "", eviction_policy: Any = ""
) -> None:
    """Write values to addresses, in the type of their tensor."""
    _check_hints(cache_modifier=cache_modifier, eviction_policy=eviction_policy)
    pointer = _pointer(pointer, "store")
    t.effect("store", _written(t, pointer, value, mask))


def _written(t: Builder, pointer: Symbol, value: Any, mask: Any) -> list[Symbol]:
    t.written.add(pointer.origin)
    t.mixed_origins |= not pointer.origin
    value = t.cast(t.symbol(value), pointer.type.scalar)
    inputs = [pointer, _fitted(t, value, pointer.type.shape, "value")]
    return inputs if mask is None else [*inputs, _mask(t, mask, pointer.type.shape)]


def _atomic(kind: str) -> Any:
    def call(
        t: Builder, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None, *, used: bool = True
    ) -> Symbol:
        _check_hints(sem=sem, scope=scope)
        pointer = _pointer(pointer, f"atomic_{kind}")
        scalar = pointer.type.scalar
        if scalar.bits < 16 or (scalar.bits == 16 and (kind != "add" or scalar not in (FP16, BF16))):
            raise refuse(
                f"tl.atomic_{kind} is not possible for {scalar}.",
                why="a GPU has no such instruction",
                next="use float32",
            )
        t.serial |= used
        inputs = _written(t, pointer, val, mask)
        return t.emit("atomic", inputs, TileType(scalar, pointer.type.shape), kind=kind, scalar=scalar)

    return call


MEMORY_FUNCTIONS: dict[str, Any] = {
    "load": load, "store": store, "atomic_add": _atomic("add"), "atomic_max": _atomic("max"),
    "atomic_min": _atomic("min"),
}  # fmt: skip
