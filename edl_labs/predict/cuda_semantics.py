"""A CPU's fake tensors treated as CUDA would: autocast's casts, fused attention and dropout's mask, made explicit.

A backward pass on fake CUDA tensors needs a driver, one on fake CPU tensors does not. So the casts that autocast makes
on CUDA are applied as operations of their own, where autograd sees them and records their gradients too.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_map_only

# torch's documentation, "CUDA Ops that can autocast to float16"; a test holds them against torch's own dispatch.
_LOWERED = frozenset(
    """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc convolution _convolution prelu
    addmm addmv addr matmul einsum mm mv linear addbmm baddbmm bmm chain_matmul multi_dot linalg_multi_dot
    linalg_vecdot __matmul__ __rmatmul__ lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_WIDENED = frozenset(
    """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow __pow__ __rpow__ softplus
    layer_norm native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss
    cosine_embedding_loss nll_loss nll_loss_nd nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss
    huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss
    multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
    upsample_bicubic2d
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_WIDENED_INSIDE = frozenset(("softmax", "log_softmax", "cumsum", "cumprod", "prod", "sum"))
_PROMOTED = frozenset(
    """
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot cat stack
    """.split()  # noqa: SIM905 - one name a line would fill a page
)
_ONE_DTYPE = frozenset(("linear", "matmul", "mm", "bmm", "__matmul__", "conv1d", "conv2d", "conv3d"))
_LOW = (torch.float16, torch.bfloat16)


class CudaSemantics(TorchFunctionMode):
    """While it is on, functions of torch act as on CUDA; with `autocast` to a dtype, casts are made as there."""

    def __init__(self, autocast: torch.dtype | None = None) -> None:
        super().__init__()
        self.autocast = autocast
        self.reads = 0
        self._opened: list[ExitStack] = []
        self._cached: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def __enter__(self) -> CudaSemantics:
        # Functions that are written in Python are not calls of their own: what they call is looked at.
        opened = ExitStack()
        self._opened.append(opened)
        for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
            opened.enter_context(mock.patch.object(torch.nn.functional, name, _nothing_overrides))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._opened.pop().close()

    @property
    def is_on(self) -> bool:
        """Whether calls are looked at just now: torch switches modes off while a backward pass runs."""
        return self in torch.overrides._get_current_function_mode_stack()

    def forget_casts(self) -> None:
        """What autocast's cache does when its context ends."""
        self._cached.clear()

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self._attention(*args, **kwargs)
        if name in ("item", "__float__", "__bool__", "__int__") and args[0].numel() == 1 and args[0].is_meta:
            if name == "__bool__":
                return func(*args, **kwargs)
            self.reads += 1
            return 1.0 if args[0].dtype.is_floating_point else 1
        if name == "dropout" and func in (torch.dropout, torch.nn.functional.dropout):
            return _dropout(*args, **kwargs)
        if self.autocast is not None:
            args, kwargs = self._cast(name, args, kwargs)
        elif name in _ONE_DTYPE:
            _check_one_dtype(name, args)
        return func(*args, **kwargs)

    def _cast(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if name in _LOWERED:
            return self._to(self.autocast, args), self._to(self.autocast, kwargs)
        if name in _WIDENED or (name in _WIDENED_INSIDE and "dtype" not in kwargs and _has_low((args, kwargs))):
            return self._to(torch.float32, args), self._to(torch.float32, kwargs)
        if name in _PROMOTED and _has_low((args, kwargs)) and tree_any(_is_wide, (args, kwargs)):
            return self._to(torch.float32, args), self._to(torch.float32, kwargs)
        return args, kwargs

    def _to(self, dtype: Any, given: Any) -> Any:
        return tree_map_only(torch.Tensor, lambda tensor: self._one(tensor, dtype), given)

    def _one(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if tensor.dtype == dtype or tensor.dtype not in (torch.float32, *_LOW):
            return tensor
        if not (tensor.is_leaf and tensor.requires_grad and dtype in _LOW):
            return tensor.to(dtype)
        if id(tensor) not in self._cached:
            with torch.enable_grad():
                self._cached[id(tensor)] = (tensor, tensor.to(dtype))
        return self._cached[id(tensor)][1]

    def _attention(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        if self.autocast is not None:
            query, key, value = (self._one(one, self.autocast) for one in (query, key, value))
        del scale, dropout_p, enable_gqa  # they change values, hardly the time
        lead = query.shape[:-3]
        folded = [one.reshape(-1, *one.shape[-3:]) if one.dim() != 4 else one for one in (query, key, value)]
        out, _ = torch.ops.edl_labs_predict.attention(*folded, attn_mask, bool(is_causal))
        return out if query.dim() == 4 else out.reshape(*lead, *out.shape[1:])


class CudnnLayouts(TorchDispatchMode):
    """Convolutions on meta give what cuDNN gives: images whose channels lie last where they or the weights came so."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is not torch.ops.aten.convolution.default or out.dim() not in (4, 5) or not out.is_meta:
            return out
        last = torch.channels_last if out.dim() == 4 else torch.channels_last_3d
        if any(one.is_contiguous(memory_format=last) and not one.is_contiguous() for one in args[:2]):
            return torch.empty_like(out, memory_format=last)
        return out


def _check_one_dtype(name: str, args: Any) -> None:
    """What a GPU refuses, and meta tensors let pass: products of two floating-point dtypes. RuntimeError."""
    kinds = [one.dtype for one in args[:2] if isinstance(one, torch.Tensor) and one.dtype.is_floating_point]
    if len(set(kinds)) > 1:
        words = " and ".join(str(kind).removeprefix("torch.") for kind in kinds)
        raise RuntimeError(
            f"{name} is given {words}: convert both inputs to one dtype, or use autocast (dtype='amp_bf16')"
        )


def _nothing_overrides(*_: Any) -> bool:
    return False  # a Mock would keep its arguments, and their memory, alive


def _dropout(x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, **_: Any) -> torch.Tensor:
    if not training or p == 0:
        return x
    dropped: torch.Tensor = torch.native_dropout(x, p, training)[0]
    return x.copy_(dropped) if inplace else dropped


def _has_low(given: Any) -> bool:
    return bool(tree_any(lambda one: isinstance(one, torch.Tensor) and one.dtype in _LOW, given))


def _is_wide(one: Any) -> bool:
    return isinstance(one, torch.Tensor) and one.dtype == torch.float32


def _attention_forms(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    # Results lie as the library's kernels write them: tokens outside of heads.
    batch, heads, tokens, _ = query.shape
    out = query.new_empty(batch, tokens, heads, value.shape[-1]).transpose(1, 2)
    return out, query.new_empty(batch, heads, tokens, dtype=torch.float32)


@torch.library.custom_op("edl_labs_predict::attention", mutates_args=())
def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as one kernel, which keeps a number a row for its backward pass; forms alone, no values."""
    return _attention_forms(query, key, value, mask, causal)


@torch.library.custom_op("edl_labs_predict::attention_backward", mutates_args=())
def attention_backward(
    gradient: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor,
    rows: torch.Tensor, mask: torch.Tensor | None, causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of attention as one kernel; forms alone."""
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


attention.register_fake(_attention_forms)


@attention_backward.register_fake
def _(
    gradient: Any, query: Any, key: Any, value: Any, out: Any, rows: Any, mask: Any, causal: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    query, key, value, mask, ctx.causal = inputs
    ctx.save_for_backward(query, key, value, *output, mask)


def _gradients(ctx: Any, gradient: Any, _: Any) -> Any:
    *kept, mask = ctx.saved_tensors
    return (*torch.ops.edl_labs_predict.attention_backward(gradient, *kept, mask, ctx.causal), None, None)


attention.register_autograd(_gradients, setup_context=_keep)
