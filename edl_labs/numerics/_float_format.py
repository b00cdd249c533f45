"""`FloatFormat`: any small floating-point format, bit by bit, on whole arrays at once; those of deep learning by name.

>>> from edl_labs.numerics import FP16
>>> FP16.round(0.1), FP16.encode(1.0), FP16.largest
(0.0999755859375, 15360, 65504.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.numerics import arrays

if TYPE_CHECKING:
    import torch

Many = np.ndarray | Sequence[Any]  # numbers or bit patterns, in any shape
SPECIALS = ("ieee", "fn", "fnuz", "finite")
_MOST_VALUES_BITS = 16  # 65,536 values: half a megabyte, and at once


@dataclass(frozen=True)
class FloatFormat:
    """A format of sign, exponent and mantissa bits, with its rule for what the last bit patterns mean.

    `bias` is 2**(exponent_bits - 1) - 1 unless given. `specials`: 'ieee' (the last exponent is inf and NaN), 'fn' (no
    inf, NaN is all ones), 'fnuz' (no inf, no minus zero: its pattern is NaN) or 'finite' (neither). With
    `subnormals=False` the exponent field 0 is a power of two like any other, so that there is no zero either (E8M0).
    Every value must be exact in fp64; that is what arrays of values are made of.

    >>> FloatFormat("tiny", exponent_bits=2, mantissa_bits=1, specials="finite", signed=False).all_values().tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int = None  # type: ignore[assignment]
    specials: str = "ieee"
    signed: bool = True
    subnormals: bool = True

    def __post_init__(self) -> None:
        if self.bias is None and isinstance(self.exponent_bits, int) and 1 <= self.exponent_bits <= 11:
            object.__setattr__(self, "bias", 2 ** (self.exponent_bits - 1) - 1)
        _check(self)

    # -- what the format is ------------------------------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """The number of bits of one value."""
        return int(self.signed) + self.exponent_bits + self.mantissa_bits

    @property
    def bit_dtype(self) -> np.dtype:
        """The smallest unsigned numpy dtype that holds a bit pattern."""
        return np.dtype(f"u{next(size for size in (1, 2, 4, 8) if 8 * size >= self.bits)}")

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal value."""
        return 1 - self.bias if self.subnormals else -self.bias

    @property
    def max_exponent(self) -> int:
        """The exponent of the largest finite value."""
        return (self._last_finite >> self.mantissa_bits) - self.bias

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return float(self.decode(self._last_finite))

    @property
    def smallest_normal(self) -> float:
        """The smallest value with a leading one."""
        return float(np.ldexp(1.0, self.min_exponent))

    @property
    def smallest_subnormal(self) -> float:
        """The smallest value above zero."""
        return float(np.ldexp(1.0, self.min_exponent - (self.mantissa_bits if self.subnormals else 0)))

    @property
    def eps(self) -> float:
        """The step from 1 to the next value, which is also the step's size relative to any power of two."""
        return float(np.ldexp(1.0, -self.mantissa_bits))

    @property
    def has_inf(self) -> bool:
        """Whether some bit pattern is infinity."""
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        """Whether some bit pattern is not a number."""
        return self.specials != "finite"

    def limits(self) -> dict[str, float]:
        """The four figures that data sheets give, by name."""
        names = ("largest", "smallest_normal", "smallest_subnormal", "eps")
        return {name: getattr(self, name) for name in names}

    # -- bits and values ---------------------------------------------------------------------------------------------

    @overload
    def fields(self, bits: int) -> tuple[int, int, int]: ...
    @overload
    def fields(self, bits: Many) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def fields(self, bits: Any) -> tuple[Any, Any, Any]:
        """Sign (0 or 1), exponent field and mantissa field of bit patterns, each of their shape."""
        given = arrays.patterns(bits, self.bits)
        sign = given >> np.uint64(self.bits - 1) if self.signed else np.zeros_like(given)
        exponent = (given >> np.uint64(self.mantissa_bits)) & np.uint64(2**self.exponent_bits - 1)
        mantissa = given & np.uint64(2**self.mantissa_bits - 1)
        return tuple(arrays.like(bits, part.astype(np.int64)) for part in (sign, exponent, mantissa))

    @overload
    def decode(self, bits: int) -> float: ...
    @overload
    def decode(self, bits: torch.Tensor) -> torch.Tensor: ...
    @overload
    def decode(self, bits: Many) -> np.ndarray: ...
    def decode(self, bits: Any) -> Any:
        """The fp64 values of bit patterns: an array of their shape, a float for one pattern.

        >>> from edl_labs.numerics import E4M3FN
        >>> E4M3FN.decode([0b0_1111_110, 0b0_0000_001])
        array([4.480000e+02, 1.953125e-03])
        """
        given = arrays.patterns(bits, self.bits)
        sign, field, mantissa = self.fields(given)
        leading = (field > 0) if self.subnormals else np.ones_like(field, dtype=bool)
        exponent = np.where(leading, field - self.bias, self.min_exponent)
        significand = (mantissa + np.where(leading, 2**self.mantissa_bits, 0)).astype(np.float64)
        values = np.ldexp(significand, exponent - self.mantissa_bits)
        magnitude = given.astype(np.uint64) & np.uint64(self._magnitude_mask)
        values = np.where(magnitude > np.uint64(self._last_finite), self._beyond(magnitude), values)
        values = np.where(sign == 1, -values, values)
        if self.specials == "fnuz":
            values = np.where(given == np.uint64(self._nan), np.nan, values)
        return arrays.like(bits, values)

    @overload
    def encode(self, values: float, *, saturate: bool = False) -> int: ...
    @overload
    def encode(self, values: Many | torch.Tensor, *, saturate: bool = False) -> np.ndarray: ...
    def encode(self, values: Any, *, saturate: bool = False) -> Any:
        """The bit patterns of values after nearest-even rounding: an unsigned array, an int for one value.

        What rounds to more than the largest value becomes inf, NaN where there is no inf, and the largest value where
        there is neither. With `saturate` it becomes the largest value, and inf too: the two modes of OCP's OFP8.
        Casts to e4m3fn in torch do the first up to 2.12 and the second since (pytorch #178817).
        """
        given = arrays.float64(values)
        magnitude, nan = self._rounded_magnitude(np.abs(given), saturate=saturate), np.isnan(given)
        bits = np.where(nan, 0, magnitude).astype(np.uint64)
        negative = np.signbit(given) & (bits > 0 if self.specials == "fnuz" else True)
        if self.signed:
            bits |= negative.astype(np.uint64) << np.uint64(self.bits - 1)
        if self.has_nan:
            is_nan = nan | (magnitude > self._last_finite if self.specials in ("fn", "fnuz") else False)
            signed_nan = np.uint64(self._nan) | (bits & ~np.uint64(self._magnitude_mask))
            bits = np.where(is_nan, signed_nan, bits)
        elif nan.any():
            raise UsageError(
                f"{self.name} has no NaN", why="every one of its bit patterns is a number", next="round a finite value"
            )
        return arrays.like(values, bits.astype(self.bit_dtype))

    @overload
    def round(self, values: float, *, saturate: bool = False) -> float: ...
    @overload
    def round(self, values: torch.Tensor, *, saturate: bool = False) -> torch.Tensor: ...
    @overload
    def round(self, values: Many, *, saturate: bool = False) -> np.ndarray: ...
    def round(self, values: Any, *, saturate: bool = False) -> Any:
        """The nearest values of the format, ties to even, in the kind that was given: float, array or torch tensor.

        Arrays come back as fp64, tensors as fp32 or wider, on their device and outside autograd.

        >>> from edl_labs.numerics import FP16, BF16
        >>> FP16.round([2049.0, 65519.0, 65520.0, 2**-25]), BF16.round(257.0)
        (array([ 2048., 65504.,    inf,     0.]), 256.0)
        """
        rounded = self.decode(np.asarray(self.encode(arrays.float64(values), saturate=saturate)))
        return arrays.like(values, np.asarray(rounded), wide=self.max_exponent > 127 or self.mantissa_bits > 23)

    @overload
    def ulp(self, values: float) -> float: ...
    @overload
    def ulp(self, values: torch.Tensor) -> torch.Tensor: ...
    @overload
    def ulp(self, values: Many) -> np.ndarray: ...
    def ulp(self, values: Any) -> Any:
        """The step between neighbours at each value: the weight of its last mantissa bit; NaN outside the range."""
        given = np.abs(arrays.float64(values))
        exponent = np.maximum(np.where(given > 0, np.frexp(given)[1] - 1, self.min_exponent), self.min_exponent)
        step = np.ldexp(1.0, exponent - self.mantissa_bits)
        return arrays.like(values, np.where(given <= self.largest, step, np.nan))

    def all_values(self) -> np.ndarray:
        """The values of all bit patterns, in the order of the patterns (formats of up to 16 bits)."""
        if self.bits > _MOST_VALUES_BITS:
            raise UsageError(
                f"{self.name} has 2^{self.bits} values, which are too many to list",
                why=f"values are listed only for formats of up to {_MOST_VALUES_BITS} bits",
                next="decode only the bit patterns that you need, or use a smaller format",
            )
        return self.decode(np.arange(2**self.bits, dtype=self.bit_dtype))

    def classify(self, values: Any) -> np.ndarray:
        """What becomes of each value: indices into `arrays.CLASSES` (zero, flushed, subnormal, normal, ...)."""
        given = np.abs(arrays.float64(values))
        magnitude = self._rounded_magnitude(given, saturate=False)
        finite = np.isfinite(given)
        became = np.full(given.shape, arrays.CLASSES.index("normal"))
        became[self.decode(np.minimum(magnitude, self._last_finite).astype(np.uint64)) < self.smallest_normal] = 2
        became[(magnitude == 0) & (self.subnormals)] = arrays.CLASSES.index("flushed")
        became[given == 0] = arrays.CLASSES.index("zero")
        became[finite & (given > self.largest) & self._too_large(given)] = arrays.CLASSES.index("overflowed")
        became[~finite] = arrays.CLASSES.index("nonfinite")
        return became

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _magnitude_mask(self) -> int:
        return int(2 ** (self.exponent_bits + self.mantissa_bits) - 1)

    @property
    def _last_finite(self) -> int:
        if self.specials == "ieee":
            return int((2**self.exponent_bits - 1) << self.mantissa_bits) - 1
        return self._magnitude_mask - (self.specials == "fn")

    @property
    def _nan(self) -> int:
        if self.specials == "ieee":  # the quiet NaN: the mantissa's highest bit
            return (self._last_finite + 1) | 1 << (self.mantissa_bits - 1)
        return 1 << (self.bits - 1) if self.specials == "fnuz" else self._magnitude_mask

    def _beyond(self, magnitude: np.ndarray) -> np.ndarray:
        first = self._last_finite + 1
        return np.where((magnitude == np.uint64(first)) & self.has_inf, np.inf, np.nan)

    def _nearest(self, magnitude: np.ndarray) -> np.ndarray:
        """Patterns of the nearest values above the format's end too, as if the exponent had no limit."""
        finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
        above_zero = np.where(finite > 0, np.frexp(finite)[1].astype(np.int64) - 1, self.min_exponent)
        exponent = np.maximum(above_zero, self.min_exponent)
        steps = np.rint(np.ldexp(finite, self.mantissa_bits - exponent)).astype(np.int64)
        first = 1 if self.subnormals else 0
        shifted = (exponent - self.min_exponent + first) << self.mantissa_bits
        return np.maximum(shifted + steps - 2**self.mantissa_bits, 0)

    def _too_large(self, magnitude: np.ndarray) -> np.ndarray:
        return (self._nearest(magnitude) > self._last_finite) | np.isinf(magnitude)

    def _rounded_magnitude(self, magnitude: np.ndarray, *, saturate: bool) -> np.ndarray:
        end = self._last_finite + (self.specials != "finite" and not saturate)
        return np.where(np.isinf(magnitude), end, np.minimum(self._nearest(magnitude), end))


