"""What one recorded call amounts to: FLOPs and bytes from its shapes.

Bytes are those of unique operands: each input read once and each output written once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from edl_labs.errors import EdlError
from edl_labs.hardware import dtype_name
from edl_labs.roofline.operators.contractions import contraction_formula, hides_products
from edl_labs.roofline.operators.other_flops import complex_flops, other_flops
from edl_labs.roofline.operators.recorder import RecordedCall, TensorSpec

# Operations that overwrite their first argument without reading it.
_OVERWRITES = {
    *("copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "arange", "copy"),
}
# Operations that read, of their first tensor, no more than what they give back.
_LOOKS_UP = {"embedding", "index", "gather", "index_select", "take", "_embedding_bag"}
# Operations that write only where their indices or sources say: (destination, source).
_SCATTERS = {"index_put_", "_index_put_impl_", "index_add_", "scatter_", "scatter_add_", "index_copy_"}


_COMPLEX = 4  # real multiply-adds in a complex one: (a + bi)(c + di) has four products


class CountedCall(NamedTuple):
    """One call: the operator's name, the dtype it counts in, FLOPs of contractions, other FLOPs (or None), bytes.

    `hides_products` says that it may multiply matrices and that it is unknown how much.
    """

    name: str
    dtype: str
    contraction_flops: int
    other_flops: float | None
    moved_bytes: int
    hides_products: bool = False


def counted(call: RecordedCall) -> CountedCall:
    """The FLOPs and bytes of one call; other FLOPs are None where no formula is known.

    A multiply-add of complex numbers is four of real ones.
    """
    name, formula, hides = _operator(call.func)
    moved = moved_bytes(name, call.args, call.kwargs, call.out)
    if call.raw_flops is not None:
        known, other = call.raw_flops
        hides = known is None
        other = 0.0 if known and other is None else other
    else:
        known = formula(_shapes(call.args), _shapes(call.kwargs), _shapes(call.out)) if formula else 0
        hides = hides and formula is None
        other = None if hides else other_flops(name, call.func, call.args, call.out)
        if other is None and formula:
            other = 0.0
    given = [one.dtype.is_complex for one in tensor_specs(call.args)]
    is_complex = any(given) or any(one.dtype.is_complex for one in tensor_specs(call.out))
    if is_complex and other and not formula:
        other = complex_flops(name, other, with_real=not all(given))
    contraction = (known or 0) * (_COMPLEX if is_complex else 1)
    return CountedCall(name, _dtype(call, is_contraction=contraction > 0), contraction, other, moved, hides)


def short_dtype(dtype: object, *, tf32: bool = False) -> str:
    """The hardware table's name of a torch dtype, or torch's own where the table has none."""
    try:
        short = dtype_name(dtype)
    except EdlError:
        return str(dtype).removeprefix("torch.")
    return "tf32" if tf32 and short == "fp32" else short


@lru_cache(maxsize=4096)
def _operator(func: Any) -> tuple[str, Any, bool]:
    packet = getattr(func, "_overloadpacket", func)
    schema = getattr(func, "_schema", None)
    name = schema.name.partition("::")[2] if schema is not None else str(func)
    return name, contraction_formula(packet), hides_products(func)


def _shapes(value: Any) -> Any:
    if isinstance(value, TensorSpec):
        return value.shape
    if isinstance(value, tuple):
        return tuple([_shapes(item) for item in value])
    if isinstance(value, dict):
        return {name: _shapes(item) for name, item in value.items()}
    return value


def _dtype(call: RecordedCall, *, is_contraction: bool) -> str:
    found = list(tensor_specs(call.args)) or list(tensor_specs(call.out))
    floats = [one for one in found if one.dtype.is_complex] or [one for one in found if one.dtype.is_floating_point]
    floats = floats or found
    if not floats:
        return "none"
    chosen = max(floats, key=lambda spec: len(spec.shape)) if is_contraction else floats[0]
    return short_dtype(chosen.dtype, tf32=call.tf32 and is_contraction and chosen.is_cuda)


def moved_bytes(name: str, args: Any, kwargs: Any, out: Any) -> int:
    """Bytes read and written by one operation, from its to_specs arguments and results.

    Two arguments that are the same memory count once; of an expanded tensor only the elements that exist; a result that
    is a view of an argument costs nothing. Look-ups read the rows they return, not the table. What `out=` names is
    written, not read.
    """
    outputs = _unique(out)
    read = {key: value for key, value in kwargs.items() if not _is_among(value, outputs)}
    inputs = _unique(args, read)
    if name in _SCATTERS:
        return _scattered(args)
    if not name.endswith("_") and len(read) == len(kwargs) and outputs and _is_view(inputs, outputs):
        return 0
    if name in _LOOKS_UP and inputs:
        return _looked_up(inputs, outputs)
    if name in _OVERWRITES and inputs:
        inputs = inputs[1:]
    if name == "convolution_backward" and not args[-1][0]:
        inputs = [spec for spec in inputs if spec is not args[2]]
    return sum(map(unique_bytes, inputs)) + sum(map(unique_bytes, outputs))


def unique_bytes(spec: TensorSpec) -> int:
    """Bytes of the elements that exist: expanded dimensions count once, overlapping windows their span."""
    if 0 in spec.shape:
        return 0
    span = 1 + sum((size - 1) * abs(step) for size, step in zip(spec.shape, spec.stride, strict=False))
    return min(math.prod(spec.shape), span) * spec.dtype.itemsize


def tensor_specs(value: Any) -> Iterator[TensorSpec]:
    """Every to_specs tensor in (nested) arguments or results."""
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            if isinstance(item, TensorSpec):
                yield item
            elif isinstance(item, (tuple, list)):
                yield from tensor_specs(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensor_specs(item)


def _unique(*values: Any) -> list[TensorSpec]:
    # A view that starts at the same place, transposed or shorter, is the same bytes.
    found: dict[int, TensorSpec] = {}
    for value in values:
        for spec in (value,) if isinstance(value, TensorSpec) else tensor_specs(value):
            known = found.setdefault(spec.place, spec)
            if known is not spec and unique_bytes(spec) > unique_bytes(known):
                found[spec.place] = spec
    return list(found.values())


def _is_view(inputs: list[TensorSpec], outputs: list[TensorSpec]) -> bool:
    places = [spec.place for spec in inputs]
    return all(spec.place in places for spec in outputs)


def _is_among(value: Any, outputs: list[TensorSpec]) -> bool:
    given = _unique(value)
    return bool(given) and _is_view(outputs, given)


def _looked_up(inputs: list[TensorSpec], outputs: list[TensorSpec]) -> int:
    table, rest = inputs[0], inputs[1:]
    back = sum(map(unique_bytes, outputs))
    return min(unique_bytes(table), back) + sum(map(unique_bytes, rest)) + back


def _scattered(args: Any) -> int:
    given = list(tensor_specs(args[1:]))
    source = max(map(unique_bytes, given), default=0)
    # What is replaced is written; the sources and their places are read.
    return sum(map(unique_bytes, given)) + source
