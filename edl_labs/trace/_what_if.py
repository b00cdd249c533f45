"""The potential speed-up if a cause is fixed: the dependency graph, or the loop itself, run again without it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.trace.analysed_trace import AnalysedTrace, TraceLike, step_times_s
from edl_labs.trace.causes import CAUSES
from edl_labs.trace.errors import TraceError
from edl_labs.trace.graph_replay import simulate, without
from edl_labs.trace.loops import Loop
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted
from edl_labs.values import Value

# How much faster copies from pinned memory usually are, where the trace does not tell the machine's rates.
_PINNED_SPEEDUP = 2.0


# A factor is promised to within a tenth: a replay that misses the step itself by more cannot give one.
MOST_REPLAY_ERROR = 0.1


@dataclass(frozen=True, repr=False)
class WhatIf(Value):
    """A step's time as it is and with a cause removed, in seconds.

    `replayed_s` is the step's time when the graph runs unchanged; `replay_error` is how far it is from `before_s`, the
    time in the trace. The gain is `replayed_s` against `after_s`. Where the replay is off by more than a tenth, the
    graph does not explain the trace: `is_reliable` is False and the speed-up is nan.
    """

    cause: str
    before_s: float
    replayed_s: float
    after_s: float

    @property
    def gain_s(self) -> float:
        """Seconds saved per step."""
        return self.replayed_s - self.after_s

    @property
    def replay_error(self) -> float:
        """How far the replay of the unchanged trace is off, relative to the traced step."""
        return self.replayed_s / self.before_s - 1.0 if self.before_s > 0 else 0.0

    @property
    def is_reliable(self) -> bool:
        """Whether the replay explains the trace well enough to give a factor."""
        return abs(self.replay_error) <= MOST_REPLAY_ERROR

    @property
    def speedup(self) -> float:
        """How many times as fast a step becomes; inf where nothing of it is left, nan where that is not known."""
        if not self.is_reliable:
            return float("nan")
        return self.replayed_s / self.after_s if self.after_s > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data; the speedup is null where nothing of the step is left, or where it is unknown."""
        found = {"gain_s": self.gain_s, "speedup": finite(self.speedup), "replay_error": self.replay_error}
        return {**super().to_json(), **found}


def finite(value: float) -> float | None:
    """The number, or None (in JSON: null) for inf and nan, which JSON does not know."""
    return value if math.isfinite(value) else None


@checked_arguments()
def what_if(trace: TraceLike, cause: str, *, skip: int | None = None, copy_speedup: float | None = None) -> WhatIf:
    """The gain from removing a cause, by running the dependency graph of the trace again without it.

    A gain is mostly less than the cause's share of wall time, since the next cause then limits, and can be more, since
    what the cause delays comes earlier too. `skip` leaves out the
    first steps (one, unless there are fewer than three). `copy_speedup` is how much faster pinned copies run.
    """
    return _answers(AnalysedTrace.of(trace), (cause,), skip=skip, copy_speedup=copy_speedup)[0]


@checked_arguments()
def most_to_gain(trace: TraceLike, *, skip: int | None = None, copy_speedup: float | None = None) -> tuple[WhatIf, ...]:
    """`what_if` for every cause that can be removed, the largest gain first."""
    found = _answers(AnalysedTrace.of(trace), CAUSES, skip=skip, copy_speedup=copy_speedup)
    return tuple(sorted(found, key=lambda answer: -answer.gain_s))


def _answers(
    analysed: AnalysedTrace, causes: tuple[str, ...], *, skip: int | None, copy_speedup: float | None
) -> list[WhatIf]:
    for cause in causes:
        if cause not in CAUSES:
            raise UsageError(
                f"{cause!r} is not a cause", why=f"the causes are {', '.join(CAUSES)}", next="use one of these causes"
            )
    graph = analysed.graph
    first = _skipped(graph.steps, skip)
    times_s = step_times_s(analysed.lasting_bounds(skip=first))
    before_s = sum(times_s) / len(times_s)
    replayed_s = simulate(graph).per_step_s(first)
    faster = pinned_speedup(analysed.trace) if copy_speedup is None else copy_speedup

    def after_s(cause: str) -> float:
        # Without what it does not contain a graph is itself.
        if cause not in graph.causes:
            return replayed_s
        return simulate(without(graph, cause, copy_speedup=faster)).per_step_s(first)

    return [WhatIf(cause, before_s, replayed_s, after_s(cause)) for cause in causes]


def pinned_speedup(trace: Trace) -> float:
    """How much faster copies from pinned memory are: what the machine's rates say, or twice, where nothing is known."""
    machine = trace.meta.get("machine") or {}
    if machine.get("pageable_byte_per_s"):
        return max(float(machine["link_byte_per_s"] / machine["pageable_byte_per_s"]), 1.0)
    return _PINNED_SPEEDUP


def _skipped(steps: int, skip: int | None) -> int:
    first = (1 if steps >= 3 else 0) if skip is None else skip
    if not 0 <= first < steps:
        raise TraceError(
            f"no step is left after skipping {first}",
            why=f"the trace has {counted(steps, 'step')}",
            next="skip fewer steps",
        )
    return first


@dataclass(frozen=True, repr=False)
class Ablation(Value):
    """What a trace predicted and what the loop did without a cause, in seconds a step."""

    cause: str
    predicted: WhatIf
    before_s: float
    after_s: float
    DERIVED: ClassVar[tuple[str, ...]] = ("real",)

    @property
    def gain_s(self) -> float:
        """Seconds a step really saved."""
        return self.before_s - self.after_s

    @property
    def speedup(self) -> float:
        """How many times as fast the loop really became."""
        return self.before_s / self.after_s if self.after_s > 0 else float("inf")

    @property
    def error(self) -> float:
        """How far the predicted time without the cause is from the real one, relative to it."""
        if self.after_s <= 0:
            return abs(self.predicted.after_s) / self.before_s if self.before_s else 0.0
        return abs(self.predicted.after_s / self.after_s - 1.0)

    @property
    def gain_error(self) -> float:
        """How far the predicted gain is from the real one, relative to it; nan where there was no real gain."""
        return abs(self.predicted.gain_s / self.gain_s - 1.0) if self.gain_s > 0 else float("nan")

    @property
    def real(self) -> dict[str, float | None]:
        """What the loop did, as plain data; no speedup where nothing of the step is left."""
        speedup = finite(self.speedup)
        return {"before_s": self.before_s, "after_s": self.after_s, "gain_s": self.gain_s, "speedup": speedup}


@checked_arguments()
def ablate(loop: Loop, cause: str, *, steps: int = 12) -> Ablation:
    """Run a loop without a cause, and compare the gain with the one predicted from the unchanged loop's trace."""
    if cause not in loop.ablations():
        raise UsageError(
            f"{loop.name} has no version without the cause {cause!r}",
            why=f"there are versions without these causes: {', '.join(loop.ablations()) or 'none so far'}",
            next="pass a step without this cause: TorchLoop(..., without={cause: step})",
        )
    predicted = what_if(loop.record(steps), cause)
    times = loop.times_s(steps, (None, cause))
    return Ablation(cause, predicted, times[None], times[cause])
