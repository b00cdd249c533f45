"""Whatever people give (number, list, numpy array, torch tensor) as exact fp64, and back in the kind it came in."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from edl_labs.errors import UsageError

CLASSES = ("zero", "flushed", "subnormal", "normal", "overflowed", "nonfinite")
_EXACT_INTEGER = 2**53  # fp64's 53 bits of significand


def is_tensor(value: Any) -> bool:
    """Whether `value` is a torch tensor, without loading torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def float64(values: Any) -> np.ndarray:
    """The values as an fp64 array; UsageError for what is not a real number, or not exact there."""
    if is_tensor(values):
        if values.is_complex():
            raise _not_numbers(values, "complex numbers have no single format")
        values = values.detach().cpu()
        values = (values if not values.is_floating_point() else values.double()).numpy()
    given = np.asarray(values)
    if given.dtype.kind not in "fiub":
        raise _not_numbers(values, f"numpy converts it to {given.dtype}")
    if given.dtype.kind in "iu" and given.size and max(abs(int(given.max())), abs(int(given.min()))) > _EXACT_INTEGER:
        raise _not_numbers(values, "whole numbers above 2^53 are not exact in fp64, to which all values are converted")
    if given.dtype.itemsize > 8 and np.any((given.astype(np.float64) != given) & (given == given)):
        raise _not_numbers(values, "some of them are not exact in fp64, to which all values are converted")
    return given.astype(np.float64)


def patterns(bits: Any, width: int) -> np.ndarray:
    """Bit patterns as uint64; UsageError when one is not a whole number of `width` bits."""
    if is_tensor(bits):
        bits = bits.detach().cpu().numpy()
    given = np.asarray(bits)
    if given.dtype.kind not in "iu" and given.size:
        raise _no_pattern(bits, width, f"numpy converts it to {given.dtype}")
    if given.size and (int(given.min()) < 0 or int(given.max()) >= 2**width):
        raise _no_pattern(bits, width, f"a value is outside 0 … {2**width - 1}")
    return given.astype(np.uint64)


def like(given: Any, result: np.ndarray, *, wide: bool = True) -> Any:
    """`result` in the kind of `given`: a Python number for a number, a tensor on its device for a tensor."""
    if is_tensor(given) and result.dtype.kind == "f":
        import torch

        narrow = not wide and given.dtype != torch.float64
        return (
            torch.from_numpy(np.ascontiguousarray(result))
            .reshape(given.shape)
            .to(device=given.device, dtype=torch.float32 if narrow else torch.float64)
        )
    if not is_tensor(given) and not isinstance(given, np.ndarray) and np.ndim(result) == 0:
        return np.asarray(result).item()
    return np.asarray(result)


def _not_numbers(values: Any, why: str) -> UsageError:
    return UsageError(
        f"these are not real numbers: {str(values)[:60]}", why=why, next="pass numbers, an array or a tensor"
    )


def _no_pattern(bits: Any, width: int, why: str) -> UsageError:
    return UsageError(
        f"this is not a pattern of {width} bits: {str(bits)[:60]}",
        why=why,
        next="pass whole numbers, such as 0b0_01111_0000000000",
    )