def _check(fmt: FloatFormat) -> None:
    """UsageError for a format that cannot exist, or whose values fp64 does not hold exactly."""
    whole = all(type(v) is int for v in (fmt.exponent_bits, fmt.mantissa_bits, fmt.bias))
    if not whole or not (1 <= fmt.exponent_bits <= 11 and 0 <= fmt.mantissa_bits <= 52):
        raise _refused(
            fmt, "exponent_bits must be a whole number from 1 to 11, and mantissa_bits a whole number from 0 to 52"
        )
    if fmt.specials not in SPECIALS:
        raise _refused(fmt, f"specials must be one of {', '.join(SPECIALS)}")
    if fmt.specials == "ieee" and (fmt.mantissa_bits < 1 or fmt.exponent_bits < 2):
        raise _refused(
            fmt,
            "'ieee' reserves one exponent for inf and NaN, so it needs at least two exponent bits and one mantissa bit",
        )
    if fmt.specials == "fnuz" and not fmt.signed:
        raise _refused(fmt, "'fnuz' uses the bit pattern of minus zero for NaN, so it needs a sign")
    if fmt.specials == "fn" and fmt.exponent_bits + fmt.mantissa_bits < 2:
        raise _refused(fmt, "its only value would be NaN")
    lowest = fmt.min_exponent - (fmt.mantissa_bits if fmt.subnormals else 0)
    if lowest < -1074 or fmt.max_exponent > 1023:
        raise _refused(fmt, f"its values range from 2^{lowest} to 2^{fmt.max_exponent}, which exceeds fp64")


