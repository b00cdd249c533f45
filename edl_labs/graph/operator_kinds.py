"""What kind of operator each one is, and through which loop it goes."""

from __future__ import annotations

import math
from typing import Any

import torch

from edl_labs.graph.graph_parts import Loop, TensorFacts, runs_of
from edl_labs.roofline.operators.contractions import contraction_formula, hides_products

# Operators without work: their results are their arguments' memory.
_VIEWS = frozenset(("_unsafe_view", "_reshape_alias", "alias", "detach", "lift_fresh", "lift_fresh_copy"))
_REDUCTIONS = frozenset(
    """
    sum mean amax amin aminmax max min argmax argmin prod var std var_mean std_mean logsumexp norm linalg_vector_norm
    all any count_nonzero mse_loss nll_loss_forward nll_loss2d_forward binary_cross_entropy_with_logits
    avg_pool2d max_pool2d_with_indices _adaptive_avg_pool2d adaptive_max_pool2d avg_pool1d adaptive_avg_pool1d
    avg_pool3d max_pool3d_with_indices _softmax _log_softmax _safe_softmax _softmax_backward_data
    _log_softmax_backward_data native_layer_norm native_layer_norm_backward native_group_norm
    native_group_norm_backward _fused_rms_norm _fused_rms_norm_backward native_batch_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _batch_norm_with_update _batch_norm_with_update_functional cudnn_batch_norm
    native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward cumsum cumprod
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_WINDOWS = ("pool",)  # a part of the names of operators that reduce windows
_LAYOUT = frozenset(
    """
    clone contiguous copy cat stack constant_pad_nd reflection_pad2d embedding index gather index_select repeat flip
    roll pixel_shuffle pixel_unshuffle channel_shuffle upsample_nearest2d expand_copy permute_copy view_copy
    slice_scatter select_scatter as_strided_copy split_with_sizes_copy transpose_copy unfold_copy im2col
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
# Where a result's place is found by its value, or one result needs them all in an order.
_OTHER = frozenset(
    """
    sort topk scatter scatter_add scatter_reduce index_put _index_put_impl index_add nonzero unique _unique2
    embedding_dense_backward max_pool2d_with_indices_backward masked_select bincount searchsorted multinomial
    upsample_bilinear2d_backward upsample_nearest2d_backward median mode kthvalue grid_sampler_2d
    grid_sampler_2d_backward randperm histc col2im avg_pool2d_backward _adaptive_avg_pool2d_backward
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_FROM_NOTHING = frozenset(
    """
    full arange ones zeros scalar_tensor empty empty_strided empty_like new_empty new_empty_strided new_zeros new_ones
    new_full full_like zeros_like ones_like eye linspace
    """.split()  # noqa: SIM905 - as above
)


def kind_of(target: Any, name: str) -> str:
    """A kind of `KINDS`, or "view" for what moves nothing."""
    if getattr(target, "is_view", False) or name in _VIEWS:
        return "view"
    if contraction_formula(getattr(target, "_overloadpacket", target)) is not None:
        return "contraction"
    for kind, names in (("reduction", _REDUCTIONS), ("layout", _LAYOUT), ("other", _OTHER)):
        if name in names:
            return kind
    if hides_products(target):
        return "contraction" if getattr(target, "namespace", "") in ("aten", "prims") else "other"
    if torch.Tag.pointwise in getattr(target, "tags", ()) or name in _FROM_NOTHING or _looks_pointwise(name):
        return "pointwise"
    return "other"


def _looks_pointwise(name: str) -> bool:
    """Operators that torch does not tag: derivatives of activations, random numbers, casts, choices."""
    untagged = ("_to_copy", "native_dropout", "native_dropout_backward", "where", "masked_fill", "tril", "triu", "rand")
    begins = ("rand", "bernoulli", "normal", "uniform", "upsample_bilinear", "_native_batch_norm_legit_no_training")
    ends = ("_backward", "_like", "_scalar")
    outside = ("embedding", "conv", "pool", "norm", "loss", "upsample")
    if name in untagged or name.startswith(begins):
        return True
    return name.endswith(ends) and not any(part in name for part in outside)


def loop_of(name: str, kind: str, args: Any, given: list[TensorFacts], results: list[TensorFacts]) -> Loop:
    """The loop of an operator's kernel, from its arguments (of the fx node), and the tensors in and out."""
    elements = max((one.elements for one in results), default=0)
    if kind != "reduction" or not given:
        return Loop(elements)
    if any(part in name for part in _WINDOWS):
        window = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else [1]
        if "adaptive" in name:
            return Loop(elements, max(1, given[0].elements // max(1, elements)), "windows")
        columns = math.prod(window) if len(window) > 1 else window[0] ** 2
        return Loop(elements, columns, "windows")
    one = _reduced_tensor(name, given)
    dims = _reduced_dims(name, args, one)
    columns = math.prod(size for at, size in enumerate(one.shape) if at in dims)
    return Loop(one.elements // max(1, columns), columns, runs_of(one.shape, one.stride, dims))


def _reduced_tensor(name: str, given: list[TensorFacts]) -> TensorFacts:
    """What a reduction goes through: its first argument (with the largest of them where a gradient is expanded)."""
    return max(given, key=lambda one: one.elements) if name.endswith(("_backward", "_data")) else given[0]


def _reduced_dims(name: str, args: Any, one: TensorFacts) -> set[int]:
    rank = len(one.shape)
    if "batch_norm" in name:
        return set(range(rank)) - {1}
    if "layer_norm" in name or "rms_norm" in name:
        normal = next((arg for arg in args if isinstance(arg, (list, tuple)) and arg), [1])
        return set(range(rank - len(normal), rank))
    if "group_norm" in name:  # groups lie within channels: rows of (N, groups), told as N alone
        return set(range(1, rank))
    if "softmax" in name:
        at = next((arg for arg in args if isinstance(arg, int) and not isinstance(arg, bool)), -1)
        return {at % rank} if rank else set()
    if "loss" in name:
        return set(range(rank))
    dims = args[1] if len(args) > 1 else None
    if name == "linalg_vector_norm":
        dims = args[2] if len(args) > 2 else None
    if not rank or isinstance(dims, bool) or dims is None or dims == []:
        return set(range(rank))
    return {at % rank for at in (dims if isinstance(dims, (list, tuple)) else [dims]) if isinstance(at, int)}
