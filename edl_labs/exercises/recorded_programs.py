"""Recorded VirtualGPU programs as evidence: written as text in the student's process, replayed by the judge."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from edl_labs.errors import Wrong
from edl_labs.virtual import Replay, ReplayError, VirtualMachine, compact, replay
from edl_labs.virtual.case_program import CaseProgram, require_case
from edl_labs.virtual.errors import ProgramChanged
from edl_labs.virtual.gpu.program import PROGRAM

MAX_OPERATIONS = 300_000  # a replay of that many takes seconds, and no sound answer comes near
MAX_PAIRED = 150  # readings: 11,000 pairs
OWN = ("alloc", "copy", "host_work")  # what a student's code may issue by itself
SYNCS = ("synchronize", "sync_stream", "sync_event", "item")


def written(program: list[dict[str, Any]]) -> str:
    """A recorded program as text: shorter than as plain data, and its readings keep every bit."""
    return json.dumps(compact(program), separators=(",", ":"))


def replayed(text: Any, machine: VirtualMachine, *, graphs: bool = False) -> Replay:
    """The program in `text` on a fresh VirtualGPU; Wrong when it is none, or its readings are not that machine's.

    Kernels of blocks and captured graphs are for exercises about `graphs`: others price and count kernels one by one.
    """
    try:
        program = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        program = None
    try:
        run = replay(program, machine, max_operations=MAX_OPERATIONS)
    except ReplayError as error:
        raise Wrong(
            "the recorded program differs from what this machine would have done",
            why=f"{error.what}: {error.why}",
            next="use only the GPU's own methods; do not change its record",
        ) from None
    if graphs:
        return run
    if any("blocks" in entry for entry in run.program):
        # A kernel of few blocks would share the device with others, and be priced as if it had it for itself.
        raise Wrong(
            "your program passes a number of blocks when it launches a kernel",
            why="in this exercise, a launch has no number of blocks: each kernel has the device to itself",
            next="launch kernels as the text of the exercise does",
        )
    if any(entry["op"] == "capture" for entry in run.program):
        # Its kernels are not launches of the program, which judges count.
        raise Wrong(
            "your program captures a graph",
            why="in this exercise, kernels are launched one after another, without a graph",
            next="launch kernels as the text of the exercise does",
        )
    return run


def require_bound(run: Replay, case: CaseProgram) -> None:
    """Wrong where a program has other buffers, kernels or durations than its case."""
    try:
        require_case(PROGRAM, run.program, case)
    except ProgramChanged as error:
        raise Wrong(error.what, why=error.why, next=error.next) from None


@dataclass(frozen=True)
class Window:
    """Two readings and what was issued between them; `tick_s` is how coarse their difference is.

    It is tight when no other reading lies between them.
    """

    calls: int
    elapsed_s: float
    tick_s: float
    starts_drained: bool
    ends_drained: bool
    starts_cold: bool
    syncs: int
    is_tight: bool

    @property
    def per_call_s(self) -> float:
        """Seconds per call."""
        return self.elapsed_s / self.calls


@dataclass(frozen=True)
class _Mark:
    """A moment of the program: a reading of the host's clock, or a point in a stream."""

    value_s: float
    calls: int
    syncs: int
    drained: bool


def windows(run: Replay) -> list[Window]:
    """Every pair of readings of the host's clock with calls between them, and every pair of events whose time was read.

    With more than MAX_PAIRED readings only neighbours are paired, so that a reading a call cannot make this slow.
    """
    readings, pairs = _marks(run)
    reach = len(readings) if len(readings) <= MAX_PAIRED else 1
    found = [
        _window(first, last, tick_s=run.machine.clock_resolution_s, is_tight=later == 0)
        for i, first in enumerate(readings)
        for later, last in enumerate(readings[i + 1 : i + 1 + reach])
    ]
    # Events are marked by the device, picosecond by picosecond.
    found += [_window(first, last, tick_s=0.0, is_tight=True) for first, last in pairs]
    return [window for window in found if window.calls > 0]


def _window(first: _Mark, last: _Mark, *, tick_s: float, is_tight: bool) -> Window:
    return Window(
        calls=last.calls - first.calls,
        elapsed_s=last.value_s - first.value_s,
        tick_s=tick_s,
        starts_drained=first.drained,
        ends_drained=last.drained,
        starts_cold=first.calls == 0,
        syncs=last.syncs - first.syncs,
        is_tight=is_tight,
    )


def _marks(run: Replay) -> tuple[list[_Mark], list[tuple[_Mark, _Mark]]]:
    """The readings of the host's clock in order, and the pairs of events of one stream whose distance was read."""
    values, calls = iter(run.readings), Counter[int]()
    readings: list[_Mark] = []
    pairs: list[tuple[_Mark, _Mark]] = []
    events: dict[int, tuple[int, _Mark]] = {}
    syncs = 0
    for entry in run.program:
        op, reading = entry["op"], next(values) if "value" in entry else None
        syncs += op in SYNCS
        if op == "launch":
            calls[entry["stream"]] += 1
        elif op == "record":
            # An event's time is that of the work before it in its stream: drained by what it is.
            mark = _Mark(0.0, calls[entry["stream"]], syncs, drained=True)
            events[entry["event"]] = entry["stream"], mark
        elif op == "now" and reading is not None:
            readings.append(_Mark(reading.value, calls.total(), syncs, reading.drained))
        elif op == "elapsed_time" and reading is not None:
            (one, first), (other, last) = events[entry["start"]], events[entry["end"]]
            if one == other:
                pairs.append((first, replace(last, value_s=1e-3 * reading.value)))
    return readings, pairs