def _refused(fmt: FloatFormat, why: str) -> UsageError:
    return UsageError(
        f"{fmt.name!r} cannot have {fmt.exponent_bits!r} exponent and {fmt.mantissa_bits!r} mantissa bits",
        why=why,
        next='use, for example, FloatFormat("e5m3", exponent_bits=5, mantissa_bits=3)',
    )


FP64 = FloatFormat("fp64", exponent_bits=11, mantissa_bits=52)
FP32 = FloatFormat("fp32", exponent_bits=8, mantissa_bits=23)
# 19 bits, and only inside tensor cores: torch has no such dtype (deck [002]).
TF32 = FloatFormat("tf32", exponent_bits=8, mantissa_bits=10)
BF16 = FloatFormat("bf16", exponent_bits=8, mantissa_bits=7)
FP16 = FloatFormat("fp16", exponent_bits=5, mantissa_bits=10)
# OCP 8-bit Floating Point Specification (OFP8), 2023: E4M3 gives up inf for range.
E4M3FN = FloatFormat("e4m3fn", exponent_bits=4, mantissa_bits=3, specials="fn")
E5M2 = FloatFormat("e5m2", exponent_bits=5, mantissa_bits=2)
# AMD's first fp8 pair: one more in the bias, NaN where minus zero would be.
E4M3FNUZ = FloatFormat("e4m3fnuz", exponent_bits=4, mantissa_bits=3, bias=8, specials="fnuz")
E5M2FNUZ = FloatFormat("e5m2fnuz", exponent_bits=5, mantissa_bits=2, bias=16, specials="fnuz")
# OCP Microscaling Formats (MX), 2023: a block's shared scale, and its 4-bit elements.
E8M0FNU = FloatFormat("e8m0fnu", exponent_bits=8, mantissa_bits=0, specials="fn", signed=False, subnormals=False)
E2M1FN = FloatFormat("e2m1fn", exponent_bits=2, mantissa_bits=1, specials="finite")

