"""Peak arithmetic: rates that follow from counts and clocks, so that no datasheet number has to be believed."""

from __future__ import annotations

import math

from edl_labs.errors import EdlError

# Transfers per second and lane. Generations 3 to 5 encode 128 bits in 130; 6 sends 242 bytes of 256 (PCI-SIG).
_PCIE_TRANSFER_PER_S = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9}
_PCIE_EFFICIENCY = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}

_DTYPE_NAMES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
_KNOWN = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")


def flop_rate(*, sm_count: int, fma_per_clock_per_sm: float, clock_hz: float) -> float:
    """Peak FLOP/s of a processor: SMs x multiply-adds per clock and SM x 2 x clock (deck [002]).

    >>> round(flop_rate(sm_count=108, fma_per_clock_per_sm=1024, clock_hz=1.41e9) / 1e12, 2)
    311.87
    """
    for name, value in (
        ("sm_count", sm_count),
        ("fma_per_clock_per_sm", fma_per_clock_per_sm),
        ("clock_hz", clock_hz),
    ):
        if not (math.isfinite(value) and value > 0):
            raise EdlError(
                f"{name} is {value!r}",
                why="a peak rate is a product of three positive numbers",
                next="give the count per chip, per clock and SM, and the clock in Hz",
            )
    return sm_count * fma_per_clock_per_sm * 2 * clock_hz


def pcie_byte_per_s(generation: int, lanes: int = 16) -> float:
    """Peak bytes per second of a PCIe link in one direction, after line encoding.

    >>> round(pcie_byte_per_s(4) / 1e9, 2)
    31.51
    """
    if generation not in _PCIE_TRANSFER_PER_S or lanes not in (1, 2, 4, 8, 16, 32):
        raise EdlError(
            f"no PCIe generation {generation!r} with {lanes!r} lanes",
            why="generations 1 to 6 exist, with 1, 2, 4, 8, 16 or 32 lanes",
            next="look the link up in the datasheet of the machine, or run `nvidia-smi -q`",
        )
    return _PCIE_TRANSFER_PER_S[generation] * _PCIE_EFFICIENCY[generation] * lanes / 8


def dtype_name(dtype: object) -> str:
    """The table's short name of a dtype: 'fp16' for 'float16', 'half' or torch.float16.

    >>> dtype_name("torch.bfloat16")
    'bf16'
    """
    text = str(dtype).removeprefix("torch.").lower()
    short = _DTYPE_NAMES.get(text, text)
    if short not in _KNOWN:
        raise EdlError(
            f"no dtype is called {str(dtype)[:40]!r} here",
            why=f"the hardware table knows {', '.join(_KNOWN)}",
            next="use one of those, or a torch dtype",
        )
    return short
