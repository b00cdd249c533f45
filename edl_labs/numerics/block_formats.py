"""`BlockFormat`: values in few bits that share a scale block by block, as in OCP's MX formats and NVIDIA's NVFP4.

>>> from edl_labs.numerics import MXFP4
>>> MXFP4.round([0.1, 1.0, -7.0])
array([ 0.,  1., -6.])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from edl_labs.errors import UsageError
from edl_labs.numerics import arrays
from edl_labs.numerics._float_format import E2M1FN, E4M3FN, E8M0FNU, FloatFormat, Many

if TYPE_CHECKING:
    import torch

# From here up the quotient 1 / tensor scale / block scale, at most 2^120 * 2^6, is finite in fp32.
_LEAST_TENSOR_SCALE = 2.0**-120


@dataclass(frozen=True)
class BlockFormat:
    """Elements of one format, with a scale for each `block` neighbours along the last dimension.

    With `scale` E8M0 a scale is a power of two: 2**(floor(log2(amax)) - the element's `max_exponent`), where amax is
    the block's largest magnitude (OCP Microscaling Formats 1.0, section 6.3). With `scale` E4M3 there is also one
    fp32 scale for the whole tensor, its amax / (448 * the element's `largest`), as in NVFP4. A block's scale is then
    amax / (`largest` * the tensor's scale), from 2**-6 (the smallest normal E4M3, torchao's limit too) to 448.

    >>> from edl_labs.numerics import MXFP8, NVFP4
    >>> MXFP8.bytes_per_value, NVFP4.bytes_per_value
    (1.03125, 0.5625)
    """

    name: str
    element: FloatFormat
    block: int
    scale: FloatFormat = E8M0FNU

    def __post_init__(self) -> None:
        if type(self.block) is not int or self.block < 1:
            raise UsageError(
                f"a block cannot have {self.block!r} values",
                why="a block needs at least one value, because the values of a block share a scale",
                next="pass a whole number of 1 or more",
            )
        if self.scale not in (E8M0FNU, E4M3FN):
            raise UsageError(
                f"{self.name} cannot have scales in {getattr(self.scale, 'name', self.scale)!r}",
                why="scales can follow the rules of the MX formats (E8M0) or of NVFP4 (E4M3)",
                next="pass scale=E8M0FNU or scale=E4M3FN",
            )

    @property
    def bytes_per_value(self) -> float:
        """Bytes of an element and its share of the block's scale, in full blocks; without the scale of the tensor."""
        return (self.element.bits + self.scale.bits / self.block) / 8

    def quantize(self, values: Any) -> QuantizedBlocks:
        """The codes and scales of values of any shape, from fp32; a last block may be short.

        What rounds to more than the element's largest value becomes that value. NaN, inf and what is beyond fp32 raise
        UsageError: they would spoil the scale for their whole block.
        """
        given = _finite_fp32(values)
        blocks = _in_blocks(given, self.block)
        largest = np.abs(blocks).max(axis=-1)
        if self.scale == E8M0FNU:
            tensor_scale, scales = 1.0, self._power_of_two(largest)
            scaled = blocks / self.scale.decode(scales)[..., None]  # in fp64, where this is exact
        else:
            tensor_scale, scales, inverse = self._two_levels(largest)
            scaled = (blocks * inverse[..., None]).astype(np.float64)
        codes = self.element.encode(scaled, saturate=True)
        codes = codes.reshape(*given.shape[:-1], -1)[..., : given.shape[-1]]
        return QuantizedBlocks(self, codes, scales, tensor_scale)

    @overload
    def round(self, values: torch.Tensor) -> torch.Tensor: ...
    @overload
    def round(self, values: Many) -> np.ndarray: ...
    def round(self, values: Any) -> Any:
        """The values after quantizing and dequantizing: an fp64 array, or for a tensor one of fp32 or wider.

        >>> from edl_labs.numerics import MXFP8
        >>> MXFP8.round([449.0, 500.0, 1.0])
        array([448., 448.,   1.])
        """
        return arrays.like(values, self.quantize(values).dequantize(), wide=False)

    def _power_of_two(self, largest: np.ndarray) -> np.ndarray:
        exponents = np.frexp(largest.astype(np.float64))[1] - 1 - self.element.max_exponent
        exponents = np.where(largest > 0, exponents, self.scale.min_exponent)
        exponents = np.clip(exponents, self.scale.min_exponent, self.scale.max_exponent)
        return self.scale.encode(np.ldexp(1.0, exponents))

    def _two_levels(self, largest: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The tensor's scale, the codes of the blocks' scales, and one over both: fp32 in torchao's order."""
        one, end = np.float32(1), np.float32(self.element.largest)
        of_tensor = np.float32(largest.max() / np.float32(self.scale.largest * self.element.largest))
        of_tensor = max(of_tensor, np.float32(_LEAST_TENSOR_SCALE))
        wanted = np.clip(largest / end / of_tensor, self.scale.smallest_normal, self.scale.largest)
        scales = self.scale.encode(wanted)
        inverse = one / of_tensor / self.scale.decode(scales).astype(np.float32)
        return float(of_tensor), scales, inverse


@dataclass(frozen=True, eq=False)
class QuantizedBlocks:
    """What a `BlockFormat` stores of a tensor.

    `codes` has the shape of the values and a bit pattern of `format.element` for each, one in a byte. `scales` has the
    bit patterns of `format.scale`, one for each block of the last dimension. `tensor_scale` is 1 in formats without it.
    """

    format: BlockFormat
    codes: np.ndarray
    scales: np.ndarray
    tensor_scale: float = 1.0

    def dequantize(self) -> np.ndarray:
        """The values that the codes stand for, exact in fp64; NaN in a block whose scale is NaN (the MX rule)."""
        scales = np.repeat(self.scale_values(), self.format.block, axis=-1)[..., : self.codes.shape[-1]]
        return self.format.element.decode(self.codes) * scales

    def scale_values(self) -> np.ndarray:
        """What an element of each block is multiplied by, with the scale of the tensor."""
        return self.format.scale.decode(self.scales) * self.tensor_scale

    @property
    def nbytes(self) -> int:
        """Bytes with the codes packed along the last dimension, the scales, and 4 for a scale of the tensor."""
        rows = math.prod(self.codes.shape[:-1])
        packed = rows * math.ceil(self.codes.shape[-1] * self.format.element.bits / 8)
        return packed + self.scales.size + (0 if self.format.scale == E8M0FNU else 4)

    def relative_error(self, values: Any) -> float:
        """The root mean square of the error over that of `values`, which were quantized; 0 where all are zero.

        >>> from edl_labs.numerics import MXFP8
        >>> round(MXFP8.quantize([1.0, 1.06]).relative_error([1.0, 1.06]), 3)
        0.041
        """
        given = arrays.float64(values)
        size = float(np.sqrt(np.mean(given**2)))
        return float(np.sqrt(np.mean((self.dequantize() - given) ** 2))) / size if size else 0.0


def _finite_fp32(values: Any) -> np.ndarray:
    given = arrays.float64(values)
    if given.ndim == 0 or given.size == 0:
        raise UsageError(
            f"values of shape {given.shape} cannot be divided into blocks",
            why="a block consists of neighbouring values along the last dimension",
            next="pass a list, an array or a tensor with at least one value",
        )
    with np.errstate(over="ignore"):
        given = given.astype(np.float32)
    lost = int(np.count_nonzero(~np.isfinite(given)))
    if lost:
        raise UsageError(
            f"{lost} of {given.size} values are NaN, inf or outside the range of fp32",
            why="a single such value makes the scale of its whole block useless",
            next="find where they come from, or clip the values first",
        )
    return given


def _in_blocks(given: np.ndarray, block: int) -> np.ndarray:
    """(..., blocks, block): a short last block is filled with zeros, which change no scale."""
    missing = -given.shape[-1] % block
    padded = np.pad(given, [(0, 0)] * (given.ndim - 1) + [(0, missing)])
    return padded.reshape(*given.shape[:-1], -1, block)


# OCP Microscaling Formats (MX) 1.0, 2023: blocks of 32.
MXFP8 = BlockFormat("mxfp8", E4M3FN, block=32)
MXFP4 = BlockFormat("mxfp4", E2M1FN, block=32)
# NVIDIA, "Pretraining Large Language Models with NVFP4", 2025.
NVFP4 = BlockFormat("nvfp4", E2M1FN, block=16, scale=E4M3FN)