FORMATS = {fmt.name: fmt for fmt in (FP64, FP32, TF32, BF16, FP16, E4M3FN, E5M2, E4M3FNUZ, E5M2FNUZ, E8M0FNU, E2M1FN)}
_DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    **{name: f"float8_{name}" for name in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")},
}
_ALIASES = {
    **{dtype: name for name, dtype in _DTYPES.items()},
    "double": "fp64",
    "float": "fp32",
    "half": "fp16",
    "e4m3": "e4m3fn",
    "e8m0": "e8m0fnu",
    "e2m1": "e2m1fn",
    "float4_e2m1fn_x2": "e2m1fn",
}


@checked_arguments()
def float_format(name: Any) -> FloatFormat:
    """The format called `name`: a `FloatFormat` itself, a name such as 'fp16', or a torch dtype.

    >>> float_format("torch.bfloat16").name, float_format("e4m3").largest
    ('bf16', 448.0)
    """
    if isinstance(name, FloatFormat):
        return name
    text = str(name).removeprefix("torch.").lower()
    found = FORMATS.get(_ALIASES.get(text, text))
    if found is None:
        raise UsageError(
            f"there is no format {str(name)[:40]!r}",
            why=f"the known ones are {', '.join(FORMATS)}",
            next="use one of these, a torch dtype, or FloatFormat(name, exponent_bits=..., mantissa_bits=...)",
        )
    return found


@checked_arguments()
def torch_dtype(fmt: Any) -> torch.dtype:
    """The torch dtype of a format; UsageError where torch has none (tf32, e2m1fn, formats of your own)."""
    fmt = float_format(fmt)
    name = _DTYPES.get(fmt.name) if FORMATS.get(fmt.name) == fmt else None
    if name is None:
        raise UsageError(
            f"torch has no dtype for {fmt.name}",
            why="TF32 exists only inside tensor cores, 4-bit values exist only in pairs, and your own formats exist "
            "only here",
            next=f"emulate it: {fmt.name}.round(x)",
        )
    import torch

    return getattr(torch, name)
