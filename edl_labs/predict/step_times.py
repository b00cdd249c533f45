"""A step in time: a host that issues kernels one by one, a stream that runs them, and what the time went into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edl_labs.predict.kernel_times import KernelTime, KernelTimer
from edl_labs.predict.step_kernels import StepKernel

LIMITERS = ("compute", "memory", "launch", "communication")
# Kinds of work that are known to different degrees: products, convolutions, attention, all that only moves bytes.
WORKS = ("product", "convolution", "attention", "bytes", "launch", "communication")
_LAUNCH_S = 4e-6  # from the host's call to the kernel's start on an idle stream: cudaLaunchKernel and the queue


@dataclass
class PlayedStep:
    """Seconds by phase, by limiter and by kind of work; `times` go with the kernels.

    Launch: the stream waits for the host.
    """

    total_s: float
    host_s: float
    phases: dict[str, float]
    limits: dict[str, float]
    works: dict[str, float]
    times: list[KernelTime]
    starts: list[float]


def play(
    kernels: Sequence[StepKernel], timer: KernelTimer, *, graphed: bool = False, accumulate: int = 1
) -> PlayedStep:
    """One step: the stream runs each kernel when it is free and the kernel has been issued.

    With `accumulate` the passes run so many times for one update.
    """
    e, card = timer.efficiencies, timer.card
    op_s = card.host_op_s or e.host_s[card.family]
    if timer.compiled:
        op_s *= e.host_compiled
    if graphed:
        op_s = e.graph_launch_s
    host = device = 0.0
    phases: dict[str, float] = {}
    limits = dict.fromkeys(LIMITERS, 0.0)
    works = dict.fromkeys(WORKS, 0.0)
    times, starts = [], []
    for kernel in kernels:
        time = timer.time(kernel)
        back = kernel.phase == "backward" and not timer.compiled and not graphed
        host += op_s * (e.host_backward if back else 1.0)
        start = max(device, host + (_LAUNCH_S if device < host else 0.0))
        end = start + time.seconds
        weight = 1 if kernel.phase == "optimizer" else accumulate
        limits["launch"] += (start - device) * weight
        limits[time.limiter] += time.seconds * weight
        works["launch"] += (start - device) * weight
        works[_work(kernel)] += time.seconds * weight
        phases[kernel.phase] = phases.get(kernel.phase, 0.0) + (end - device) * weight
        device = end
        times.append(time)
        starts.append(start)
    return PlayedStep(sum(phases.values()), host, phases, limits, works, times, starts)


def _work(kernel: StepKernel) -> str:
    if kernel.attention is not None:
        return "attention"
    if kernel.product is not None:
        return "product" if kernel.product.way == "gemm" else "convolution"
    return "bytes"
