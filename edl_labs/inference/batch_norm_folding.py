"""Batch norms folded into the convolution or linear layer in front of them, for inference."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError

if TYPE_CHECKING:
    from torch import nn


@checked_arguments()
def fold_batch_norms(model: nn.Module) -> nn.Module:
    """A copy of the model for inference, without the batch norms that stand right behind a layer with weights.

    Looked at are neighbours in `nn.Sequential`, however deep; elsewhere a model's modules do not show what runs after
    what. Convolutions of one to three dimensions, transposed ones and linear layers are known, grouped ones too. A
    folded batch norm becomes `nn.Identity`, so that names of other layers stay. The model itself is not touched.
    UsageError for a batch norm without running statistics: it has nothing fixed to fold.

    `torch.nn.utils.fuse_conv_bn_eval` does one pair, and no grouped transposed convolution.
    """
    from torch import nn

    folded = copy.deepcopy(model).eval()
    for parent in [one for one in folded.modules() if isinstance(one, nn.Sequential)]:
        names = list(parent._modules)
        for first, second in pairwise(names):
            layer, norm = parent._modules[first], parent._modules[second]
            if _has_weights(layer) and isinstance(norm, nn.modules.batchnorm._BatchNorm):
                _fold(layer, norm, name=second)
                parent._modules[second] = nn.Identity()
    return folded


def _has_weights(layer: Any) -> bool:
    from torch import nn

    return isinstance(layer, nn.Linear | nn.modules.conv._ConvNd)


def _fold(layer: Any, norm: Any, *, name: str) -> None:
    import torch

    if norm.running_var is None:
        raise UsageError(
            f"batch norm {name} keeps no running statistics",
            why="it normalises each batch with the statistics of that batch, so no fixed factor can replace it",
            next="train it with track_running_stats=True",
        )
    with torch.no_grad():
        spread = torch.rsqrt(norm.running_var + norm.eps)
        gain = spread if norm.weight is None else spread * norm.weight
        before = 0.0 if layer.bias is None else layer.bias
        after = (before - norm.running_mean) * gain
        layer.bias = torch.nn.Parameter(after if norm.bias is None else after + norm.bias)
        layer.weight.mul_(_per_weight(layer, gain))


def _per_weight(layer: Any, gain: Any) -> Any:
    """The factor of each output, in a shape that multiplies the layer's weight."""
    rest = [1] * (layer.weight.ndim - 2)
    if not getattr(layer, "transposed", False):
        return gain.view(-1, 1, *rest)
    # (inputs, outputs of a group, …): the rows of a group of inputs meet that group's outputs alone.
    rows = layer.weight.shape[0] // layer.groups
    return gain.view(layer.groups, -1).repeat_interleave(rows, dim=0).view(layer.weight.shape[0], -1, *rest)
