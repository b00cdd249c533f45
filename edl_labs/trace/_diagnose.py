"""All that a trace tells about a loop, as one report: shares, gains, habits, and pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.presenters import present
from edl_labs.trace._antipatterns import Finding, antipatterns
from edl_labs.trace._attribute import Attribution, attribute
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace._what_if import Ablation, WhatIf, most_to_gain
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.causes import BY_NAME
from edl_labs.trace.device_work import overlap
from edl_labs.trace.loops import Loop, VirtualLoop
from edl_labs.trace.notes import MISSING, is_device_missing, notes_of, other_ranks
from edl_labs.trace.trace_table import Trace
from edl_labs.units import percent, seconds
from edl_labs.values import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Characters of a whole bar: a line of the report fits a terminal's.
_BAR = 30
# Names of kernels reach thousands of characters; the beginning tells which it is.
_LONGEST = 90
# Shares below this are not shown: they round to nothing.
_LEAST = 0.005
# A gain this much above its share, as a part of the step, needs a word of explanation.
_MORE_THAN_SHARE = 0.05
# A gain below a hundredth of the step is not worth a line.
_LEAST_SPEEDUP = 1.01


@dataclass(frozen=True, repr=False)
class Diagnosis(Value):
    """What `diagnose` found: `shares` by cause, `gains` predicted (best first), `ablations` run, `findings`.

    `notes` say what the trace lacks or holds unread; `overlap` is the part of communication that computing hides.

    Notebooks show it as HTML with pictures; `text()`, `html()`, `figure()` and `to_json()` give each form.
    """

    name: str
    attribution: Attribution
    gains: tuple[WhatIf, ...]
    ablations: tuple[Ablation, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    is_device_missing: bool = False
    overlap: float | None = None
    analysed: AnalysedTrace | None = field(default=None, repr=False, compare=False)
    DERIVED: ClassVar[tuple[str, ...]] = ("verdict",)
    OMITTED: ClassVar[tuple[str, ...]] = ("analysed",)
    ROWS: ClassVar[str] = "gains"

    @property
    def trace(self) -> Trace:
        """The trace that was diagnosed; UsageError where only the report was kept."""
        return self.analysis().trace

    def analysis(self) -> AnalysedTrace:
        """The trace as analysed; UsageError where only the report was kept."""
        if self.analysed is None:
            raise UsageError(
                "this diagnosis has no trace",
                why="it was loaded from JSON, which contains only the report",
                next="to see plots, diagnose the trace file again",
            )
        return self.analysed

    @property
    def verdict(self) -> str:
        """The dominant cause in words: 'launch-bound'."""
        return self.advice[0]

    @property
    def advice(self) -> tuple[str, str]:
        """The verdict and what usually helps."""
        if self.is_device_missing:
            return MISSING
        return BY_NAME[self.attribution.dominant].verdict_and_advice(on_device=self.attribution.on_device)

    @property
    def shares(self) -> dict[str, float]:
        """The share of wall time of each cause."""
        return dict(self.attribution.shares)

    def shown_shares(self) -> list[str]:
        """The causes whose shares are worth showing, the largest first."""
        shares = self.attribution.shares
        return sorted((cause for cause in shares if shares[cause] >= _LEAST), key=lambda cause: -shares[cause])

    def shown_gains(self) -> list[WhatIf]:
        """The gains worth showing, the best first."""
        return [gain for gain in self.gains if gain.speedup > _LEAST_SPEEDUP]

    def replay(self) -> str:
        """How well a replay of the unchanged trace explains it, as a sentence; '' without predicted gains."""
        if not self.gains:
            return ""
        gain = self.gains[0]
        off = f"{percent(round(abs(gain.replay_error), 3), digits=2)} off"
        said = f"replayed unchanged, a step takes {seconds(gain.replayed_s)} (traced {seconds(gain.before_s)}, {off})"
        if gain.is_reliable:
            return said
        return f"{said}: the trace does not show what the rest waits for, so no factor is given"

    def text(self) -> str:
        """The report as plain text."""
        return _text(self)

    def html(self) -> str:
        """The report as HTML, including its plots."""
        return str(present("html", self))

    def figure(self) -> Figure:
        """Timeline, shares, flame graph of self time, and the depth of the launch queue."""
        return present("plot", self)

    plot = figure

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": self.text(), "text/html": self.html()}


@checked_arguments()
def diagnose(loop: Any, *, steps: int = 12, skip: int | None = None, verify: int = 1) -> Diagnosis:
    """Where a loop's time goes, the potential speed-up if each cause is fixed, and which habits to drop.

    `loop` is a VirtualLoop, a TorchLoop, a step function (with arguments `gpu, state` it runs on a VirtualGPU, without
    any on this machine), a Trace, or a trace file. The best `verify` gains are tried by running the loop without the
    cause, where the loop can.
    """
    trace, running = _recorded(loop, steps)
    name = running.name if running else (Path(loop).name if isinstance(loop, (str, os.PathLike)) else "trace")
    found = diagnosed(trace, name=name, skip=skip)
    ablations = tuple(_verified(running, found.gains, steps, verify)) if running else ()
    return replace(found, ablations=ablations, notes=(*other_ranks(trace), *found.notes))


def diagnosed(trace: Trace, *, name: str, skip: int | None = None) -> Diagnosis:
    """The diagnosis of a trace, as one of all ranks: what is known of the others is not noted."""
    first, analysed = first_step(trace, skip), AnalysedTrace(trace)
    is_missing = is_device_missing(trace)
    return Diagnosis(
        name=name,
        attribution=attribute(analysed, skip=first),
        gains=() if is_missing else most_to_gain(analysed, skip=first),
        ablations=(),
        findings=antipatterns(analysed, skip=first),
        notes=notes_of(trace),
        is_device_missing=is_missing,
        overlap=overlap(trace),
        analysed=analysed,
    )


def first_step(trace: Trace, skip: int | None) -> int:
    """How many steps are left out at the beginning: one to warm up, unless there are fewer than three."""
    return (1 if len(trace.steps) >= 3 else 0) if skip is None else skip


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
            why="it is not a loop, a step function, a trace or a trace file",
            next="pass a VirtualLoop, a TorchLoop, a function that runs one step, or a trace",
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
        from edl_labs.trace.loops import TorchLoop

        return TorchLoop(step, name=name)
    raise UsageError(
        f"{name} takes {wanted} arguments",
        why="a step function takes no arguments on this machine; on a VirtualGPU, it takes `gpu`, or `gpu` and `state`",
        next="wrap it in a function with these arguments",
    )


def _verified(loop: Loop, gains: tuple[WhatIf, ...], steps: int, count: int) -> list[Ablation]:
    possible = [gain for gain in gains if gain.cause in loop.ablations() and gain.gain_s > 0][:count]
    if not possible:
        return []
    times = loop.times_s(steps, (None, *(gain.cause for gain in possible)))
    return [Ablation(gain.cause, gain, times[None], times[gain.cause]) for gain in possible]


def _text(diagnosis: Diagnosis) -> str:
    """The report: verdict, shares with intervals and lines, gains, and findings."""
    found = diagnosis.attribution
    lines = [
        f"{diagnosis.name}: {diagnosis.verdict}",
        *(f"note: {note}" for note in diagnosis.notes),
        f"{seconds(found.wall_s)} per step, over {len(found.steps)} steps; traced by {found.origin}",
        f"what usually helps: {diagnosis.advice[1]}",
        *("", "shares of wall time"),
    ]
    lines += [_share(found, cause) for cause in diagnosis.shown_shares()]
    if diagnosis.overlap is not None:
        lines.append(f"  overlap: computing hides {percent(diagnosis.overlap, digits=3)} of the communication")
    if diagnosis.gains:
        lines += ["", "potential speed-up if fixed, one cause at a time", f"  {diagnosis.replay()}"]
    lines += [_gain(diagnosis, gain) for gain in diagnosis.shown_gains()]
    if diagnosis.findings:
        lines += ["", "habits"]
    for finding in diagnosis.findings:
        lines += [f"* {finding.what}", f"    {finding.why}", f"    next: {finding.next}"]
        lines += [f"    at:   {finding.line}"] if finding.line else []
    return "\n".join(lines)


def _share(found: Attribution, cause: str) -> str:
    share, (low, high) = found.shares[cause], found.intervals[cause]
    doubt = "" if math.isnan(low) else f" [{percent(low, digits=2)}, {percent(high, digits=2)}]"
    blames = found.blames[cause]
    blame = f"  {_short(blames[0].line or blames[0].what)}" if blames else ""
    return f"  {cause:<13} {'█' * max(round(share * _BAR), 1):<{_BAR}} {percent(share, digits=3):>7}{doubt:<18}{blame}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _gain(diagnosis: Diagnosis, gain: WhatIf) -> str:
    faster = "no time is left" if math.isinf(gain.speedup) else f"{gain.speedup:.2f}x"
    line = f"  {gain.cause:<13} {seconds(gain.replayed_s)} -> {seconds(gain.after_s)}: {faster}"
    if gain.gain_s > gain.replayed_s * (diagnosis.shares[gain.cause] + _MORE_THAN_SHARE):
        line += " (more than its share, because it also delays other work)"
    for ablation in diagnosis.ablations:
        if ablation.cause == gain.cause:
            line += (
                f"; tried: {ablation.speedup:.2f}x" if not math.isinf(ablation.speedup) else "; tried: no time is left"
            )
    return line
