"""FLOPs other than contractions, for each operation that torch runs, by the conventions of `costs`."""

from __future__ import annotations

import math
from typing import Any

import torch

from edl_labs.roofline.costs import BATCH_NORM, GELU, LAYER_NORM, RMS_NORM, SIGMOID, SILU, SOFTMAX

# Four gates of three additions (two products, two biases), three sigmoids, two tanh, and four for the new states.
LSTM_CELL = 4 * 3 + 3 * SIGMOID + 2 + 4

# FLOPs per element of the result.
_PER_RESULT = {
    **dict.fromkeys(("gelu", "gelu_"), GELU),
    **dict.fromkeys(("sigmoid", "sigmoid_"), SIGMOID),
    **dict.fromkeys(("silu", "silu_"), SILU),
    **dict.fromkeys(("hardswish", "hardswish_", "hardswish_backward", "softplus", "elu", "elu_"), 4),
    **dict.fromkeys(("hardsigmoid", "hardsigmoid_", "sigmoid_backward", "tanh_backward"), 3),
    **dict.fromkeys(("addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_", "mse_loss_backward"), 3),
    **dict.fromkeys(("leaky_relu", "leaky_relu_", "rsqrt", "native_dropout", "native_dropout_backward"), 2),
    **dict.fromkeys(("hardtanh_backward", "leaky_relu_backward", "hardsigmoid_backward", "softplus_backward"), 2),
    **dict.fromkeys(("elu_backward", "mish_backward", "logit_backward"), 4),
    "gelu_backward": 10,
    "silu_backward": 7,
    "mish": 5,
    "upsample_bilinear2d": 8,
    "embedding_dense_backward": 0,
    "select_backward": 0,
    "slice_backward": 0,
}
# FLOPs per element of the (first) tensor argument.
_PER_ARGUMENT = {
    **dict.fromkeys(("_softmax", "_log_softmax", "_safe_softmax", "logsumexp"), SOFTMAX),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), 4),
    **dict.fromkeys(("native_layer_norm", "native_group_norm"), LAYER_NORM),
    **dict.fromkeys(("native_layer_norm_backward", "native_group_norm_backward"), 14),
    **dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward"), 14),
    **dict.fromkeys(("_fused_rms_norm",), RMS_NORM),
    **dict.fromkeys(("_fused_rms_norm_backward",), 10),
    **dict.fromkeys(("var", "std"), 3),
    **dict.fromkeys(("var_mean", "std_mean", "linalg_vector_norm", "norm", "mse_loss"), 3),
    **dict.fromkeys(("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "cumsum", "cumprod"), 1),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "adaptive_max_pool2d", "nll_loss_backward"), 1),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward", "nll_loss2d_backward"), 0),
}
_NORM_IN_USE = ("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
_ATTENTION = "_scaled_dot_product_"
# Moving, making and choosing values takes no arithmetic.
_NONE = frozenset(
    """
    _index_put_impl_ _local_scalar_dense _nested_from_padded _nested_tensor_from_mask
    _nested_tensor_from_mask_left_aligned _pin_memory _to_copy arange as_strided_ bernoulli bernoulli_ cat
    channel_shuffle clone constant_pad_nd contiguous copy copy_ detach embedding eye fill fill_ flip full
    full_like gather index index_put index_put_ index_select lift masked_fill masked_fill_
    native_channel_shuffle nested_to_padded_tensor new_full new_ones new_zeros nonzero normal_ ones ones_like
    pixel_shuffle rand rand_like randint randn randn_like random_ randperm reflection_pad2d repeat
    repeat_interleave resize_as_ roll scalar_tensor scatter scatter_ scatter_reduce select_scatter
    slice_scatter sort sparse_mask split stack to_padded_tensor topk tril tril_indices triu unbind unfold uniform_
    upsample_nearest2d upsample_nearest2d_backward where zero_ zeros zeros_like
    """.split()  # noqa: SIM905 - one name a line would fill two pages
)


def other_flops(name: str, func: Any, args: tuple[Any, ...], out: Any) -> float | None:
    """FLOPs other than contractions of one operation, from its (to_specs) arguments and results; None where unknown."""
    if name in _NONE:
        return 0.0
    if not _is_float(out) and not _is_float(args):
        return 0.0
    if name in _PER_RESULT:
        return float(_PER_RESULT[name] * elements(first(out)))
    if name in _PER_ARGUMENT:
        return float(_PER_ARGUMENT[name] * elements(first(args)))
    if name.startswith(_NORM_IN_USE):
        return float(_batch_norm(name, args) * elements(first(args)))
    if name.startswith(_ATTENTION):
        return _attention(name, args)
    return _rest(name, func, args, out)


def complex_flops(name: str, flops: float, *, with_real: bool) -> float | None:
    """Real FLOPs of an operation on complex numbers that takes `flops` on real ones; None where it is not known.

    `with_real`: one of the operands is real.
    """
    plain = name.removesuffix("_")
    if plain in ("mul", "prod"):
        return (2 if with_real else 6) * flops  # four products and two sums
    return 2 * flops if plain in ("add", "sub", "neg", "sum", "mean", "rsub", "conj_physical") else None


def _rest(name: str, func: Any, args: tuple[Any, ...], out: Any) -> float | None:
    if name in _SPECIAL:
        return float(_SPECIAL[name](args, out))
    tags = getattr(func, "tags", ())
    if torch.Tag.pointwise in tags:
        return float(elements(first(out)))
    if getattr(torch.Tag, "reduction", None) in tags or name in ("sum", "mean", "amax", "amin", "max", "min", "prod"):
        return float(elements(first(args)))
    return None


def _batch_norm(name: str, args: tuple[Any, ...]) -> int:
    # Without batch statistics: difference, quotient, scale, shift.
    uses_running = "no_training" in name or False in [arg for arg in args if isinstance(arg, bool)][:1]
    return 4 if uses_running else BATCH_NORM


def _attention(name: str, args: tuple[Any, ...]) -> float:
    shift = 1 if "backward" in name else 0
    query, key = args[shift], args[shift + 1]
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    # Backward: scale and softmax once more, then the softmax's own gradient.
    return float((SOFTMAX + 1 + (4 if shift else 0)) * scores)


def _convolution(args: tuple[Any, ...], out: Any) -> int:
    return elements(first(out)) if args[2] is not None else 0


def _convolution_backward(args: tuple[Any, ...], out: Any) -> int:
    return elements(args[0]) if args[-1][2] else 0


def _window(args: tuple[Any, ...], out: Any) -> int:
    return math.prod(args[1]) if len(args[1]) > 1 else args[1][0] ** 2


_SPECIAL: dict[str, Any] = {
    **dict.fromkeys(("addmm", "addmv", "baddbmm", "addbmm", "_addmm_activation"), lambda a, o: elements(first(o))),
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "_trilinear", "_int_mm", "_scaled_mm"), lambda a, o: 0),
    **dict.fromkeys(
        ("linear", "mkldnn_linear"), lambda a, o: elements(first(o)) if len(a) > 2 and a[2] is not None else 0
    ),
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable", "_slow_conv2d_forward"), _convolution),
    "convolution_backward": _convolution_backward,
    "max_pool2d_with_indices": lambda a, o: (_window(a, o) - 1) * elements(first(o)),
    "max_pool2d": lambda a, o: (_window(a, o) - 1) * elements(first(o)),
    "avg_pool2d": lambda a, o: _window(a, o) * elements(first(o)),
    "avg_pool2d_backward": lambda a, o: elements(first(a)) * math.prod(a[2]),
    "index_add": lambda a, o: elements(a[3]),
    "index_add_": lambda a, o: elements(a[3]),
    "scatter_add": lambda a, o: elements(a[3]),
    "scatter_add_": lambda a, o: elements(a[3]),
    "mkldnn_rnn_layer": lambda a, o: LSTM_CELL * elements(first(o)),
    "mkldnn_rnn_layer_backward": lambda a, o: 2 * LSTM_CELL * elements(a[7]),
    "_cudnn_rnn": lambda a, o: LSTM_CELL * elements(first(o)),
    "_cudnn_rnn_backward": lambda a, o: 2 * LSTM_CELL * elements(a[6]),
}


def elements(spec: Any) -> int:
    """Values of a to_specs tensor; 0 for anything else."""
    return math.prod(spec.shape) if hasattr(spec, "shape") else 0


def first(value: Any) -> Any:
    """The first to_specs tensor in (nested) arguments or results, or None."""
    if hasattr(value, "shape"):
        return value
    for item in value if isinstance(value, (tuple, list)) else ():
        found = first(item)
        if found is not None:
            return found
    return None


def _is_float(value: Any) -> bool:
    if hasattr(value, "shape"):
        return bool(value.dtype.is_floating_point or value.dtype.is_complex)
    return any(_is_float(item) for item in value) if isinstance(value, (tuple, list)) else False
