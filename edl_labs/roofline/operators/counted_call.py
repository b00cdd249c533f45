"""What one recorded call amounts to: FLOPs and bytes from its shapes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from edl_labs.errors import EdlError
from edl_labs.hardware import dtype_name
from edl_labs.roofline.operators.contractions import contraction_formula
from edl_labs.roofline.operators.operand_bytes import briefs, moved_bytes
from edl_labs.roofline.operators.other_flops import other_flops
from edl_labs.roofline.operators.recorder import Brief, RecordedCall


class CountedCall(NamedTuple):
    """One call: the operator's name, the dtype it counts in, FLOPs of contractions, other FLOPs (or None), bytes."""

    name: str
    dtype: str
    contraction_flops: int
    other_flops: float | None
    moved_bytes: int


def counted(call: RecordedCall) -> CountedCall:
    """The FLOPs and bytes of one call; other FLOPs are None where no formula is known."""
    name, formula = _operator(call.func)
    moved = moved_bytes(name, call.args, call.kwargs, call.out)
    if call.raw_flops is not None:
        contraction, other = call.raw_flops
    else:
        contraction = formula(_shapes(call.args), _shapes(call.kwargs), _shapes(call.out)) if formula else 0
        other = other_flops(name, call.func, call.args, call.out)
        if other is None and formula:
            other = 0.0
    return CountedCall(name, _dtype(call, is_contraction=contraction > 0), contraction, other, moved)


def short_dtype(dtype: object, *, tf32: bool = False) -> str:
    """The hardware table's name of a torch dtype, or torch's own where the table has none."""
    try:
        short = dtype_name(dtype)
    except EdlError:
        return str(dtype).removeprefix("torch.")
    return "tf32" if tf32 and short == "fp32" else short


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


def _dtype(call: RecordedCall, *, is_contraction: bool) -> str:
    found = list(briefs(call.args)) or list(briefs(call.out))
    floats = [brief for brief in found if brief.dtype.is_floating_point] or found
    if not floats:
        return "none"
    chosen = max(floats, key=lambda brief: len(brief.shape)) if is_contraction else floats[0]
    return short_dtype(chosen.dtype, tf32=call.tf32 and is_contraction and chosen.is_cuda)
