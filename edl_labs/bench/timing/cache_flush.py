"""Cold caches: how large the last-level cache is, and a call that clears it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from edl_labs.bench.timing.reachable_objects import virtual_gpu
from edl_labs.clock import Clock, device_behind

_UNKNOWN_LLC_BYTES = 32 << 20  # the size of common desktop processors
_UNKNOWN_L2_BYTES = 64 << 20  # more than most GPUs have (A100: 40 MB, H100: 50 MB)
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def llc_bytes(clock: Clock) -> int:
    """Bytes of the last-level cache that work timed on `clock` goes through: the GPU's L2, or the processor's."""
    gpu = virtual_gpu([clock])
    if gpu is not None:
        return int(gpu.machine.l2_bytes)
    device = device_behind(clock)
    return _l2_bytes(device) if device else host_llc_bytes()


def make_flush(clock: Clock) -> Callable[[], object]:
    """A function that clears the last-level cache by accessing more memory than fits into it."""
    gpu = virtual_gpu([clock])
    if gpu is not None:
        return _virtual_flush(gpu)
    device = device_behind(clock)
    return _device_flush(device, clock) if device else _host_flush()


@cache
def host_llc_bytes(root: str = "/sys/devices/system/cpu/cpu0/cache") -> int:
    """Bytes of the processor's largest cache, as Linux reports it; 32 MB where it does not."""
    sizes = []
    for path in Path(root).glob("index*/size"):
        text = path.read_text(encoding="ascii", errors="replace").strip()
        number, unit = text.rstrip("KMG"), text[-1:]
        if number.isdigit():
            sizes.append(int(number) * _SIZES.get(unit, 1))
    return max(sizes, default=_UNKNOWN_LLC_BYTES)


def _l2_bytes(device: str) -> int:
    import torch

    if not device.startswith("cuda"):
        return _UNKNOWN_L2_BYTES
    return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", _UNKNOWN_L2_BYTES))


def _host_flush() -> Callable[[], object]:
    import numpy as np

    # Written, not only read: a modified line must leave the caller's lines no way back, and read pages may share one
    # zero.
    lines = np.ones(3 * host_llc_bytes() // 16, dtype=np.int64)
    return lambda: np.add(lines, 1, out=lines)


def _device_flush(device: str, clock: Clock) -> Callable[[], object]:
    import torch

    lines: Any = torch.ones(2 * _l2_bytes(device) // 4, dtype=torch.int32, device=device)

    def flush() -> None:
        lines.add_(1)
        clock.synchronize()

    return flush


def _virtual_flush(gpu: Any) -> Callable[[], object]:
    if not gpu.machine.l2_bytes:
        return lambda: None
    lines = gpu.empty(2 * int(gpu.machine.l2_bytes), name="cache flush")

    def flush() -> None:
        gpu.launch("cache flush", moved_bytes=lines.nbytes, writes=lines)
        gpu.synchronize()

    return flush
