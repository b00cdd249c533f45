"""Networks whose scores tell which rows went through together, and what had gone backward before.

What a student's process counts is no evidence. The weights after a training on such a network are: only sending each
micro-batch forward on its own, and backward before the next one, gives them.
"""

from __future__ import annotations

from typing import Any

_TOGETHER, _BEFORE = 0.3, 0.2  # shares of a score: they move weights by percents, and training stays tame


def make_noticing(network: Any) -> Any:
    """The network itself; its scores depend on the other rows of the batch and on the gradients that came before."""
    import torch

    state = torch.zeros((), dtype=torch.float64)

    class Noticed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, scores: Any) -> Any:
            ctx.factor = 1 + _BEFORE * float(torch.tanh(state))
            return scores * ctx.factor

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            # The direction alone counts: whether a loss is divided before its backward pass is up to the training.
            pattern = torch.cos(torch.arange(gradient.numel(), dtype=gradient.dtype)).reshape(gradient.shape)
            size = gradient.norm()
            if size > 0:
                state.add_((gradient * pattern).sum() / size)
            return gradient * ctx.factor

    network.register_forward_hook(lambda _, __, scores: Noticed.apply(scores - _TOGETHER * scores.mean(0)))
    return network


__all__ = ["make_noticing"]
