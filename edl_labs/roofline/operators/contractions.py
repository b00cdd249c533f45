"""FLOPs of contractions: ours for the operators of one table, torch's own formulas for all others.

torch registers matrix products, convolutions and most attention kernels (`torch.utils.flop_counter`). It has none for
vector products, fused encoder layers and recurrent kernels, nor, in some versions, for attention on the CPU. Its
formula for the backward pass of a convolution ignores `groups` (docs/upstream_conv_backward_flop.md): ours does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from edl_labs.roofline.costs import GELU, LAYER_NORM, SOFTMAX

aten = torch.ops.aten
Formula = Callable[[Any, Any, Any], int]
Raw = Callable[[Any, Any, Any], tuple[int, float | None]]


def contraction_formula(packet: Any) -> Formula | None:
    """A function of args, kwargs, results (shapes for tensors) that gives FLOPs; None for no contraction."""
    registered = flop_registry.get(packet)
    if packet in _OURS or registered is None or packet in RAW:
        return _OURS.get(packet)
    # The formula itself: torch's wrapper would look for tensors in what are shapes already.
    formula = registered.__wrapped__
    return lambda args, kwargs, out: int(formula(*args, **kwargs, out_shape=out))


# Operators that multiply matrices by name; of those without a formula the FLOPs are unknown, and not zero.
_PRODUCT = re.compile(
    r"(?:^|_)\w{0,5}mm(?:_|$)|matmul|linear|bilinear|linalg|conv(?:olution|_|\d)|attention|einsum|tensordot|gemm"
    r"|(?:^|_)(?:rnn|lstm|gru)|dist$|cholesky|solve|inverse|geqrf|ormqr"
)
_NO_PRODUCT = re.compile(r"upsample|reorder|vector_norm|check_errors|linalg_cross|linalg_diagonal")
# The operators of these are many and known by name; what others hide, such as a custom kernel, nothing tells.
_NAMED_SPACES = frozenset(
    ("aten", "prims", "quantized", "_quantized", "mkldnn", "onednn", "torchvision", "c10d", "_c10d_functional")
)


def hides_products(func: Any) -> bool:
    """Whether an operator without a formula may multiply matrices: one with such a name, or one that is not torch's."""
    schema = getattr(func, "_schema", None)
    space, _, name = schema.name.partition("::") if schema is not None else ("", "", str(func))
    if space not in _NAMED_SPACES:
        return True
    return bool(_PRODUCT.search(name)) and not _NO_PRODUCT.search(name)


def sparse_flops(func: Any, args: Any) -> tuple[int | None, float | None] | None:
    """FLOPs of a product with sparse operands, from the values that are stored (None: unknown); None for no product."""
    name = func._schema.name.partition("::")[2]
    if name == "sparse_sampled_addmm":
        return 2 * stored_values(args[0]) * args[1].shape[-1], None
    pair = args[1:3] if "add" in name else args[:2]
    if name not in _SPARSE_PRODUCTS or not all(isinstance(one, torch.Tensor) for one in pair):
        return (None, None) if hides_products(func) else None
    left, right = pair
    if is_sparse(left) and is_sparse(right):
        # Each stored value of a column meets each of the row with the same number.
        columns, rows = left.to_sparse_coo().coalesce().indices()[1], right.to_sparse_coo().coalesce().indices()[0]
        inner = left.shape[1]
        return 2 * int((columns.bincount(minlength=inner) * rows.bincount(minlength=inner)).sum()), None
    if is_sparse(left):
        return 2 * stored_values(left) * (right.shape[-1] if right.dim() > 1 else 1), None
    return 2 * stored_values(right) * left.shape[0], None


_SPARSE_PRODUCTS = ("mm", "_sparse_mm", "addmm", "_sparse_addmm", "mv", "addmv", "_sparse_sparse_matmul", "sspaddmm")
_SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def is_sparse(tensor: Any) -> bool:
    """Whether a value is a tensor that stores some of its elements, with their places."""
    return isinstance(tensor, torch.Tensor) and tensor.layout in _SPARSE_LAYOUTS


def stored_values(tensor: torch.Tensor) -> int:
    """How many elements a sparse tensor stores."""
    return (tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()).numel()


