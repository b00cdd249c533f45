"""Loops of PyTorch with a cause injected on purpose: on the CPU, and on a GPU where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from edl_labs.trace.loops import TorchLoop


@dataclass(frozen=True)
class Injected:
    """A loop on this machine with the cause that was put into it."""

    cause: str
    loop: TorchLoop


def injected_loops(device: str = "cpu", *, size: int = 256) -> tuple[Injected, ...]:
    """A loop for each cause that a device can have; `size` is the width of its matrices."""
    makers = _CPU if device.startswith("cpu") else {**_CPU, **_GPU}
    return tuple(Injected(cause, make(device, size)) for cause, make in makers.items())


def _matrices(device: str, size: int) -> tuple[Any, Any]:
    import torch

    return torch.randn(size, size, device=device), torch.randn(size, size, device=device)


def _compute(device: str, size: int) -> TorchLoop:
    left, right = _matrices(device, 4 * size)

    def step() -> None:
        for _ in range(4):
            left @ right

    return TorchLoop(step, device=device, name=f"compute on {device}")


def _launch(device: str, size: int) -> TorchLoop:
    small = _matrices(device, 2)[0]

    def step() -> None:
        result = small
        for _ in range(400):
            result = result + 1.0

    return TorchLoop(step, device=device, name=f"launch on {device}")


def _data(device: str, size: int) -> TorchLoop:
    # Too small for a second thread: waking threads on a busy machine would outlast the wait.
    left, right = _matrices(device, max(size // 8, 1))

    class Slow:
        def __iter__(self) -> Iterator[Any]:
            for _ in range(16):
                time.sleep(0.01)
                yield left

    return TorchLoop(lambda batch: batch + right, Slow(), device=device, name=f"data on {device}")


def _host(device: str, size: int) -> TorchLoop:
    left, right = _matrices(device, max(size // 8, 1))

    def step() -> None:
        sum(number * number for number in range(100_000))
        left + right

    return TorchLoop(step, device=device, without={"host": lambda: left + right}, name=f"host on {device}")


def _sync(device: str, size: int) -> TorchLoop:
    left, right = _matrices(device, size)

    def step() -> None:
        for _ in range(100):
            (left @ right).sum().item()

    return TorchLoop(step, device=device, name=f"sync on {device}")


def _copy(device: str, size: int) -> TorchLoop:
    import torch

    left, right = _matrices(device, size)
    batch = torch.randn(8_000_000)

    def step() -> None:
        batch.to(device)
        left @ right

    return TorchLoop(step, device=device, name=f"copy on {device}")


def _alloc(device: str, size: int) -> TorchLoop:
    import torch

    left, right = _matrices(device, size)

    def step() -> None:
        for _ in range(4):
            torch.empty(64_000_000, device=device)
            torch.cuda.empty_cache()
            left @ right

    return TorchLoop(step, device=device, name=f"alloc on {device}")


_CPU: dict[str, Callable[[str, int], TorchLoop]] = {
    "compute": _compute,
    "launch": _launch,
    "data": _data,
    "host": _host,
}
_GPU: dict[str, Callable[[str, int], TorchLoop]] = {"sync": _sync, "copy": _copy, "alloc": _alloc}
