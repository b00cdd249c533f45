"""What the shares of a loop are, told from the machine instead of from a trace.

The rule is attribution's, the way is another: moments are classified one by one from the machine's own records; what a
wait costs beyond itself is how much shorter the same gap is when the same loop runs without the wait.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from edl_labs.trace.causes import CAUSES, named_cause
from edl_labs.trace.event_kinds import kind_of
from edl_labs.trace.loops import VirtualLoop
from edl_labs.trace.traced_gpu import AblatedGPU, TracedGPU
from edl_labs.virtual import Region, Stream
from edl_labs.virtual.gpu.engine import COMPUTE, NO_ENGINE, TO_HOST

# Apart from the table of causes on purpose: the truth must not share a mistake with what it judges.
_LATE = ("launch", "host")
_HOLDS = ("sync", "copy", "alloc")


@dataclass(frozen=True)
class _Records:
    """A finished run in picoseconds: device work (start, end, cause), host time (start, end, cause), step starts."""

    work: list[tuple[int, int, str]]
    host: list[tuple[int, int, str]]
    steps: list[int]
    step_of_work: list[int]


def true_shares(loop: VirtualLoop, *, steps: int = 12, skip: int = 1) -> dict[str, float]:
    """By cause the share of the loop's wall time, over the steps behind the first `skip`."""
    records = _records(loop.run_on(TracedGPU(loop.machine, **loop.parameters), steps))
    bounds = _bounds(records, skip)
    sums = dict.fromkeys(CAUSES, 0)
    gaps_without = {
        cause: _gaps(_records(loop.run_on(_unheld(cause, loop), steps)))
        for cause in _HOLDS
        if any(name == cause for _, _, name in records.host)
    }
    for start, end, cause in records.work:
        sums[cause] += max(min(end, bounds[1]) - max(start, bounds[0]), 0)
    for kernel, low, high in _gap_ends(records):
        if high > bounds[0] and low < bounds[1]:
            vanishing = _vanishing(gaps_without, kernel, high - low)
            _share_out(sums, records, max(low, bounds[0]), min(high, bounds[1]), vanishing)
    total = sum(sums.values())
    return {cause: value / total for cause, value in sums.items()}


def _unheld(cause: str, loop: VirtualLoop) -> TracedGPU:
    """A device on which what has this cause holds nobody: reads are gone, copies and frees take place all the same."""
    return _UnheldGPU(loop.machine, without=cause, **loop.parameters)


class _UnheldGPU(AblatedGPU):
    def copy(self, dst: Region, src: Region, *, non_blocking: bool = False, stream: Stream | None = None) -> None:
        self.core.holding = self.without != "copy"
        TracedGPU.copy(self, dst, src, non_blocking=non_blocking, stream=stream)
        self.core.holding = True

    def host_work(self, duration_s: float, *, reads: Any = (), writes: Any = ()) -> None:
        TracedGPU.host_work(self, duration_s, reads=reads, writes=writes)


def _share_out(sums: dict[str, int], records: _Records, low: int, high: int, vanishing: dict[str, int]) -> None:
    """Charge one idle gap: what the host did in it, and of its late launches and code what its waits made late."""
    left = dict(vanishing)
    place = max(bisect_left(records.host, (low, 0, "")) - 1, 0)
    for number in range(place, len(records.host)):
        start, end, cause = records.host[number]
        if start >= high:
            break
        if end <= low:
            continue
        amount = min(end, high) - max(start, low)
        for hold in _HOLDS if cause in _LATE else ():
            taken = min(amount, left.get(hold, 0))
            sums[hold] += taken
            amount -= taken
            left[hold] = left.get(hold, 0) - taken
        sums[cause] += amount


def _vanishing(gaps_without: dict[str, dict[int, int]], kernel: int, gap: int) -> dict[str, int]:
    return {cause: max(gap - gaps[kernel], 0) for cause, gaps in gaps_without.items() if kernel in gaps}


def _records(gpu: TracedGPU) -> _Records:
    core = gpu.core
    core.engines.run_all()
    marks = sorted((start, -end, name) for name, _, start, end in gpu._marks)
    host = []
    for name, start, end in core.host_spans:
        host.append((start, end, _host_cause(name, _around(marks, start, end))))
    work, step_of_work = [], []
    steps = [start for start, _, name in marks if name.startswith("ProfilerStep")]
    for operation in core.operations:
        cause = {COMPUTE: "compute", TO_HOST: "sync" if operation.label == "item" else "copy"}.get(
            operation.engine, "copy"
        )
        call = "launch" if cause == "compute" else cause
        if operation.arrived > operation.called:
            host.append((operation.called, operation.arrived, "launch" if operation.engine == NO_ENGINE else call))
        if operation.engine != NO_ENGINE and operation.done is not None:
            work.append((operation.start, operation.done, cause))
            step_of_work.append(int(np.searchsorted(steps, operation.called, side="right")) - 1)
    return _Records(work, sorted(host), steps, step_of_work)


def _around(marks: list[tuple[int, int, str]], start: int, end: int) -> list[str]:
    """The names of what is annotated around a stretch: a step, and one thing within it."""
    place = bisect_left(marks, (start + 1, 0, ""))
    return [name for low, high, name in marks[max(place - 3, 0) : place] if low <= start and -high >= end]


def _host_cause(name: str, around: list[str]) -> str:
    if any(kind_of("cuda_runtime", mark) == "alloc" for mark in around):
        return "alloc"
    if name.startswith("wait: ") or name == "synchronize":
        return "sync"
    return "data" if "data" in map(named_cause, around) else "host"


def _bounds(records: _Records, skip: int) -> tuple[int, int]:
    ends = [0] * len(records.steps)
    for (_, end, _), step in zip(records.work, records.step_of_work, strict=True):
        ends[step] = max(ends[step], end)
    # Where the host begins the step later than the device ends the one before, the step begins with the host.
    first = max(records.steps[skip], ends[skip - 1]) if skip else records.steps[0]
    return first, max(ends[-1], max(end for _, end, _ in records.host))


def _gap_ends(records: _Records) -> list[tuple[int, int, int]]:
    """Idle times as (kernel, start, end): in front of a kernel by its number, at the end by the next, else by -1."""
    found = []
    done, before = 0, dict[int, int]()
    for start, end, _ in sorted(records.work):
        before.setdefault(start, done)
        done = max(done, end)
    kernel = -1
    for start, end, cause in records.work:
        is_kernel = cause == "compute"
        kernel += is_kernel
        # Of several that start together the first has the gap.
        idle_from = before.pop(start, start)
        if end > start and (idle_from < start or is_kernel):
            found.append((kernel if is_kernel else -1, min(idle_from, start), start))
    # What follows the last kernel stands in front of the next step's first.
    found.append((kernel + 1, done, max(done, max(end for _, end, _ in records.host))))
    return found


def _gaps(records: _Records) -> dict[int, int]:
    return {kernel: high - low for kernel, low, high in _gap_ends(records) if kernel >= 0}
