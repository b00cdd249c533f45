"""Loops to diagnose: a value that can be recorded, timed, and run again without one of its causes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from edl_labs.trace.analysed_trace import AnalysedTrace, step_times_s
from edl_labs.trace.causes import ABLATIONS
from edl_labs.trace.gpu_without_cause import AblatedGPU
from edl_labs.trace.trace_table import Trace
from edl_labs.trace.traced_gpu import TracedGPU

Step = Callable[[TracedGPU, Any], None]
_WARM: dict[str, Any] = {"context_init_s": 0.0, "module_load_s": 0.0}


@runtime_checkable
class Loop(Protocol):
    """What `diagnose` and `ablate` need of a loop."""

    @property
    def name(self) -> str:
        """What the loop is called in reports."""

    def record(self, steps: int) -> Trace:
        """The trace of so many steps."""

    def times_s(self, steps: int, causes: tuple[str | None, ...]) -> dict[str | None, float]:
        """Seconds a step, unchanged (None) and without each cause, measured side by side."""

    def ablations(self) -> tuple[str, ...]:
        """The causes that this loop can run without."""


def _step_s(trace: Trace, *, skip: int) -> float:
    """Seconds a step; 0 where nothing but the cause left out took time."""
    times_s = step_times_s(AnalysedTrace(trace).step_bounds(skip=skip))
    # Sums of picoseconds in floats: the last digits are rounding.
    return round(sum(times_s) / len(times_s), 15)


def _nothing(gpu: TracedGPU) -> Any:
    return None


@dataclass(frozen=True)
class VirtualLoop:
    """A loop on a VirtualGPU: `setup(gpu)` once, then `step(gpu, state)` over and over.

    >>> def step(gpu, state):
    ...     gpu.data_wait(2e-3)
    ...     gpu.launch("gemm", duration_s=1e-3)
    >>> VirtualLoop(step).times_s(5, (None, "data"))
    {None: 0.002005, 'data': 0.001}
    """

    step: Step
    setup: Callable[[TracedGPU], Any] = _nothing
    machine: Any = "A100-80GB"
    name: str = "virtual loop"
    parameters: dict[str, Any] = field(default_factory=lambda: dict(_WARM))

    def record(self, steps: int) -> Trace:
        """The trace of so many steps, of a machine that is warm."""
        return self._run(TracedGPU(self.machine, **self.parameters), steps)

    def times_s(self, steps: int, causes: tuple[str | None, ...]) -> dict[str | None, float]:
        """Seconds a step in the steady state, exact."""
        found: dict[str | None, float] = {}
        for cause in causes:
            gpu = AblatedGPU(self.machine, without=cause, **self.parameters) if cause else self._gpu()
            found[cause] = _step_s(self._run(gpu, steps), skip=min(1, steps - 1))
        return found

    def ablations(self) -> tuple[str, ...]:
        """Every cause: the device itself leaves it out."""
        return tuple(ABLATIONS)

    def _gpu(self) -> TracedGPU:
        return TracedGPU(self.machine, **self.parameters)

    def _run(self, gpu: TracedGPU, steps: int) -> Trace:
        return self.run_on(gpu, steps).trace()

    def run_on(self, gpu: TracedGPU, steps: int) -> TracedGPU:
        """Run the loop on a device of yours; gives the device."""
        state = self.setup(gpu)
        for _ in range(steps):
            with gpu.step():
                self.step(gpu, state)
        return gpu
