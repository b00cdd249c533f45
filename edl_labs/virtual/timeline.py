"""What ran when, as a value: spans on rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.values import Value


@dataclass(frozen=True)
class Span:
    """One stretch of time on one row. `kind` is 'call', 'work' or 'wait' on the host, 'kernel' or 'copy' elsewhere.

    `issue` joins a device's span to the host's call that issued it; `stream` is None where no stream takes part.
    """

    row: str
    kind: str
    name: str
    start_s: float
    end_s: float
    stream: int | None = None
    issue: int | None = None


@dataclass(frozen=True, repr=False)
class Timeline(Value, Plottable):
    """All spans of a program, in the order of their rows and starts."""

    ROWS = "spans"

    spans: tuple[Span, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows in the order to show them: the host, the streams, the copy engines."""
        return tuple(dict.fromkeys(span.row for span in self.spans))

    @property
    def makespan_s(self) -> float:
        """When the last span ends; time starts at 0."""
        return max((span.end_s for span in self.spans), default=0.0)

    def busy_s(self, *kinds: str) -> float:
        """How long at least one span of these kinds runs; 'kernel' and 'copy' are those of the device."""
        return sum(end - start for start, end in _union(self._intervals(kinds)))

    def overlap_s(self, first: str, second: str) -> float:
        """How long a span of one kind and a span of the other run at the same time."""
        return _common(_union(self._intervals((first,))), _union(self._intervals((second,))))

    @property
    def hidden_copy_fraction(self) -> float:
        """The share of the time spent copying during which a kernel runs too; 0 without copies."""
        copying_s = self.busy_s("copy")
        return self.overlap_s("copy", "kernel") / copying_s if copying_s else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The timeline as plain data, with a schema number."""
        return {"schema": 1, "spans": [vars(span).copy() for span in self.spans]}

    def to_chrome_trace(self) -> dict[str, Any]:
        """The timeline as Chrome trace events, for json.dump; Perfetto and chrome://tracing open them."""
        tids = {row: number for number, row in enumerate(self.rows)}
        events = [{"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "VirtualGPU"}}]
        for row, tid in tids.items():
            events.append({"name": "thread_name", "ph": "M", "pid": 0, "tid": tid, "args": {"name": row}})
            events.append({"name": "thread_sort_index", "ph": "M", "pid": 0, "tid": tid, "args": {"sort_index": tid}})
        for span in self.spans:
            events.extend(_chrome_events(span, tids[span.row]))
        return {"displayTimeUnit": "ns", "traceEvents": events}

    def _intervals(self, kinds: tuple[str, ...]) -> list[tuple[float, float]]:
        return [(span.start_s, span.end_s) for span in self.spans if span.kind in kinds]


def _chrome_events(span: Span, tid: int) -> list[dict[str, Any]]:
    start, end = span.start_s * 1e6, span.end_s * 1e6
    base = {"pid": 0, "tid": tid}
    args = {} if span.stream is None else {"stream": span.stream}
    complete = {**base, "name": span.name, "cat": span.kind, "ph": "X", "ts": start, "dur": end - start, "args": args}
    if span.issue is None:
        return [complete]
    # An arrow from the call to what it issued.
    flow = {**base, "name": "issue", "cat": "issue", "id": span.issue}
    if span.kind == "call":
        return [complete, {**flow, "ph": "s", "ts": start}]
    return [complete, {**flow, "ph": "f", "bp": "e", "ts": start}]


def _union(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _common(first: list[tuple[float, float]], second: list[tuple[float, float]]) -> float:
    total, i, j = 0.0, 0, 0
    while i < len(first) and j < len(second):
        total += max(0.0, min(first[i][1], second[j][1]) - max(first[i][0], second[j][0]))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return total
