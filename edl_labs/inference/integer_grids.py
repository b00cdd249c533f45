"""Numbers as integers times a scale: affine or symmetric, per tensor or per channel, with three calibrations."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.values import Value

if TYPE_CHECKING:
    import torch

METHODS = ("max", "percentile", "least")
_BITS = (2, 16)  # below is a sign, above is no saving that this is for
_CANDIDATES = 20  # coarse places of an end, 5 % apart; the tests hold what is found to 2 % of a fine search
_ROUNDS = 2  # each looks four times closer: the last step moves an end by 0.3 %
_SEARCHED = 1 << 13  # values that a search looks at: a channel takes a tenth of a second
_EXTREMES = 256  # at each end kept as they are: what an end cuts off is there


@dataclass(frozen=True, repr=False)
class IntegerGrid(Value):
    """The numbers `scale * (q - zero_point)` for whole q from `lowest` to `highest`; 0 is always one of them.

    Per channel, `scale` and `zero_point` are tuples with an entry for each index of dimension `axis`.
    """

    scale: float | tuple[float, ...]
    zero_point: int | tuple[int, ...]
    lowest: int
    highest: int
    axis: int | None = None

    def integers(self, values: Any) -> torch.Tensor:
        """The nearest q of each value, as a tensor of int32; what lies beyond the ends becomes an end."""
        import torch

        values = _tensor(values)
        scale, zero = self._shaped(values.ndim)
        return (torch.round(values / scale) + zero).clamp(self.lowest, self.highest).to(torch.int32)

    def restored(self, integers: Any) -> torch.Tensor:
        """The number of each q, as a tensor of float32."""
        integers = _tensor(integers)
        scale, zero = self._shaped(integers.ndim)
        return scale * (integers - zero)

    def rounded(self, values: Any) -> torch.Tensor:
        """The number of the grid that is nearest to each value."""
        return self.restored(self.integers(values))

    def _shaped(self, dims: int) -> tuple[Any, Any]:
        import torch

        if self.axis is None:
            return torch.tensor(self.scale), torch.tensor(float(self.zero_point))  # type: ignore[arg-type]
        if not -dims <= self.axis < dims:
            raise UsageError(
                f"a grid along dimension {self.axis} does not match a tensor of {dims} dimensions",
                why="the grid has one scale for each index of that dimension",
                next="create the grid for tensors of this shape, or with axis=None",
            )
        shape = [1] * dims
        shape[self.axis] = -1
        return torch.tensor(self.scale).view(shape), torch.tensor(self.zero_point, dtype=torch.float32).view(shape)


@checked_arguments()
def integer_grid(
    values: Any,
    *,
    method: str = "max",
    symmetric: bool = False,
    bits: int = 8,
    axis: int | None = None,
    share: float = 0.999,
) -> IntegerGrid:
    """A grid for these values; per channel along dimension `axis`, if that is given.

    `method` says what is kept: `"max"` everything, `"percentile"` the inner `share` of the values (0.1 % are cut off
    at its ends together), `"least"` what makes the squared error least. A symmetric grid has as many numbers below 0
    as above (for 8 bits -127 to 127) and zero point 0; an affine one has all 2**bits. UsageError for other methods,
    for values that are no numbers, and for bits beyond 2 to 16.

    >>> integer_grid([-0.5, 127.0], symmetric=True).scale
    1.0
    """
    _check(method, bits, share)
    tensor = _tensor(values)
    if axis is not None and not -tensor.ndim <= axis < tensor.ndim:
        raise UsageError(
            f"axis is {axis}, but the values have {tensor.ndim} dimensions.",
            why="A grid along an axis has one scale for each index of that dimension.",
            next="Pass an axis from 0 to the last dimension, or None for one scale.",
        )
    if not tensor.numel() or not bool(tensor.isfinite().all()):
        raise UsageError(
            "A grid needs finite numbers.",
            why="The values are empty, or some are NaN or infinite.",
            next="Remove those values, or fix the code that computes them.",
        )
    top = 2 ** (bits - 1) - 1
    lowest = -top if symmetric else -top - 1
    parts = [tensor] if axis is None else list(tensor.unbind(axis))
    found = [_fitted(part.flatten(), method, symmetric, lowest, top, share) for part in parts]
    if axis is None:
        return IntegerGrid(*found[0], lowest, top)
    return IntegerGrid(tuple(one[0] for one in found), tuple(one[1] for one in found), lowest, top, axis)


@checked_arguments()
def sqnr_db(values: Any, rounded: Any) -> float:
    """The signal over the noise of rounding, in decibel: 10 log10(sum of squares / sum of squared errors).

    Six more are one bit more. Infinite where nothing was rounded.
    """
    exact, near = _tensor(values).double(), _tensor(rounded).double()
    if exact.shape != near.shape:
        raise UsageError(
            f"The values have shape {tuple(exact.shape)}, but the rounded values have shape {tuple(near.shape)}.",
            why="Each value is compared with its own rounded value.",
            next="Pass two tensors of the same shape.",
        )
    noise = float(((exact - near) ** 2).sum())
    signal = float((exact**2).sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


def _tensor(values: Any) -> Any:
    import torch

    try:
        return torch.as_tensor(values).detach().to(torch.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"Expected numbers, got {type(values).__name__}.",
            why=str(error).splitlines()[0],
            next="Pass a tensor, an array or a list of numbers.",
        ) from None


def _check(method: str, bits: int, share: float) -> None:
    if method not in METHODS:
        raise UsageError(
            f"{method!r} is not a calibration method",
            why=f"the methods are {', '.join(METHODS)}",
            next="use one of these",
        )
    if not isinstance(bits, int) or not _BITS[0] <= bits <= _BITS[1]:
        raise UsageError(
            f"a grid cannot have {bits!r} bits",
            why=f"{_BITS[0]} to {_BITS[1]} bits are supported",
            next="use bits=8, for example",
        )
    if not 0 < share <= 1:
        raise UsageError(
            f"the share of values to keep is {share:g}",
            why="it must be above 0 and at most 1",
            next="use share=0.999, for example",
        )


def _fitted(values: Any, method: str, symmetric: bool, lowest: int, highest: int, share: float) -> tuple[float, int]:
    """Scale and zero point of one tensor or channel."""
    low, high = float(values.min()), float(values.max())
    if method == "percentile":
        low, high = _inner(values, symmetric, share)
    elif method == "least":
        low, high = _least(values, symmetric, lowest, highest)
    return _spread(low, high, symmetric, lowest, highest)


def _spread(low: float, high: float, symmetric: bool, lowest: int, highest: int) -> tuple[float, int]:
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return 1.0, 0 if symmetric else lowest
    if symmetric:
        return max(-low, high) / highest, 0
    scale = (high - low) / (highest - lowest)
    return scale, max(lowest, min(highest, lowest - round(low / scale)))


def _inner(values: Any, symmetric: bool, share: float) -> tuple[float, float]:
    if symmetric:
        end = _order_statistic(values.abs(), share)
        return -end, end
    return _order_statistic(values, (1 - share) / 2), _order_statistic(values, (1 + share) / 2)


def _order_statistic(values: Any, share: float) -> float:
    """The value that `share` of all do not exceed. `torch.quantile` refuses more than 16 million."""
    rank = min(max(1, math.ceil(share * values.numel())), values.numel())
    return float(values.kthvalue(rank).values)


def _least(values: Any, symmetric: bool, lowest: int, highest: int) -> tuple[float, float]:
    """The ends that make the squared error least: all pairs of a coarse grid, then closer around the best."""
    looked_at, weights = _thinned(values)
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    if symmetric:
        low, high = 0.0, max(-low, high)

    def error(parts: tuple[float, ...]) -> float:
        scale, zero = _spread(parts[0] * low, parts[1] * high, symmetric, lowest, highest)
        rounded = IntegerGrid(scale, zero, lowest, highest).rounded(looked_at)
        return float((weights * (rounded - looked_at) ** 2).sum())

    coarse = [at / _CANDIDATES for at in range(1, _CANDIDATES + 1)]
    best: tuple[float, ...] = min(itertools.product(coarse if low else [0.0], coarse if high else [0.0]), key=error)
    width = 1 / _CANDIDATES
    for _ in range(_ROUNDS):
        steps = [width * at / 4 for at in range(-4, 5)]
        near = (
            [min(1.0, max(0.0, part + step)) for step in steps] if end else [0.0]
            for part, end in zip(best, (low, high), strict=True)
        )
        best, width = min(itertools.product(*near), key=error), width / 4
    return best[0] * low, best[1] * high


def _thinned(values: Any) -> tuple[Any, Any]:
    """Values that stand for all, and how many each stands for: the extremes themselves, of others a regular part."""
    import torch

    if values.numel() <= 2 * _SEARCHED:
        return values, torch.ones(values.numel())
    ordered = values.sort().values
    inner = ordered[_EXTREMES:-_EXTREMES]
    step = -(-inner.numel() // _SEARCHED)
    some = inner[step // 2 :: step]
    ends = torch.cat([ordered[:_EXTREMES], ordered[-_EXTREMES:]])
    weights = torch.ones(len(ends) + len(some))
    weights[len(ends) :] = inner.numel() / len(some)
    return torch.cat([ends, some]), weights
