"""The record of a run: outcomes, outputs, incidents, and the time and memory that it took."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from edl_labs.checks import Outcome


@dataclass(frozen=True)
class Usage:
    """What one submission took; two are added where it took several runs."""

    own_s: float = 0.0
    """Seconds spent in the notebook's own cells and probes."""
    wall_s: float = 0.0
    """Seconds from reading the plan to the last mark, including new kernels and waiting."""
    cpu_s: float = 0.0
    """CPU seconds of all its kernels."""
    own_cpu_s: float = 0.0
    """The CPU seconds of all its kernels, without the time that the kernels take to start."""
    peak_bytes: int = 0
    """The peak memory of the kernel that used the most."""
    judge_cpu_s: float = 0.0
    """CPU seconds that the judge took to decode and compare its evidence."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            own_s=self.own_s + other.own_s,
            wall_s=self.wall_s + other.wall_s,
            cpu_s=self.cpu_s + other.cpu_s,
            own_cpu_s=self.own_cpu_s + other.own_cpu_s,
            peak_bytes=max(self.peak_bytes, other.peak_bytes),
            judge_cpu_s=self.judge_cpu_s + other.judge_cpu_s,
        )


@dataclass(frozen=True)
class Incident:
    """Something that happened: `kind` is timeout, killed or skipped; `where` the exercise or cell."""

    kind: str
    where: str
    why: str = ""


@dataclass
class ProbedRun:
    """What came of a run. `outputs` and `counts` are by the index of the plan's cell, up to the first probe."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    events: list[Incident] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    errors: set[str] = field(default_factory=set)
    """Exercises whose evidence is an error, or whose probe ended the kernel, but not checks that timed out."""
    late: set[str] = field(default_factory=set)
    """Exercises whose check timed out."""
    raised: dict[int, str] = field(default_factory=dict)
    """The name of the type of the exception that ended a cell, as the kernel reports it, by the cell's index."""
    not_run: frozenset[int] = frozenset()
    """The indices of the cells that were left out as demonstrations."""

    @property
    def has_hung(self) -> bool:
        """Whether a cell or a check was stopped at its time."""
        return any(event.kind == "timeout" for event in self.events)

    def keep(self, outcome: Outcome | None) -> None:
        """Keep the better of two outcomes of one exercise; the later one when they are equal."""
        if outcome is not None:
            before = self.outcomes.get(outcome.name)
            if before is None or outcome.points >= before.points:
                self.outcomes[outcome.name] = outcome
