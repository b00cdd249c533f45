"""A trace as analysed: what all questions about it share, worked out once, and the line that each event comes from."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from edl_labs.arguments import require_amount
from edl_labs.trace._read_trace import read_trace
from edl_labs.trace.blocking_copies import BlockingCopy, blocking_copies
from edl_labs.trace.dependency_graph import DependencyGraph, dependency_graph
from edl_labs.trace.device_work import DeviceWork, device_work, issuing_calls, tiny_reads
from edl_labs.trace.errors import TraceError
from edl_labs.trace.host_intervals import HostStretches, host_intervals
from edl_labs.trace.trace_table import DEVICE_KINDS, KINDS, Trace
from edl_labs.units import counted
from edl_labs.values import Value

_CODE = "code between the calls"
_FRAME = re.compile(r"(?P<file>[^\s(]+\.py)\((?P<line>\d+)\): (?P<function>.+)")
_LIBRARIES = re.compile(r"(^|/)(edl_labs/trace|torch|numpy|site-packages|lib/python3\.\d+)(/|\.py)|^<")
_FILE = re.compile(r"(?P<top>\w+)(?P<inside>/[^\s(]+)?(?:\.py)?\(\d+\): ")


@dataclass(frozen=True, repr=False)
class Blame(Value):
    """`line`: the Python line or annotation ('' where the trace has none); `what` ran there; its seconds and share."""

    line: str
    what: str
    taken_s: float
    share: float


class Places:
    """For each event of a trace the line that it comes from; device work is traced to its call.

    The line is the one noted with the event, or the innermost Python frame outside of libraries, or the innermost
    annotation that is not a step; '' where the trace has none. `meta["sampled_lines"]` of a trace are lines that were
    sampled while it was recorded, with their times.
    """

    def __init__(self, trace: Trace, calls: Mapping[int, int]) -> None:
        self._trace, self._calls = trace, calls
        self._lines = _lines(trace)
        self._samples: Sequence[tuple[float, str]] = trace.meta.get("sampled_lines", ())
        self._moments = [moment for moment, _ in self._samples]

    def where(self, event: int) -> tuple[str, str]:
        """(line, what): the line that an event comes from, and the event's name."""
        if event < 0:
            return "", _CODE
        trace = self._trace
        kind, name = KINDS[trace.kind[event]], trace.names[trace.name[event]]
        if kind in DEVICE_KINDS:
            event = self._calls.get(int(trace.link[event]), -1)
        return self._lines[event] if event >= 0 else "", _CODE if kind == "step" else name

    def is_on_device(self, event: int) -> bool:
        """Whether an event is the device's work."""
        return event >= 0 and KINDS[self._trace.kind[event]] in DEVICE_KINDS

    def sampled(self, intervals: Iterable[tuple[float, float]]) -> Counter[str]:
        """How often each line was seen during intervals that follow each other, where lines were sampled."""
        found: Counter[str] = Counter()
        for start_s, end_s in intervals:
            low, high = bisect_left(self._moments, start_s), bisect_right(self._moments, end_s)
            found.update(line for _, line in self._samples[low:high])
        return found


def _of_library(name: str) -> bool:
    """Whether a frame, 'file.py(12): function', is a library's; profilers write the standard library's without a path.

    >>> _of_library("logging/__init__.py(1489): info"), _of_library("train.py(12): step")
    (True, False)
    """
    found = _FILE.match(name)
    standard = found is not None and found["top"] in sys.stdlib_module_names
    # A module of one's own may be called like one of the standard library: then it is a file here.
    return bool(_LIBRARIES.search(name)) or (standard and not Path(name.partition("(")[0]).exists())


def _lines(trace: Trace) -> list[str]:
    """By event its own line, else that of what is around it; an annotation's name where nothing around has a line."""
    frames = [name if _FRAME.match(name) and not _of_library(name) else "" for name in trace.names]
    # The last is that of line -1, which means unknown.
    noted = [*("" if _LIBRARIES.search(name) else name for name in trace.names), ""]
    lines: list[str] = []
    marks: list[str] = []
    columns = (column.tolist() for column in (trace.kind, trace.name, trace.line, trace.parent))
    # What is around an event comes before it in the table.
    for number, name, line, above in zip(*columns, strict=True):
        kind = KINDS[number]
        own = (frames[name] if kind == "python" else "") or (noted[line] if kind != "step" else "")
        lines.append(own or (lines[above] if above >= 0 else ""))
        mark = trace.names[name] if kind == "annotation" else ""
        marks.append(mark or (marks[above] if above >= 0 else ""))
    return [line or mark for line, mark in zip(lines, marks, strict=True)]


