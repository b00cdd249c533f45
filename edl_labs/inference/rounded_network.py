"""A network whose weights and activations are numbers of integer grids: what int8 would answer, computed in float32."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import partial
from typing import Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.inference.integer_grids import IntegerGrid, integer_grid


@checked_arguments()
def rounded_network(
    model: Any,
    batches: Iterable[Any],
    *,
    weights: str = "max",
    activations: str | None = "max",
    per_channel: bool = True,
    bits: int = 8,
) -> Any:
    """A copy of an `nn.Sequential` that rounds each layer's weights and inputs to grids of `bits` bits.

    `weights` and `activations` are calibrations of `integer_grid`; weights are symmetric (per output channel unless
    `per_channel` is False), activations affine and for a whole tensor; `activations=None` leaves those as they are.
    `batches` are inputs to calibrate on, each layer with what the rounded ones before it give. Biases and batch norms
    are not rounded: fold the latter first. UsageError for a model that is no Sequential, or for no batches.

    Products are exact in float32 up to 2**24 steps of the grids, so this answers as integer arithmetic does.
    """
    import torch
    from torch import nn

    seen = list(batches)
    if not isinstance(model, nn.Sequential) or not seen:
        raise UsageError(
            f"rounded_network() needs an nn.Sequential and batches, got {type(model).__name__} and {len(seen)}.",
            why="Layers are rounded in order, and each is calibrated on the output of the layers before it.",
            next="Pass nn.Sequential(...) and a list of inputs.",
        )
    rounded = copy.deepcopy(model).eval()
    with torch.no_grad():
        inputs = torch.cat([torch.as_tensor(batch) for batch in seen])
        for layer in rounded.children():
            weight: Any = getattr(layer, "weight", None)
            if weight is not None and weight.ndim > 1:
                axis = _output_axis(layer) if per_channel else None
                grid = integer_grid(weight, method=weights, symmetric=True, bits=bits, axis=axis)
                weight.copy_(grid.rounded(weight))
                if activations is not None:
                    grid = integer_grid(inputs, method=activations, bits=bits)
                    layer.register_forward_pre_hook(partial(_round_inputs, grid))
            inputs = layer(inputs)
    return rounded


def _output_axis(layer: Any) -> int:
    """The dimension of outputs in a layer's weight; of a grouped transposed convolution, that within a group."""
    return 1 if getattr(layer, "transposed", False) else 0


def _round_inputs(grid: IntegerGrid, layer: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return (grid.rounded(given[0]), *given[1:])
