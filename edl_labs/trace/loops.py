"""Loops to diagnose, on a VirtualGPU or of PyTorch: recorded, timed, and run again without one of their causes."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Protocol, runtime_checkable

from edl_labs.clock import Clock, clock_for
from edl_labs.errors import UsageError
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace.analysed_trace import AnalysedTrace, step_times_s
from edl_labs.trace.causes import ABLATIONS
from edl_labs.trace.samplers import LineSampler
from edl_labs.trace.trace_table import Trace
from edl_labs.trace.traced_gpu import AblatedGPU, TracedGPU

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


# Interleaved rounds: the median of five tolerates two that are disturbed.
_ROUNDS = 5


@dataclass(frozen=True)
class TorchLoop:
    """`step()` on this machine, or `step(batch)` for the batches of `data`, which are loaded under 'dataloader'.

    `without` gives the step to run for a cause that is to be left out; loops with `data` can also run on one cached
    batch, and loops on a GPU without host reads. Lines of your own code are sampled during the run;
    `with_stack=True` records each Python frame, at several times the cost of an operator.
    """

    step: Callable[..., Any]
    data: Iterable[Any] | None = None
    without: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    device: str = "cpu"
    name: str = "loop"
    warm_up: int = 3
    with_stack: bool = False
    clock: Clock | None = None

    def record(self, steps: int) -> Trace:
        """The trace of so many steps, after a few unrecorded ones."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            lines = self.record_to(path, steps)
            trace = read_trace(path)
        return replace(trace, meta={**trace.meta, "sampled_lines": lines})

    def record_to(self, path: Path, steps: int, *, record_shapes: bool = False) -> tuple[tuple[float, str], ...]:
        """Write the trace of so many steps as torch.profiler does; gives the sampled lines, with their times in it."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CPU]
        if not self.device.startswith("cpu"):
            found = recorded_by_profiler().get(self.device.split(":")[0])
            activities += [found] if found is not None else []
        run = self._runner(self.step, cached=False)
        for _ in range(self.warm_up):
            run()
        recorded = profile(activities=activities, with_stack=self.with_stack, record_shapes=record_shapes)
        with _without_stderr(), recorded as profiler, LineSampler() as sampler:
            begun_s = time.time()
            for number in range(steps):
                with torch.profiler.record_function(f"ProfilerStep#{number}"):
                    run()
            self._clock().synchronize()
        with _without_stderr():
            profiler.export_chrome_trace(str(path))
        first_s = read_trace(path).steps[0][0] - begun_s
        return tuple((first_s + seen_s, line) for seen_s, line in sampler.lines)

    def times_s(self, steps: int, causes: tuple[str | None, ...]) -> dict[str | None, float]:
        """The median seconds a step, over interleaved rounds, so that a drift of the machine meets all alike."""
        found: dict[str | None, list[float]] = {cause: [] for cause in causes}
        per_round = max(steps // _ROUNDS, 2)
        for cause in causes:
            self._timed_s(cause, self.warm_up)
        for number in range(_ROUNDS):
            for cause in causes if number % 2 else causes[::-1]:
                found[cause].append(self._timed_s(cause, per_round))
        return {cause: median(times) for cause, times in found.items()}

    def ablations(self) -> tuple[str, ...]:
        """The causes with a step of their own, and those that need none."""
        own = ["data"] if self.data is not None else []
        reads = [] if self.device.startswith("cpu") else ["sync"]
        return tuple(dict.fromkeys([*self.without, *own, *reads]))

    def _timed_s(self, cause: str | None, steps: int) -> float:
        step = self.without.get(cause, self.step) if cause else self.step
        run = self._runner(step, cached=cause == "data" and cause not in self.without)
        clock = self._clock()
        with no_host_reads() if cause == "sync" and cause not in self.without else _unchanged():
            clock.synchronize()
            begun = clock.now_s()
            for _ in range(steps):
                run()
            clock.synchronize()
            return (clock.now_s() - begun) / steps

    def _runner(self, step: Callable[..., Any], *, cached: bool) -> Callable[[], Any]:
        if self.data is None:
            return step
        from torch.profiler import record_function

        batches = _endless(self.data)
        if cached:
            batch = next(batches)
            return lambda: step(batch)

        def run() -> Any:
            with record_function("dataloader"):
                fresh = next(batches)
            return step(fresh)

        return run

    def _clock(self) -> Clock:
        return self.clock or clock_for(self.device)


def recorded_by_profiler() -> dict[str, Any]:
    """By kind of device, as torch names it, what torch.profiler records of it here; MPS is not among them."""
    from torch.profiler import ProfilerActivity, supported_activities

    kinds = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU"}
    here = supported_activities()
    found = {kind: getattr(ProfilerActivity, name, None) for kind, name in kinds.items()}
    return {kind: one for kind, one in found.items() if one is not None and one in here}


def _endless(data: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in data:
            empty = False
            yield batch
        if empty:
            raise UsageError(
                "the data is exhausted",
                why="the data yields no batch, or it is an iterator that has no items left",
                next="pass a list, a DataLoader, or another iterable that can restart",
            )


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Within it output to stderr, that of C libraries too, is dropped.

    Kineto writes remarks there, and text on stderr would cost a check cell its marks.
    """
    with warnings.catch_warnings(), tempfile.TemporaryFile() as sink:
        warnings.simplefilter("ignore")
        kept = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


@contextmanager
def _unchanged() -> Iterator[None]:
    yield


@contextmanager
def no_host_reads() -> Iterator[None]:
    """Within it, reads of a device's numbers wait for nothing: each line's give what they gave at the first call."""
    import sys

    import torch

    names = ("item", "tolist", "__bool__", "__float__", "__int__")
    kept = {name: getattr(torch.Tensor, name) for name in names}
    known: dict[tuple[Any, ...], Any] = {}

    def patched(name: str) -> Callable[[Any], Any]:
        def read(tensor: Any) -> Any:
            if tensor.device.type == "cpu":
                return kept[name](tensor)
            caller = sys._getframe(1)
            key = (name, caller.f_code.co_filename, caller.f_lineno, tensor.dtype, tuple(tensor.shape))
            if key not in known:
                known[key] = kept[name](tensor)
            return known[key]

        return read

    for name in names:
        setattr(torch.Tensor, name, patched(name))
    try:
        yield
    finally:
        for name, method in kept.items():
            setattr(torch.Tensor, name, method)
