"""The floating-point operations of a trace's contractions, from the input shapes of its operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

_Shape = list[int]
_MOST_DIMENSIONS, _MOST_SHAPES, _LARGEST_SIZE = 64, 64, 1 << 48  # torch's limits, arguments of an operator, memory
SHAPE_ARGUMENTS = ("Input Dims", "Concrete Inputs")


def _product(first: _Shape, second: _Shape) -> float:
    return 2.0 * prod(first) * second[-1]


def _backward_of_convolution(dims: list[_Shape], concrete: list[str]) -> float:
    """Both gradients cost what the forward pass does; the mask says which are computed."""
    gradient, given, weight = dims[:3]
    mask = concrete[-1] if concrete else ""
    wanted = mask.count("True", 0, mask.rfind(",")) if mask.startswith("[") else 2
    is_transposed = len(concrete) > 7 and concrete[7] == "True"
    return 2.0 * prod(given if is_transposed else gradient) * prod(weight[1:]) * wanted


def _convolution(dims: list[_Shape], concrete: list[str]) -> float:
    given, weight = dims[0], dims[1]
    stride, padding, dilation = (
        _numbers(concrete, at, len(weight) - 2, other) for at, other in ((3, 1), (4, 0), (5, 1))
    )
    if len(concrete) > 6 and concrete[6] == "True":
        # Each input element of a transposed convolution meets the whole kernel.
        return 2.0 * prod(given) * prod(weight[1:])
    sizes = zip(given[2:], weight[2:], stride, padding, dilation, strict=False)
    outside = [(size + 2 * pad - spread * (kernel - 1) - 1) // step + 1 for size, kernel, step, pad, spread in sizes]
    return 2.0 * given[0] * prod(outside) * prod(weight)


def _attention(dims: list[_Shape], concrete: list[str]) -> float:
    query, key, value = dims[:3]
    return 2.0 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(dims: list[_Shape], concrete: list[str]) -> float:
    # Gradients of values, weights, queries and keys. That fused kernels compute the scores again is how, not what:
    # attention by hand and fused count alike.
    return 2.0 * _attention(dims[1:4], concrete)


# Operators whose dims hold everything; what they call is not counted again, since none of it is in the table.
CONTRACTIONS: Mapping[str, Callable[[list[_Shape], list[str]], float]] = {
    "aten::mm": lambda dims, _: _product(dims[0], dims[1]),
    "aten::bmm": lambda dims, _: _product(dims[0], dims[1]),
    "aten::addmm": lambda dims, _: _product(dims[1], dims[2]),
    "aten::baddbmm": lambda dims, _: _product(dims[1], dims[2]),
    "aten::_addmm_activation": lambda dims, _: _product(dims[1], dims[2]),
    "aten::convolution": _convolution,
    "aten::convolution_backward": _backward_of_convolution,
    **dict.fromkeys(
        (
            "aten::_scaled_dot_product_flash_attention",
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_efficient_attention",
            "aten::_scaled_dot_product_cudnn_attention",
        ),
        _attention,
    ),
    **dict.fromkeys(
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            "aten::_scaled_dot_product_efficient_attention_backward",
            "aten::_scaled_dot_product_cudnn_attention_backward",
        ),
        _attention_backward,
    ),
}


def contraction_flop(events: Iterable[Mapping[str, Any]]) -> float | None:
    """FLOPs of all products, convolutions and attentions of Chrome events; None where none has a shape.

    Formulas as in `torch.utils.flop_counter`, convolutions by their groups, attention backward without its scores.
    """
    total, known = 0.0, False
    for event in events:
        count, args = CONTRACTIONS.get(str(event.get("name", ""))), event.get("args")
        if count is None or not isinstance(args, dict) or not (dims := args.get("Input Dims")) or not _are_sizes(dims):
            continue
        try:
            total += count(dims, [str(one) for one in args.get("Concrete Inputs", ())])
            known = True
        except (IndexError, TypeError, ValueError, ArithmeticError):
            continue
    return total if known else None


def _are_sizes(dims: Any) -> bool:
    """Whether these may be shapes: a product of others can take minutes."""
    return isinstance(dims, list) and all(
        isinstance(shape, list)
        and len(shape) <= _MOST_DIMENSIONS
        and all(type(size) is int and 0 <= size < _LARGEST_SIZE for size in shape)
        for shape in dims[:_MOST_SHAPES]
    )


def _numbers(concrete: list[str], at: int, count: int, other: int) -> list[int]:
    """A list of numbers of an operator's arguments, one for each dimension; `other` where it was not recorded."""
    found = json.loads(concrete[at]) if len(concrete) > at and concrete[at].startswith("[") else [other]
    return [int(one) for one in (found * count if len(found) == 1 else found)]
