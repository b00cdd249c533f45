"""Loops on a traced VirtualGPU, with causes to switch on."""

from __future__ import annotations

from typing import Any

from edl_labs.trace import Trace, TracedGPU

QUIET = {"context_init_s": 0.0, "module_load_s": 0.0}


def traced(**causes: float) -> Trace:
    """The trace of `run`."""
    return run(**causes).trace()  # type: ignore[arg-type]


def run(
    *,
    steps: int = 6,
    kernels: int = 20,
    kernel_s: float = 50e-6,
    reads: int = 0,
    data_s: float = 0.0,
    host_s: float = 0.0,
) -> TracedGPU:
    """A loop of `kernels` kernels a step, `reads` of which are followed by a read of the loss."""
    gpu = TracedGPU("A100-80GB", **QUIET)
    loss = gpu.empty(4)
    for _ in range(steps):
        with gpu.step():
            if data_s:
                gpu.data_wait(data_s)
            if host_s:
                gpu.host_work(host_s)
            for number in range(kernels):
                gpu.launch("gemm", duration_s=kernel_s)
                if reads and number % (kernels // reads) == 0:
                    gpu.item(loss)
    return gpu


def held_then_busy(gpu: TracedGPU, state: Any) -> None:
    """A step that waits for its kernel, and then has as much of its own to do."""
    gpu.launch("gemm", duration_s=5e-3)
    gpu.synchronize()
    gpu.host_work(5e-3)
