"""What one recorded operation amounts to: FLOPs and bytes from its shapes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from edl_labs.roofline._count import short_dtype
from edl_labs.roofline.operators.contractions import contraction_formula
from edl_labs.roofline.operators.operand_bytes import briefs, moved_bytes
from edl_labs.roofline.operators.other_flops import other_flops
from edl_labs.roofline.operators.recorder import Brief, Event


def reckon(event: Event) -> tuple[str, str, int, float | None, int]:
    """Operator, dtype, FLOPs of contractions, other FLOPs (None if unknown), bytes."""
    name, formula = _operator(event.func)
    moved = moved_bytes(name, event.args, event.kwargs, event.out)
    if event.raw_flops is not None:
        contraction, other = event.raw_flops
    else:
        contraction = formula(_shapes(event.args), _shapes(event.kwargs), _shapes(event.out)) if formula else 0
        other = other_flops(name, event.func, event.args, event.out)
        if other is None and formula:
            other = 0.0
    return name, _dtype(event, is_contraction=contraction > 0), contraction, other, moved


@lru_cache(maxsize=4096)
def _operator(func: Any) -> tuple[str, Any]:
    packet = getattr(func, "_overloadpacket", func)
    schema = getattr(func, "_schema", None)
    name = schema.name.partition("::")[2] if schema is not None else str(func)
    return name, contraction_formula(packet)


def _shapes(value: Any) -> Any:
    if isinstance(value, Brief):
        return value.shape
    if isinstance(value, tuple):
        return tuple([_shapes(item) for item in value])
    if isinstance(value, dict):
        return {name: _shapes(item) for name, item in value.items()}
    return value


def _dtype(event: Event, *, is_contraction: bool) -> str:
    found = list(briefs(event.args)) or list(briefs(event.out))
    floats = [brief for brief in found if brief.dtype.is_floating_point] or found
    if not floats:
        return "none"
    chosen = max(floats, key=lambda brief: len(brief.shape)) if is_contraction else floats[0]
    return short_dtype(chosen.dtype, tf32=event.tf32 and is_contraction and chosen.is_cuda)
