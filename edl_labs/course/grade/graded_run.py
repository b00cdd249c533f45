"""What came of one submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edl_labs.checks import Outcome


@dataclass(frozen=True)
class Secret:
    """The cases of one exercise and the reference's evidence for them, encoded."""

    cases: bytes
    wants: bytes


@dataclass(frozen=True)
class Event:
    """Something that happened: `kind` is timeout, killed or skipped; `where` the exercise or cell."""

    kind: str
    where: str
    why: str = ""


@dataclass
class Run:
    """What came of a submission. `outputs` are by the index of the plan's cell."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    own_s: float = 0.0
    """Seconds spent in the notebook's own cells and probes."""
    cpu_s: float = 0.0
    """CPU seconds of all its kernels."""
    own_cpu_s: float = 0.0
    """The same without the kernels' start."""
    peak_bytes: int = 0


def keep(run: Run, outcome: Outcome) -> None:
    """Keep the better of two outcomes of one exercise; the later one when they are equal."""
    before = run.outcomes.get(outcome.name)
    if before is None or outcome.points >= before.points:
        run.outcomes[outcome.name] = outcome
