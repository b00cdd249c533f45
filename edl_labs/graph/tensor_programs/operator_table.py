"""The operators that a program may hold: those of aten whose result follows from their arguments and nothing else.

Left out is what draws random numbers, changes where a tensor's memory lies, computes with addresses, or needs a device.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from edl_labs.graph.tensor_programs.program_text import ProgramError

_MOST_ITEM_BYTES = 16  # of one element: a complex number in double precision
HOST_READ = "_local_scalar_dense"

UNFILLED = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)  # their memory has whatever was there before

_FACTORIES = """
arange eye full full_like linspace new_full new_ones new_zeros ones ones_like scalar_tensor tril_indices triu_indices
zero zeros zeros_like
"""
_VIEWS = """
alias as_strided detach diagonal expand lift_fresh narrow permute reshape select slice split split_with_sizes squeeze t
transpose unbind unfold unsqueeze view view_as _unsafe_view
"""
_POINTWISE = """
abs acos add addcdiv addcmul asin atan atan2 bitwise_and bitwise_not bitwise_or bitwise_xor bitwise_left_shift
bitwise_right_shift ceil clamp clamp_max clamp_min clone copy cos div elu eq erf erfc exp exp2 expm1 fill floor
floor_divide fmod frac ge gelu gelu_backward gt hardtanh isinf isnan le leaky_relu leaky_relu_backward lerp log log10
log1p log2 logical_and logical_not logical_or logical_xor lt masked_fill maximum minimum mul ne neg pow reciprocal relu
remainder round rsqrt rsub sgn sigmoid sigmoid_backward sign silu silu_backward sin softplus softplus_backward sqrt
square sub tan tanh tanh_backward threshold threshold_backward tril triu trunc where xlogy nan_to_num _to_copy
_conj_physical logaddexp logaddexp2 heaviside copysign
"""
_REDUCTIONS = """
all amax amin any argmax argmin count_nonzero cummax cummin cumprod cumsum dist linalg_vector_norm logcumsumexp
logsumexp max mean median min norm prod std std_mean sum var var_mean topk sort argsort aminmax frobenius_norm
_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data
"""
_PRODUCTS = """
addbmm addmm addmv addr baddbmm bmm dot mm mv vdot _addmm_activation
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
"""
_LAYERS = """
embedding embedding_dense_backward mse_loss mse_loss_backward native_layer_norm native_layer_norm_backward
nll_loss_backward nll_loss_forward binary_cross_entropy_with_logits smooth_l1_loss huber_loss
"""
_PLACES = """
cat constant_pad_nd flip gather gather_backward index index_add index_copy index_fill index_put index_select
masked_scatter masked_select nonzero repeat roll scatter scatter_add scatter_reduce select_backward slice_backward
select_scatter slice_scatter stack take _index_put_impl value_selecting_reduction_backward
"""
_OPTIMIZERS = """
_foreach_abs _foreach_add _foreach_addcdiv _foreach_addcmul _foreach_clamp_max _foreach_clamp_min _foreach_copy
_foreach_div _foreach_exp _foreach_lerp _foreach_max _foreach_maximum _foreach_minimum _foreach_mul _foreach_neg
_foreach_norm _foreach_pow _foreach_reciprocal _foreach_rsqrt _foreach_sign _foreach_sqrt _foreach_sub _foreach_zero
_fused_adam _fused_adamw _fused_sgd _fused_adagrad
"""
FILLING = frozenset({*_FACTORIES.split(), "fill", "zero", "_foreach_zero"})  # their results hold constants alone
NAMES = frozenset(
    " ".join((_FACTORIES, _VIEWS, _POINTWISE, _REDUCTIONS, _PRODUCTS, _LAYERS, _PLACES, _OPTIMIZERS)).split()
) | {HOST_READ, *UNFILLED}


def base_name(name: str) -> str:
    """`add` of `add_.Tensor`: the operator, whether it works in place or not."""
    return name.partition(".")[0].rstrip("_")


@cache
def operator(name: str) -> Any:
    """The operator `aten.<name>`, such as `add_.Tensor`; ProgramError where a program may not hold it."""
    import torch

    packet, _, overload = name.partition(".")
    if base_name(name) in NAMES:
        found = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if isinstance(found, torch._ops.OpOverload):
            return found
    raise ProgramError(
        f"The operator {name[:60]!r} cannot be replayed.",
        why=_refusal(name, packet),
        next="write it with PyTorch's own functions for products, sums, elementwise operations and indexing",
    )


def _refusal(name: str, packet: str) -> str:
    import torch

    if "::" in name:
        return f"it is not one of PyTorch's own operators; it comes from {name.partition('::')[0][:60]!r}"
    family: Any = getattr(torch.ops.aten, packet, None)
    overloads = [getattr(family, one) for one in family.overloads()] if hasattr(family, "overloads") else []
    if any(torch.Tag.nondeterministic_seeded in one.tags for one in overloads):
        return "it draws random numbers, which differ in every run"
    return "it is not among the operators that a program may contain"


def is_mutable(op: Any) -> bool:
    """Whether an operator writes into one of its arguments."""
    return bool(op._schema.is_mutable)


def may_be_large(op: Any, elements: list[int], most_bytes: int) -> bool:
    """Whether results can pass `most_bytes`, by the elements of the arguments' tensors.

    Without an argument that is a size, no result has more elements than the arguments' multiplied or added up.
    """
    most = max(math.prod(elements), sum(elements))
    return not elements or _takes_sizes(op) or _MOST_ITEM_BYTES * most > most_bytes


@cache
def _takes_sizes(op: Any) -> bool:
    return any("SymInt" in str(argument.real_type) for argument in op._schema.arguments)
