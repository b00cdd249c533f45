"""Predicted against real: run a loop with a cause removed, and compare with what its trace let expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from edl_labs.errors import UsageError
from edl_labs.trace._what_if import WhatIf, finite, what_if
from edl_labs.trace.loops import Loop
from edl_labs.values import Value


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
        """How far the predicted time without the cause lies from the real one, relative to it."""
        if self.after_s <= 0:
            return abs(self.predicted.after_s) / self.before_s if self.before_s else 0.0
        return abs(self.predicted.after_s / self.after_s - 1.0)

    @property
    def gain_error(self) -> float:
        """How far the predicted gain lies from the real one, relative to it; nan where there was no real gain."""
        return abs(self.predicted.gain_s / self.gain_s - 1.0) if self.gain_s > 0 else float("nan")

    @property
    def real(self) -> dict[str, float | None]:
        """What the loop did, as plain data; no speedup where nothing of the step is left."""
        speedup = finite(self.speedup)
        return {"before_s": self.before_s, "after_s": self.after_s, "gain_s": self.gain_s, "speedup": speedup}


def ablate(loop: Loop, cause: str, *, steps: int = 12) -> Ablation:
    """Run a loop without a cause, and put the gain beside the one predicted from the unchanged loop's trace."""
    if cause not in loop.ablations():
        raise UsageError(
            f"{loop.name} cannot run without {cause!r}",
            why=f"what it can leave out: {', '.join(loop.ablations()) or 'nothing so far'}",
            next="give the loop a step for it: TorchLoop(..., without={cause: step})",
        )
    predicted = what_if(loop.record(steps), cause)
    times = loop.times_s(steps, (None, cause))
    return Ablation(cause, predicted, times[None], times[cause])
