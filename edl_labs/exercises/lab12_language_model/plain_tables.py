"""Tensors as evidence: a shape, and the values in a row."""

from __future__ import annotations

from typing import Any


def plain_table(value: Any) -> dict[str, Any]:
    """A tensor, an array or a number as plain data."""
    import torch

    table = torch.as_tensor(value).detach().to(torch.float64)
    return {"shape": list(table.shape), "values": [float(one) for one in table.reshape(-1)]}


def have_one_shape(mine: Any, right: Any) -> bool:
    """Whether both have the same shape, and as many values: a shape alone is a claim of the student's process."""
    return bool(mine["shape"] == right["shape"]) and len(mine["values"]) == len(right["values"])


def shapes(mine: Any, right: Any) -> str:
    """Both shapes, for a message."""
    values = f" with {len(mine['values'])} values" if mine["shape"] == right["shape"] else ""
    return f"got the shape {mine['shape']}{values}, expected {right['shape']}"
