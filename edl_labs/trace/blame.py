"""Who is to blame: from an event of a trace to the Python line, or the annotation, that caused it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from edl_labs.trace.trace_table import DEVICE_KINDS, KINDS, Trace
from edl_labs.values import Value

_CODE = "code between the calls"
_FRAME = re.compile(r"(?P<file>[^\s(]+\.py)\((?P<line>\d+)\): (?P<function>.+)")
_LIBRARIES = re.compile(r"(^|/)(edl_labs/trace|torch|numpy|contextlib|threading|site-packages)(/|\.py)|^<")


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
    annotation that is not a step; '' where the trace has none.
    """

    def __init__(self, trace: Trace, calls: Mapping[int, int]) -> None:
        self._trace, self._calls = trace, calls
        self._lines = _lines(trace)

    def where(self, event: int) -> tuple[str, str]:
        """(line, what): the line that an event comes from, and the event's name."""
        if event < 0:
            return "", _CODE
        trace = self._trace
        kind, name = KINDS[trace.kind[event]], trace.names[trace.name[event]]
        if kind in DEVICE_KINDS:
            event = self._calls.get(int(trace.link[event]), -1)
        return self._lines[event] if event >= 0 else "", _CODE if kind == "step" else name


def _lines(trace: Trace) -> list[str]:
    """By event its own line, else that of what is around it; an annotation's name where nothing around has a line."""
    frames = [name if _FRAME.match(name) and not _LIBRARIES.search(name) else "" for name in trace.names]
    # The last is that of line -1, which stands for unknown.
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