@dataclass(frozen=True, eq=False)
class AnalysedTrace:
    """A trace with its host, device, steps and dependency graph, each computed at its first use.

    What takes a trace takes this too: give it where several questions are asked about one trace.
    """

    trace: Trace

    @classmethod
    def of(cls, trace: TraceLike) -> AnalysedTrace:
        """The trace as analysed, from a file's path too; itself where it is already."""
        if isinstance(trace, AnalysedTrace):
            return trace
        return cls(trace if isinstance(trace, Trace) else read_trace(trace))

    @cached_property
    def device(self) -> DeviceWork:
        """What the device does; without operations where there is none."""
        return device_work(self.trace, self._calls, self._reads)

    @cached_property
    def host(self) -> HostStretches:
        """What the host does at each moment."""
        return host_intervals(self.trace, self._reads, self.blocking.keys())

    @cached_property
    def blocking(self) -> Mapping[int, BlockingCopy]:
        """By index of a host's call the copy that it waits for."""
        return blocking_copies(self.trace)

    @cached_property
    def graph(self) -> DependencyGraph:
        """What the host does in turn, what that issues, and what waits for what."""
        return dependency_graph(self.trace, self.host, self.device, self.blocking)

    @cached_property
    def places(self) -> Places:
        """The line that each event comes from."""
        return Places(self.trace, self._calls)

    @cached_property
    def step_starts(self) -> list[float]:
        """When the host began each step."""
        return [start for start, _ in self.trace.steps]

    def step_bounds(self, *, skip: int = 0) -> list[float]:
        """n + 1 moments with n steps of wall time between them, after the first `skip`.

        A step ends when the last device operation that it issued ends, so that work the device still owes is counted.
        """
        require_amount(skip=skip)
        steps = self.trace.steps
        if not steps[skip:]:
            raise TraceError(
                f"no step is left after skipping {skip}",
                why=f"the trace has {counted(len(steps), 'step')}",
                next="skip fewer steps",
            )
        if not self.device.operations:
            return [*self.step_starts[skip:], steps[-1][1]]
        # With a device the host may run ahead: a step's wall time ends with the device's work, not with the host's.
        done = self._step_ends
        bounds = [max(steps[skip][0], done[skip - 1]) if skip else steps[0][0]]
        for end_s in (*done[skip:-1], max(done[-1], steps[-1][1])):
            bounds.append(max(bounds[-1], end_s))
        return bounds

    def lasting_bounds(self, *, skip: int = 0) -> list[float]:
        """The same; TraceError where the steps take no time."""
        bounds = self.step_bounds(skip=skip)
        if not bounds[-1] > bounds[0]:
            raise TraceError(
                "the steps take no time",
                why="every event in them lasts 0 s, so shares cannot be computed",
                next="record a loop that does some work, and check that the trace contains times",
            )
        return bounds

    @cached_property
    def _step_ends(self) -> list[float]:
        """By step when the last operation that it issued ends; the host's end where it issued none."""
        done = [0.0] * len(self.step_starts)
        last = len(done) - 1
        for operation in self.device.operations:
            issued_s = float(self.trace.start_s[operation.call]) if operation.call >= 0 else operation.start_s
            step = bisect_right(self.step_starts, issued_s) - 1
            # What is issued after the last step belongs to no step.
            if step >= 0 and (step < last or issued_s <= self.trace.steps[last][1]):
                done[step] = max(done[step], operation.end_s)
        return [found or end for found, (_, end) in zip(done, self.trace.steps, strict=True)]

    @cached_property
    def _calls(self) -> dict[int, int]:
        return issuing_calls(self.trace)

    @cached_property
    def _reads(self) -> set[int]:
        return tiny_reads(self.trace)


def step_times_s(bounds: list[float]) -> list[float]:
    """The wall times of the steps between bounds that take any, or 0 s where none does."""
    return [end - start for start, end in pairwise(bounds) if end > start] or [0.0]


# What every question about a trace takes: its table, what is known of it already, or a file's path.
TraceLike = Trace | AnalysedTrace | str | os.PathLike[str]
