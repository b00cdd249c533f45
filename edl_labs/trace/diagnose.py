"""All that a trace tells about a loop, as one report: shares, gains, habits, and pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.trace.ablate import Ablation
from edl_labs.trace.antipatterns import Finding, antipatterns
from edl_labs.trace.attribute import Attribution, attribute
from edl_labs.trace.loops import Loop, VirtualLoop
from edl_labs.trace.reader import read_trace
from edl_labs.trace.table import Trace
from edl_labs.trace.what_if import WhatIf, most_to_gain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICTS = {
    "compute": ("GPU-bound", "the device computes most of the time: better kernels, lower precision, a smaller model"),
    "communication": ("communication-bound", "overlap collectives with the backward pass, or send less"),
    "copy": ("copy-bound", "pin memory, copy with non_blocking=True in a side stream, send smaller types"),
    "launch": ("launch-bound", "torch.compile or CUDA graphs, fused optimisers, larger batches"),
    "sync": ("synchronisation-bound", "keep numbers on the device; read them every some hundred steps"),
    "data": ("data-bound", "more workers, prefetching, cheaper decoding, data prepared offline"),
    "alloc": ("allocation-bound", "allocate once, pad to few sizes, drop empty_cache()"),
    "host": ("host-bound", "move work out of the loop's Python, or behind the launches"),
}
# On a CPU nothing runs beside the host: the same causes in other words.
_ON_CPU = {
    "compute": ("compute-bound", "the operators compute most of the time: faster operators, fewer FLOPs, more cores"),
    "launch": ("overhead-bound", "operators are too small: batch them, fuse them, torch.compile"),
}


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found: `shares` by cause, `gains` predicted (best first), `ablations` run, `findings`.

    Notebooks show it as HTML with pictures; `text()`, `html()`, `figure()` and `to_json()` give each form.
    """

    name: str
    attribution: Attribution
    gains: tuple[WhatIf, ...]
    ablations: tuple[Ablation, ...]
    findings: tuple[Finding, ...]
    trace: Trace = field(repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """The dominant cause in words: 'launch-bound'."""
        return self.advice[0]

    @property
    def advice(self) -> tuple[str, str]:
        """The verdict and what usually helps."""
        cause = self.attribution.dominant
        return VERDICTS[cause] if self.attribution.on_device else _ON_CPU.get(cause, VERDICTS[cause])

    @property
    def shares(self) -> dict[str, float]:
        """By cause its share of wall time."""
        return dict(self.attribution.shares)

    def text(self) -> str:
        """The report as plain text."""
        from edl_labs.trace.report import as_text

        return as_text(self)

    def html(self) -> str:
        """The report as HTML, its pictures inside."""
        from edl_labs.ui.diagnosis import as_html

        return as_html(self)

    def figure(self) -> Figure:
        """Timeline, shares, flame graph of self time, and the depth of the launch queue."""
        from edl_labs.plots.trace import draw_diagnosis

        return draw_diagnosis(self)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "schema": 1,
            "name": self.name,
            "verdict": self.verdict,
            "attribution": self.attribution.to_json(),
            "gains": [gain.to_json() for gain in self.gains],
            "ablations": [ablation.to_json() for ablation in self.ablations],
            "findings": [finding.to_json() for finding in self.findings],
        }

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": self.text(), "text/html": self.html()}


def diagnose(loop: Any, *, steps: int = 12, skip: int | None = None, verify: int = 1) -> Diagnosis:
    """Where a loop's time goes, what mending each cause would gain, and which habits to drop.

    `loop` is a VirtualLoop, a TorchLoop, a step function (with arguments `gpu, state` it runs on a VirtualGPU, without
    any on this machine), a Trace, or a trace file. The best `verify` gains are tried by running the loop without the
    cause, where the loop can.
    """
    trace, running = _recorded(loop, steps)
    first = (1 if len(trace.steps) >= 3 else 0) if skip is None else skip
    gains = most_to_gain(trace, skip=first)
    return Diagnosis(
        name=running.name if running else (Path(loop).name if isinstance(loop, (str, os.PathLike)) else "trace"),
        attribution=attribute(trace, skip=first),
        gains=gains,
        ablations=tuple(_verified(running, gains, steps, verify)) if running else (),
        findings=antipatterns(trace, skip=first),
        trace=trace,
    )


def _recorded(loop: Any, steps: int) -> tuple[Trace, Loop | None]:
    if isinstance(loop, Trace):
        return loop, None
    if isinstance(loop, (str, os.PathLike)):
        return read_trace(loop), None
    running = as_loop(loop)
    return running.record(steps), running


def as_loop(loop: Any) -> Loop:
    """A loop from a loop or a step function; UsageError for anything else."""
    if isinstance(loop, Loop):
        return loop
    if not callable(loop):
        raise UsageError(
            f"cannot diagnose {type(loop).__name__}",
            why="it is no loop, no step function, no trace and no trace file",
            next="give diagnose() a VirtualLoop, a TorchLoop, a function that does one step, or a trace",
        )
    return _of_function(loop)


def _of_function(step: Callable[..., Any]) -> Loop:
    import inspect

    wanted = len(inspect.signature(step).parameters)
    name = getattr(step, "__name__", "loop")
    if wanted == 2:
        return VirtualLoop(step, name=name)
    if wanted == 1:
        return VirtualLoop(lambda gpu, state: step(gpu), name=name)
    if wanted == 0:
        from edl_labs.trace.torch_loop import TorchLoop

        return TorchLoop(step, name=name)
    raise UsageError(
        f"{name} takes {wanted} arguments",
        why="a step takes none (on this machine), a gpu, or a gpu and a state (on a VirtualGPU)",
        next="wrap it in a function of these",
    )


def _verified(loop: Loop, gains: tuple[WhatIf, ...], steps: int, count: int) -> list[Ablation]:
    possible = [gain for gain in gains if gain.cause in loop.ablations() and gain.gain_s > 0][:count]
    if not possible:
        return []
    times = loop.times_s(steps, (None, *(gain.cause for gain in possible)))
    return [Ablation(gain.cause, gain, times[None], times[gain.cause]) for gain in possible]
