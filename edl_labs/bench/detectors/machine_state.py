"""A machine that is not as it should be: slowed down, or with more threads than processors."""

from __future__ import annotations

import sys
from pathlib import Path

from edl_labs import device
from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.units import si

# Boost clocks move by some per cent in normal work; below nine tenths something holds the clock down.
_LOW = 0.9


class ClockLow(Detector):
    """Heat, power or a setting holds the processor's clock down."""

    kind = "clock_low"
    what = "the processor runs below its nominal clock"
    why = "{detail}: times are longer than on a cool, unconstrained device, and change as it warms up or cools"
    next = "wait, improve cooling or the power limit, and compare only results taken in the same state"

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        if state is None:
            self.look.off[self.kind] = "the clock of this processor cannot be read here"
            return ""
        low = state.nominal_hz and state.hz < _LOW * state.nominal_hz
        return f"{si(state.hz, 'Hz')} instead of {si(state.nominal_hz, 'Hz')}" if low else ""


class Oversubscribed(Detector):
    """torch uses more threads than there are processors."""

    kind = "oversubscribed"
    what = "there are more threads than processors"
    why = "{detail}: threads wait for each other, and times get long and noisy"
    next = "torch.set_num_threads(n) with at most that many, or OMP_NUM_THREADS before Python starts"

    def before(self) -> str:
        torch, cores = sys.modules.get("torch"), allowed_cores()
        threads = int(torch.get_num_threads()) if torch is not None else 0
        return f"torch uses {threads} threads on {cores:g} usable processors" if threads > cores else ""


def allowed_cores() -> float:
    """How many processors this process may use: affinity and the container's quota."""
    cores = float(device.usable_cores())
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return cores if quota == "max" else min(cores, max(1.0, int(quota) / int(period)))
    except (OSError, ValueError):
        return cores