def stored_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements of a tensor; of a sparse one with their places."""
    if not is_sparse(tensor):
        return tensor.numel() * tensor.element_size()
    if tensor.layout is torch.sparse_coo:
        places = [tensor._indices()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        places = [tensor.crow_indices(), tensor.col_indices()]
    else:
        places = [tensor.ccol_indices(), tensor.row_indices()]
    return stored_values(tensor) * tensor.element_size() + sum(one.numel() * one.element_size() for one in places)


def _sdpa(args: Any, kwargs: Any, out: Any) -> int:
    (batch, heads, queries, dim), keys, value_dim = args[0], args[1][-2], args[2][-1]
    return 2 * batch * heads * queries * keys * (dim + value_dim)


def _sdpa_backward(args: Any, kwargs: Any, out: Any) -> int:
    # Scores once more, then the gradients of values, probabilities, queries and keys (as torch counts its kernels).
    (batch, heads, queries, dim), keys, value_dim = args[1], args[2][-2], args[3][-1]
    return 2 * batch * heads * queries * keys * (3 * dim + 2 * value_dim)


def _convolution(args: Any, kwargs: Any, out: Any) -> int:
    source, weight, transposed = args[0], args[1], args[6]
    return _convolved(source if transposed else out, weight)


def _convolution_backward(args: Any, kwargs: Any, out: Any) -> int:
    # The gradients of input and weight take each multiply-add of the forward pass once more, whatever the groups.
    gradient, source, weight = args[:3]
    transposed, (of_input, of_weight, _) = args[7], args[10]
    return (bool(of_input) + bool(of_weight)) * _convolved(source if transposed else gradient, weight)


def _convolved(places: Any, weight: Any) -> int:
    # Each place (of the output or, transposed, of the input) meets each weight once: its shape holds the groups.
    return 2 * places[0] * math.prod(places[2:]) * math.prod(weight)


def _mv(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[0])


def _addmv(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[1])


def _addbmm(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[1]) * args[2][-1]


def _mm(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[0]) * args[1][-1]


def _addmm(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[1]) * args[2][-1]


def _linear(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * math.prod(args[0]) * args[1][0]


def _trilinear(args: Any, kwargs: Any, out: Any) -> int:
    # nn.Bilinear: each output feature is x·W·y.
    rows, left, features, right = math.prod(args[0][:-1]), args[0][-1], args[1][0], args[2][-1]
    return 2 * rows * features * right * (left + 1)


def _rnn_layer(args: Any, kwargs: Any, out: Any) -> int:
    # Input first: (time, batch, features); each step multiplies by the input's and the state's weights.
    return 2 * math.prod(args[0][:-1]) * (math.prod(args[1]) + math.prod(args[2]))


def _rnn_layer_backward(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * _rnn_layer(args, kwargs, out)


def _cudnn_rnn(args: Any, kwargs: Any, out: Any) -> int:
    weights = sum(math.prod(shape) for shape in args[1] if len(shape) == 2)
    return 2 * math.prod(args[0][:-1]) * weights


def _cudnn_rnn_backward(args: Any, kwargs: Any, out: Any) -> int:
    return 2 * _cudnn_rnn(args, kwargs, out)


def _grouped_mm(args: Any, kwargs: Any, out: Any) -> int:
    # torch.nn.functional.grouped_mm: offsets cut the rows (2-d times 3-d), the columns (3-d times 2-d) or the summed
    # dimension (2-d times 2-d) into groups, which together are as many multiply-adds as one product of the whole.
    left, right = args[0], args[1]
    groups = left[0] if len(left) == len(right) == 3 else 1
    return 2 * groups * math.prod(left[-2:]) * right[-1]


# These come before torch's: what torch does not count in every version, and what it counts wrongly, is put right here.
_OURS: dict[Any, Formula] = {
    getattr(aten, name): formula
    for name, formula in {
        "_scaled_dot_product_flash_attention_for_cpu": _sdpa,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _sdpa_backward,
        "convolution": _convolution,
        "_convolution": _convolution,
        "convolution_overrideable": _convolution,
        "convolution_backward": _convolution_backward,
        "mv": _mv,
        "addmv": _addmv,
        "dot": _mv,
        "vdot": _mv,
        "addbmm": _addbmm,
        "_int_mm": _mm,
        "_addmm_activation": _addmm,
        "linear": _linear,
        "mkldnn_linear": _linear,
        **dict.fromkeys(("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"), _grouped_mm),
        "_trilinear": _trilinear,
        "mkldnn_rnn_layer": _rnn_layer,
        "mkldnn_rnn_layer_backward": _rnn_layer_backward,
        "_cudnn_rnn": _cudnn_rnn,
        "_cudnn_rnn_backward": _cudnn_rnn_backward,
    }.items()
    if hasattr(aten, name)
}


def _registered_raw(packet: Any) -> Raw:
    return lambda args, kwargs, out: (int(flop_registry[packet](*args, **kwargs, out_val=out)), None)


def _encoder_layer(args: Any, kwargs: Any, out: Any) -> tuple[int, float | None]:
    """Four projections, the feed-forward pair, and both products of attention for each sequence's own length."""
    source, features, qkv, project = args[0], args[1], args[3], args[5]
    up, down = (weight for weight in args[14:18] if weight.dim() == 2)
    weights = sum(weight.numel() for weight in (qkv, project, up, down))
    lengths = sequence_lengths(source)
    scores = sum(length**2 for length in lengths)
    # Two norms, two residual sums, biases, the activation, and scale and softmax of each head.
    per_token = features * (2 * LAYER_NORM + 2 + 5) + up.shape[0] * (1 + (GELU if args[7] else 1))
    other = float(sum(lengths) * per_token + (SOFTMAX + 1) * args[2] * scores)
    return 2 * sum(lengths) * weights + 4 * features * scores, other


def _multi_head(args: Any, kwargs: Any, out: Any) -> tuple[int, float | None]:
    query, key, features, project = args[0], args[1], args[3], args[7]
    queries, keys = sequence_lengths(query), sequence_lengths(key)
    square = features * features
    pairs = sum(q * k for q, k in zip(queries, keys, strict=True))
    products = 2 * square * (sum(queries) + 2 * sum(keys)) + 2 * project.numel() * sum(queries)
    biases = features * (2 * sum(queries) + 2 * sum(keys))
    return products + 4 * features * pairs, float(biases + (SOFTMAX + 1) * args[4] * pairs)


def sequence_lengths(tensor: torch.Tensor) -> list[int]:
    """The length of each sequence of a batch, nested or not."""
    if tensor.is_nested:
        return [int(size[0]) for size in tensor._nested_tensor_size()]
    return [tensor.shape[1]] * tensor.shape[0]


# What must be reckoned while the tensors are there: their shapes do not tell.
RAW: dict[Any, Raw] = {
    **{
        packet: _registered_raw(packet)
        for packet, formula in flop_registry.items()
        if not hasattr(formula, "__wrapped__")
    },
    **{
        getattr(aten, name): formula
        for name, formula in {
            "_transformer_encoder_layer_fwd": _encoder_layer,
            "_native_multi_head_attention": _multi_head,
        }.items()
        if hasattr(aten, name)
    },
}
