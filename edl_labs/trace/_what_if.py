"""What mending a cause would gain, told from a trace by running its dependency graph again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.trace.analysed_trace import AnalysedTrace, step_times_s
from edl_labs.trace.causes import CAUSES
from edl_labs.trace.errors import TraceError
from edl_labs.trace.simulate import simulate, without
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted
from edl_labs.values import Value

# How much faster copies from pinned memory usually are, where the trace does not tell the machine's rates.
_PINNED_SPEEDUP = 2.0


@dataclass(frozen=True, repr=False)
class WhatIf(Value):
    """A step's time as it is and with a cause removed, in seconds.

    `replayed_s` is the step's time when the graph runs unchanged: how far it lies from `before_s`, the time in the
    trace, says how well the graph explains the trace. The gain is told by `replayed_s` against `after_s`.
    """

    cause: str
    before_s: float
    replayed_s: float
    after_s: float

    @property
    def gain_s(self) -> float:
        """Seconds saved in a step."""
        return self.replayed_s - self.after_s

    @property
    def speedup(self) -> float:
        """How many times as fast a step becomes; inf where nothing of it is left."""
        return self.replayed_s / self.after_s if self.after_s > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data; the speedup is null where nothing of the step is left."""
        return {**super().to_json(), "gain_s": self.gain_s, "speedup": finite(self.speedup)}


def finite(value: float) -> float | None:
    """The number, or None (in JSON: null) for inf and nan, which JSON does not know."""
    return value if math.isfinite(value) else None


def what_if(
    trace: Trace | AnalysedTrace, cause: str, *, skip: int | None = None, copy_speedup: float | None = None
) -> WhatIf:
    """The gain from removing a cause, by running the dependency graph of the trace again without it.

    Shares of wall time are upper bounds of gains: behind a removed cause the next one waits. `skip` leaves out the
    first steps (one, unless there are fewer than three). `copy_speedup` is how much faster pinned copies run.
    """
    return _answers(AnalysedTrace.of(trace), (cause,), skip=skip, copy_speedup=copy_speedup)[0]


def most_to_gain(
    trace: Trace | AnalysedTrace, *, skip: int | None = None, copy_speedup: float | None = None
) -> tuple[WhatIf, ...]:
    """`what_if` for every cause that can be removed, the largest gain first."""
    found = _answers(AnalysedTrace.of(trace), CAUSES, skip=skip, copy_speedup=copy_speedup)
    return tuple(sorted(found, key=lambda answer: -answer.gain_s))


def _answers(
    analysed: AnalysedTrace, causes: tuple[str, ...], *, skip: int | None, copy_speedup: float | None
) -> list[WhatIf]:
    for cause in causes:
        if cause not in CAUSES:
            raise UsageError(
                f"{cause!r} is not a cause", why=f"causes are {', '.join(CAUSES)}", next="name one of them"
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
            f"no step is left after skipping {first}", why=f"the trace has {counted(steps, 'step')}", next="skip fewer"
        )
    return first
