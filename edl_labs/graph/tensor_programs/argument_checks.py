"""What a few operators of aten take on trust: shapes and indices that PyTorch itself hands from forward to backward.

A recorded program is hostile input; with other shapes they would read or write outside of their tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NORM_MEAN, _NORM_WEIGHT = 3, 5  # their places among the arguments of the backward pass of a layer norm
_MOST_INDICES = 1 << 22  # 32 MiB of int64


def check_arguments(name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    """ValueError where the arguments of the operator `name` do not fit each other."""
    check = _CHECKS.get(name)
    if check is not None:
        check(args, kwargs)


def _need(is_right: object, what: str) -> None:
    if not is_right:
        raise ValueError(what)


def _loss_backward(args: list[Any], kwargs: dict[str, Any]) -> None:
    grad, logs, target, weight, reduction, ignored, total = args
    classes = logs.shape[-1]
    _need(
        logs.dim() == 2 and target.shape == logs.shape[:1], "the shape of the targets does not match the probabilities"
    )
    _need(grad.shape == (target.shape if reduction == 0 else ()), "the shape of the gradient does not match the loss")
    _need(total.numel() == 1, "the sum of the weights must be a single number")
    _need(weight is None or weight.shape == (classes,), "there must be one weight per class")
    _in_range(target[target != ignored], classes)


def _embedding_backward(args: list[Any], kwargs: dict[str, Any]) -> None:
    grad, indices, rows = args[:3]
    _need(grad.shape[:-1] == indices.shape, "the shape of the gradient does not match the indices")
    _in_range(indices, rows)


def _norm_backward(args: list[Any], kwargs: dict[str, Any]) -> None:
    grad, x, shape = args[:3]
    rows = x.shape[: x.dim() - len(shape)].numel()
    _need(grad.shape == x.shape and list(x.shape[x.dim() - len(shape) :]) == list(shape), "the shapes do not match")
    _need(
        all(one.numel() == rows for one in args[_NORM_MEAN:_NORM_WEIGHT]), "each row needs one mean and one deviation"
    )
    for one in args[_NORM_WEIGHT : _NORM_WEIGHT + 2]:
        _need(one is None or list(one.shape) == list(shape), "the shape of the weight does not match")


def _attention(args: list[Any], kwargs: dict[str, Any]) -> None:
    q, k, v = args[:3]
    _attended(q, k, v, kwargs.get("attn_mask"))
    _need(not (args[3:4] and args[3]), "dropout is random and cannot be played again")


def _attention_backward(args: list[Any], kwargs: dict[str, Any]) -> None:
    grad, q, k, v, out, sums, dropout = args[:7]
    _attended(q, k, v, kwargs.get("attn_mask"))
    _need(grad.shape == out.shape == q.shape and sums.numel() == q.shape[:3].numel(), "the shapes do not match")
    _need(
        sums.dim() == 3 and sorted(sums.shape) == sorted(q.shape[:3]) and not dropout,
        "the shape of the sums does not match",
    )


def _attended(q: Any, k: Any, v: Any, mask: Any) -> None:
    _need(q.dim() == k.dim() == v.dim() == 4 and k.shape == v.shape, "attention needs tensors with four dimensions")
    _need(q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3], "the shapes of queries and keys do not match")
    _need(q.dtype == k.dtype == v.dtype, "the dtypes differ")
    if mask is not None:
        _need(mask.shape[-2:] == (q.shape[2], k.shape[2]), "the shape of the mask does not match")


def _fused(args: list[Any], kwargs: dict[str, Any]) -> None:
    parameters, *others = [one for one in args if isinstance(one, list)]
    for found in others:
        # States that an optimizer does not have are empty lists; counts of steps have one element.
        pairs = zip(parameters, found, strict=bool(found))
        _need(
            all(b.shape == a.shape or b.numel() == 1 for a, b in pairs),
            "the shape of a state does not match its parameter",
        )


def _nonzero(args: list[Any], kwargs: dict[str, Any]) -> None:
    _need(
        args[0].numel() * max(args[0].dim(), 1) <= _MOST_INDICES,
        "indices for this number of elements need too much memory",
    )


def _masks(args: list[Any], kwargs: dict[str, Any]) -> None:
    for mask in args[1]:
        if mask is not None and not mask.is_signed():
            _nonzero([mask], {})


def _in_range(indices: Any, size: int) -> None:
    _need(not indices.numel() or (int(indices.min()) >= 0 and int(indices.max()) < size), "an index is out of range")


_CHECKS: dict[str, Callable[[list[Any], dict[str, Any]], None]] = {
    "nonzero": _nonzero,
    "index": _masks,
    "nll_loss_backward": _loss_backward,
    "embedding_dense_backward": _embedding_backward,
    "native_layer_norm_backward": _norm_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "_fused_adam": _fused,
    "_fused_adamw": _fused,
    "_fused_sgd": _fused,
    "_fused_adagrad": _fused,
}
