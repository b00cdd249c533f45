"""Compiling while the clock runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from edl_labs.bench.detectors.called_code import compiles
from edl_labs.bench.detectors.detector import Detector, Look
from edl_labs.bench.detectors.torch_watch import compiled_frames
from edl_labs.bench.timing.blocks import Runner
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.units import counted


class CompileInside(Detector):
    """torch compiles, or a device loads kernels, in one call after another."""

    kind = "compile_inside"
    what = "compiling or tuning happened while the clock ran"
    why = "{detail}; that is paid once, not in each call"
    next = "compile before measuring, and give inputs of one shape; for a Timer, run the region a few times before it"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._first = self._seen = 0

    def before(self) -> str:
        self._first = compiled_frames(sys.modules)
        return "its code calls the compiler each time" if compiles((self.look.fn,)) else ""

    def after_call(self, result: Any) -> str:
        return self.look.virtual.loads if self.look.virtual else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        self._seen = compiled_frames(sys.modules)
        return ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        before, self._seen = self._seen, compiled_frames(sys.modules)
        # Calls so long that none is left to be timed tell by compiling at the first look and in the warm-up again.
        again = plan.call_s > self.look.budget_s / 10 and self._seen > before > self._first
        return "torch.compile compiled in one call after another" if again else ""

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        frames = compiled_frames(sys.modules) - self._seen
        return f"torch.compile compiled {counted(frames, 'time')}" if frames else ""
