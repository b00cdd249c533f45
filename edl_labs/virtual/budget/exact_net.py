"""The small net whose losses a training job really computes: a chain of layers with ReLU, and squared errors.

Products are rounded to whole multiples of 2**-32 before they are added up, so every sum is exact in float64: its order,
and how a batch is cut or dealt to GPUs, changes no bit, and there is nothing in it that two computers do differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

WIDTH = 6  # features of each layer: a unit's forward pass takes some microseconds
SAMPLES = 2  # of a unit
RATE = 0.06  # of learning: losses fall in every job that is drawn, and none diverges
_GRID = float(2**32)  # sums of 2**20 products below 2 stay below 2**53 steps of it


@dataclass(frozen=True)
class ExactNet:
    """The values of one job: the first weights, and the data of each unit, by its seed."""

    seed: int
    layers: int

    def weights(self) -> list[Any]:
        """The first weights of each layer: near the identity, so that signals pass."""
        import numpy as np

        return [np.eye(WIDTH) + (_bytes(self.seed, "w", i, WIDTH * WIDTH) - 0.5) / 2 for i in range(self.layers)]

    def unit(self, step: int, number: int) -> tuple[Any, Any]:
        """The inputs and the targets of a unit, each of shape (SAMPLES, WIDTH)."""
        return _unit(self.seed, step, number)


@lru_cache(maxsize=4096)
def _unit(seed: int, step: int, number: int) -> tuple[Any, Any]:
    inputs = _bytes(seed, "x", step, number, SAMPLES * WIDTH)
    teacher = _bytes(seed, "teacher", 0, WIDTH * WIDTH)
    return inputs, times(inputs, teacher) / 2


def times(rows: Any, matrix: Any) -> Any:
    """rows @ matrix, with rounded products: (n, a) by (a, b)."""
    return _rounded(rows[:, :, None] * matrix[None]).sum(1)


def outer(rows: Any, others: Any) -> Any:
    """rows.T @ others, with rounded products: (n, a) and (n, b) give (a, b)."""
    return _rounded(rows[:, :, None] * others[:, None, :]).sum(0)


def relu(values: Any) -> Any:
    """What is positive, and zeros."""
    return values * (values > 0)


def squared_errors(outputs: Any, targets: Any) -> tuple[float, Any]:
    """Half the sum of squared errors, and its gradient for the outputs."""
    errors = outputs - targets
    return float(_rounded(errors * errors).sum()) / 2, errors


def updated(weights: Any, gradients: Any, units: int) -> Any:
    """Weights after a step against the mean gradient of so many units."""
    return weights - _rounded(gradients * (RATE / (units * SAMPLES)))


def _rounded(values: Any) -> Any:
    import numpy as np

    return np.rint(values * _GRID) / _GRID


def _bytes(seed: int, *what: Any) -> Any:
    """So many values of multiples of 1/256 in [0, 1), by a digest; as a square, or as rows of WIDTH."""
    import numpy as np

    *name, count = what
    digest = blake2b(repr((seed, name)).encode(), digest_size=64).digest()
    return np.frombuffer(digest, np.uint8)[:count].reshape(-1, WIDTH) / 256.0


__all__ = ["RATE", "SAMPLES", "WIDTH", "ExactNet"]
