"""What the machine itself says against a time: its peaks, its caches, its clock, and its number of processors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from edl_labs import device
from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.detectors.waiting import queued_s
from edl_labs.bench.timing.blocks import Runner
from edl_labs.bench.timing.cache_flush import llc_bytes, make_flush
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import is_asynchronous
from edl_labs.errors import UsageError
from edl_labs.units import byte_count, percent, seconds, si

# Boost clocks move by some per cent in normal work; below nine tenths something holds the clock down.
_LOW = 0.9
_MATTERS = 0.3  # a third more is beyond what one cleared cache adds by chance
_CODE_S = 20e-6  # fetching the interpreter's code again
_LEAST_BYTE_PER_S = 2e9  # below what one core of any machine of the last decade reads from memory
_TIMES = 3  # the least that has a median which one burst cannot move
# Smaller inputs lie in the first-level caches of any real program, and an emptied one costs more in code than in data.
_LEAST_BYTES = 128 << 10
_DOUBTFUL = 0.15  # beyond this half-width a ceiling was measured at a busy moment
_FLOPS = ("flops", "flop", "contraction_flops")
_BYTES = ("moved_bytes", "bytes")
_RATE = ("peak_flop_per_s", "flop_per_s")
_BANDWIDTH = ("bandwidth_byte_per_s", "memory_bandwidth_byte_per_s", "byte_per_s")


class ClockLow(Detector):
    """Heat, power or a setting limits the processor's clock."""

    kind = "clock_low"
    what = "the processor runs below its nominal clock"
    why = "{detail}; times are longer than on a cool, unconstrained device, and change as it warms up or cools down"
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
    why = "{detail}; threads wait for each other, and times become long and noisy"
    next = "call torch.set_num_threads(n) with at most that many, or set OMP_NUM_THREADS before Python starts"

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


class CacheResident(Detector):
    """Each call reads the same data from the cache."""

    kind = "cache_resident"
    what = "the inputs stay in the cache from call to call"
    why = "{detail}; real data arrives from memory"
    next = "if your real data will not be cached, pass a factory as inputs=, so that inputs rotate, or use cold=True"

    def before(self) -> str:
        if self.look.feed is None and self.look.virtual is None:
            self.look.off[self.kind] = "no inputs= were given"
        return ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        look = self.look
        if look.cold or plan.call_s > look.budget_s / 40:
            return ""
        if look.virtual is not None and is_asynchronous(look.clock):
            call_bytes = pool_bytes = look.virtual.moved_bytes
        elif look.feed is None:
            return ""
        else:
            call_bytes, pool_bytes = look.feed.nbytes, look.feed.nbytes * len(look.feed.pool)
        why = resident(runner, plan, call_bytes=call_bytes, pool_bytes=pool_bytes, budget_s=look.budget_s)
        if why is None:
            look.off[self.kind] = "clearing the cache takes longer than this budget allows"
        return why or ""


def resident(runner: Runner, plan: BlockPlan, *, call_bytes: int, pool_bytes: int, budget_s: float) -> str | None:
    """Why data is served by the cache, '' where it is not, None where there was no time to find out."""
    if call_bytes < _LEAST_BYTES or pool_bytes > llc_bytes(runner.clock):
        return ""
    if not runner.asynchronous and call_bytes < _LEAST_BYTE_PER_S * plan.call_s:
        return ""  # at this rate memory keeps up, cached or not
    now = runner.clock.now_s
    flush = make_flush(runner.clock)
    start, queued = now(), queued_s()
    flush()
    took = now() - start - (queued_s() - queued)
    if took * (_TIMES + 1) > budget_s / 4 and not runner.asynchronous:
        return None
    warm, cold = [], []
    for _ in range(_TIMES):
        runner.block_s(1)
        warm.append(runner.block_s(1))
        flush()
        cold.append(runner.block_s(1))
    # The least of the cold ones: what a burst of the neighbours adds to some of them is no cache's doing.
    extra = min(cold) - median(warm)
    # A cleared cache holds no code either: fetching the interpreter's again takes some microseconds of its own.
    code_s = 0.0 if runner.asynchronous else _CODE_S
    if extra - code_s <= _MATTERS * plan.call_s:
        return ""
    slower = percent((extra - code_s) / plan.call_s, digits=2)
    return (
        f"each call's {byte_count(call_bytes)} fit into the cache, and with a cleared cache a call takes {slower} "
        "longer"
    )


class FasterThanLight(Detector):
    """The time is shorter than the stated work can take on the stated machine."""

    kind = "faster_than_light"
    what = "this is faster than the machine can be"
    why = "{detail}"
    next = (
        "check that work= describes what the function does, that it runs on this machine, and that the clock "
        "waits for it"
    )


def bound_s(work: Any, machine: Any) -> float:
    """The least seconds that `work` takes on `machine`: max(FLOPs / peak, bytes / bandwidth), 0 if nothing is known.

    Both are values with these attributes, or mappings; `work` may also be the bound itself, in seconds. A machine that
    has `least_s(work)` (a roofline's does) answers itself.

    >>> bound_s({"flops": 2e9, "moved_bytes": 1e6}, {"peak_flop_per_s": 1e12, "bandwidth_byte_per_s": 1e9})
    0.002
    """
    for value in (work, machine):
        if isinstance(value, str):
            raise UsageError(
                f"work= and machine= must define a bound, got the text {value!r}.",
                why="The time is compared with the work divided by the machine's peak rates.",
                next='Pass work=1e-3 in seconds, or a Work with machine=Machine.of("H200").',
            )
    if isinstance(work, (int, float)) and not isinstance(work, bool):
        return float(work)
    if machine is None:
        raise UsageError(
            "work= needs machine=",
            why="a bound needs both the work and the machine",
            next="pass machine= as well, or pass work= in seconds",
        )
    if callable(getattr(machine, "least_s", None)) and hasattr(work, "dtype"):
        return float(machine.least_s(work))
    flops = _number(work, _FLOPS, work) or 0.0
    other = _number(work, ("other_flops",), work) or 0.0
    moved = _number(work, _BYTES, work) or 0.0
    peak, bandwidth = _number(machine, _RATE, work), _number(machine, _BANDWIDTH, work)
    times = [(flops + other) / peak if peak else 0.0, moved / bandwidth if bandwidth else 0.0]
    return max(times)


def excess(time_s: float, low_s: float, *, work: Any, machine: Any) -> str:
    """Why a time is impossible, or '': its whole interval lies more than 2 % below the bound."""
    least = bound_s(work, machine)
    if not 0 < max(low_s, time_s) < 0.98 * least:
        return ""
    facts = [si(value, unit) for unit, value in _facts(work)]
    of = f" for {', '.join(facts)}" if facts else ""
    doubt = getattr(machine, "doubt", 0.0)
    sure = f"; but the machine's ceilings are uncertain, ± {percent(doubt, digits=2)}" if doubt > _DOUBTFUL else ""
    return f"a call took {seconds(time_s)}, but the machine's limit{of} is {seconds(least)}{sure}"


def _facts(work: Any) -> list[tuple[str, float]]:
    if isinstance(work, (int, float)):
        return []
    pairs = [("FLOP", _number(work, _FLOPS, work)), ("B", _number(work, _BYTES, work))]
    return [(unit, value) for unit, value in pairs if value]


def _number(value: Any, names: tuple[str, ...], work: Any) -> float | None:
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if callable(found):
            found = found(_get(work, "dtype") or "fp32")
        if isinstance(found, Mapping):
            found = found.get(str(_get(work, "dtype") or "fp32"))
        if isinstance(found, (int, float)):
            return float(found)
    return None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
