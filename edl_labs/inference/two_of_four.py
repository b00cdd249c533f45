"""2:4 sparsity: of four neighbours along a row two are kept, and stored as their values and two bits of place each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError

if TYPE_CHECKING:
    import torch

_PLACES = 16  # groups of four places of two bits are in 16 bits, as tensor cores of 2-byte types read them


@checked_arguments()
def two_of_four_mask(weight: torch.Tensor | Sequence[Sequence[float]]) -> torch.Tensor:
    """Where a weight (outputs x inputs, as in `nn.Linear`) is kept: the two largest magnitudes of four inputs each.

    A tensor of bools. Of equal magnitudes the earlier ones are kept. UsageError where inputs are no multiple of four.
    """
    import torch

    groups = _checked(weight, multiple=4).abs().unflatten(1, (-1, 4))
    best = groups.argsort(dim=2, descending=True, stable=True)[..., :2]
    return torch.zeros_like(groups, dtype=torch.bool).scatter_(2, best, True).flatten(1)


@dataclass(frozen=True)
class TwoOfFour:
    """A weight of outputs x inputs: `values` (outputs x inputs / 2) and `places` (int16, outputs x inputs / 16).

    A group's two places (0 to 3, ascending) are four bits, and four groups fill an int16 from its lowest bits up.
    """

    values: torch.Tensor
    places: torch.Tensor

    @property
    def nbytes(self) -> int:
        """What both take in memory."""
        return sum(part.numel() * part.element_size() for part in (self.values, self.places))

    def dense(self) -> torch.Tensor:
        """The weight with its zeros."""
        import torch

        shifts = torch.arange(0, _PLACES, 2)
        bits = (self.places.to(torch.int32).unsqueeze(2) >> shifts) & 3
        groups = torch.zeros(len(self.values), self.values.shape[1] // 2, 4, dtype=self.values.dtype)
        at = bits.flatten(1).unflatten(1, (-1, 2)).to(torch.int64)
        return groups.scatter_(2, at, self.values.unflatten(1, (-1, 2))).flatten(1)


@checked_arguments()
def pack_two_of_four(weight: torch.Tensor | Sequence[Sequence[float]]) -> TwoOfFour:
    """A weight's kept half, two of each four inputs: what `two_of_four_mask` keeps, whatever the others are.

    Inputs must be a multiple of 16; else UsageError. A pruned weight comes back from `dense()` as it was.

    >>> import torch
    >>> pack_two_of_four(torch.ones(1, 16, dtype=torch.float16)).nbytes
    18
    """
    import torch

    dense = _checked(weight, multiple=_PLACES)
    kept = two_of_four_mask(dense)
    values = dense[kept].view(len(dense), -1)
    places = kept.nonzero()[:, 1].view(len(dense), -1) % 4
    shifts = torch.arange(0, _PLACES, 2)
    words = (places.unflatten(1, (-1, 8)) << shifts).sum(2)
    return TwoOfFour(values, words.to(torch.int16))


def _checked(weight: Any, *, multiple: int) -> torch.Tensor:
    import torch

    weight = torch.as_tensor(weight).detach()
    if weight.ndim != 2 or weight.shape[1] % multiple or not weight.numel():
        raise UsageError(
            f"a weight cannot have the shape {tuple(weight.shape)}",
            why=f"a weight has the shape outputs × inputs, and the number of inputs must be a multiple of {multiple}",
            next="reshape the kernel of a convolution to outputs × inputs, and pad the inputs to such a multiple",
        )
    return weight
