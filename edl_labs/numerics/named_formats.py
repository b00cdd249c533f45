"""The formats of deep learning by name: FP64 to E2M1, and which torch dtype each one is."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import UsageError
from edl_labs.numerics._float_format import FloatFormat

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
            f"no format is called {str(name)[:40]!r}",
            why=f"the known ones are {', '.join(FORMATS)}",
            next="use one of these, a torch dtype, or FloatFormat(name, exponent_bits=..., mantissa_bits=...)",
        )
    return found


def torch_dtype(fmt: Any) -> Any:
    """The torch dtype of a format; UsageError where torch has none (tf32, e2m1fn, formats of your own)."""
    fmt = float_format(fmt)
    name = _DTYPES.get(fmt.name) if FORMATS.get(fmt.name) == fmt else None
    if name is None:
        raise UsageError(
            f"torch has no dtype for {fmt.name}",
            why="TF32 exists only inside tensor cores, 4-bit values only in pairs, and your own formats only here",
            next=f"emulate it: {fmt.name}.round(x)",
        )
    import torch

    return getattr(torch, name)
