"""One table for traces of any origin: columns of numbers, names kept once, nesting and self time on demand."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

# The kinds of events, in the order of their numbers in the column `kind`.
KINDS = (
    "operator",  # a CPU operator of the framework: aten::mm, autograd nodes
    "launch",  # a runtime call that issues a kernel
    "copy call",  # a runtime call that issues a copy
    "sync",  # the host waits for the device
    "alloc",  # the host asks the driver for memory, or gives it back
    "runtime",  # any other runtime call
    "annotation",  # a named interval of the host: record_function, NVTX
    "step",  # one step of the loop: ProfilerStep#3
    "python",  # a Python frame
    "work",  # the host is busy, nothing else known
    "queue full",  # the host waits for room in the launch queue
    "kernel",
    "copy",
    "communication",
)
NUMBER = {kind: number for number, kind in enumerate(KINDS)}
DEVICE_KINDS = ("kernel", "copy", "communication")
HOST_KINDS = tuple(kind for kind in KINDS if kind not in DEVICE_KINDS)
CALL_KINDS = ("launch", "copy call", "sync", "alloc", "runtime", "work", "queue full")
_DEVICE_FROM = NUMBER["kernel"]
# Profilers round times to a nanosecond: a child may seem to end that much after its parent.
_SLACK_S = 2e-9


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One row of the table, as a value. `link` joins a device's work to its call; -1 means unknown."""

    index: int
    kind: str
    name: str
    row: str
    start_s: float
    end_s: float
    link: int
    stream: int
    moved_bytes: int
    line: str

    @property
    def duration_s(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


@dataclass(frozen=True, eq=False)
class Trace:
    """All events of a trace in the order of their starts; time counts in seconds from the first one.

    `kind`, `name`, `row` and `line` are numbers into KINDS, `names`, `rows` and `names`; `link` is the correlation that
    a call and what it issued have in common; `collective` is the number of a name that all ranks of a collective have
    in common; -1 means unknown. `origin` says what wrote the trace.
    """

    names: tuple[str, ...]
    rows: tuple[str, ...]
    kind: np.ndarray
    name: np.ndarray
    row: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray
    link: np.ndarray
    stream: np.ndarray
    moved_bytes: np.ndarray
    line: np.ndarray
    collective: np.ndarray
    origin: str = "unknown"
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        return f"<trace of {self.origin}: {len(self):,} events, {len(self.rows)} rows, {self.span_s:.6g} s>"

    @property
    def span_s(self) -> float:
        """From the first start to the last end."""
        return float(self.end_s.max()) if len(self) else 0.0

    @property
    def on_device(self) -> bool:
        """Whether a device took part."""
        return bool((self.kind >= _DEVICE_FROM).any())

    @property
    def uses_device(self) -> bool:
        """Whether the host issues work to a device, be it that the trace does not show the device itself."""
        return self.on_device or bool(len(self.select("launch", "copy call")))

    def select(self, *kinds: str) -> np.ndarray:
        """The indices of the events of these kinds, by start."""
        return np.flatnonzero(np.isin(self.kind, [NUMBER[kind] for kind in kinds]))

    def event(self, index: int) -> TraceEvent:
        """One event as a value."""
        line = int(self.line[index])
        return TraceEvent(
            int(index),
            KINDS[self.kind[index]],
            self.names[self.name[index]],
            self.rows[self.row[index]],
            float(self.start_s[index]),
            float(self.end_s[index]),
            int(self.link[index]),
            int(self.stream[index]),
            int(self.moved_bytes[index]),
            self.names[line] if line >= 0 else "",
        )

    def events(self, *kinds: str) -> Iterator[TraceEvent]:
        """The events of these kinds (all unless given), by start, as values."""
        return map(self.event, self.select(*(kinds or KINDS)))

    @cached_property
    def nesting(self) -> tuple[np.ndarray, np.ndarray]:
        """For each event the innermost one around it on its row (-1: none), and its self time in seconds."""
        return nest(self.row, self.start_s, self.end_s, flat=self.kind >= _DEVICE_FROM)

    @property
    def parent(self) -> np.ndarray:
        """The index of the innermost event around each event on its row; -1 for none."""
        return self.nesting[0]

    @property
    def self_s(self) -> np.ndarray:
        """The time of each event in which none of its children runs, in seconds."""
        return self.nesting[1]

    @cached_property
    def steps(self) -> tuple[tuple[float, float], ...]:
        """(start, end) in seconds of each step, as the host sees it; the whole trace where none is marked.

        Steps are the profiler's own (ProfilerStep#3) where there are any, else those marked by name, the outer ones.
        """
        marks = self.select("step")
        profilers = [i for i in marks if self.names[self.name[i]].startswith("ProfilerStep")]
        found: list[tuple[float, float]] = []
        for i in profilers or marks:
            start, end = float(self.start_s[i]), float(self.end_s[i])
            # A mark inside another does not begin a step of its own.
            if not found or start >= found[-1][1] or end > found[-1][1]:
                found.append((start, end))
        return tuple(found) if found else ((0.0, self.span_s),)

    def ancestors(self, index: int) -> Iterator[int]:
        """The indices of the events around one, innermost first."""
        parent = self.parent
        above = int(parent[index])
        while above >= 0:
            yield above
            above = int(parent[above])

    def totals(self, *kinds: str) -> dict[str, Total]:
        """By name: how often, total seconds (nested repeats of a name counted once) and self seconds."""
        found: dict[str, Total] = {}
        for i in self.select(*(kinds or ("operator",))):
            inside = any(self.name[j] == self.name[i] for j in self.ancestors(i))
            name = self.names[self.name[i]]
            before = found.get(name, Total(0, 0.0, 0.0))
            whole_s = 0.0 if inside else float(self.end_s[i] - self.start_s[i])
            found[name] = Total(before.count + 1, before.total_s + whole_s, before.self_s + float(self.self_s[i]))
        return dict(sorted(found.items(), key=lambda item: -item[1].self_s))

    def to_json(self) -> dict[str, Any]:
        """What the trace holds, as plain data: its origin, span, and how many events of each kind."""
        counts = {kind: int((self.kind == number).sum()) for number, kind in enumerate(KINDS)}
        return {"schema": 1, "origin": self.origin, "span_s": self.span_s, "events": counts, "rows": list(self.rows)}


def nest(row: np.ndarray, start_s: np.ndarray, end_s: np.ndarray, *, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parent, self time) of events that are sorted by start, outer ones first.

    An event's parent is the innermost event of its row that contains it (where none does, the innermost that has not
    ended when it starts, of which it takes their common time). Time is the parent's own where no child runs. `flat`
    events have no parent.
    """
    count = len(row)
    parent, own = [-1] * count, (end_s - start_s).tolist()
    starts, ends, rows, skip = start_s.tolist(), end_s.tolist(), row.tolist(), flat.tolist()
    stacks: list[list[int]] = [[] for _ in range(int(row.max()) + 1 if count else 0)]
    covered = starts[:]
    for i in range(count):
        if skip[i]:
            continue
        stack, begin = stacks[rows[i]], starts[i] + _SLACK_S
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack:
            # Annotations begin inside the frame that opens them, and outlast it.
            above = next((j for j in reversed(stack) if ends[j] >= ends[i] - _SLACK_S), stack[-1])
            parent[i] = above
            # Children that overlap each other are counted once.
            fresh = min(ends[i], ends[above]) - max(starts[i], covered[above])
            if fresh > 0:
                own[above] -= fresh
                covered[above] = min(ends[i], ends[above])
        stack.append(i)
    return np.array(parent, dtype=np.int64), np.maximum(np.array(own, dtype=float), 0.0)


@dataclass(frozen=True, slots=True)
class Total:
    """The events of one name: how many, their time with children and without, in seconds."""

    count: int
    total_s: float
    self_s: float


class TableBuilder:
    """Collects events column by column, in 60 bytes each; `build` sorts them and starts time at the first."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._ints = {name: array("i") for name in ("name", "row", "stream", "line", "collective")}
        self._longs = {name: array("q") for name in ("link", "moved_bytes")}
        self._kind = array("B")
        self._start, self._end = array("d"), array("d")

    def __len__(self) -> int:
        return len(self._kind)

    def name(self, text: str) -> int:
        """The number of a name."""
        return self._names.setdefault(text, len(self._names))

    def row(self, text: str) -> int:
        """The number of a row."""
        return self._rows.setdefault(text, len(self._rows))

    def add(
        self,
        kind: int,
        name: int,
        *,
        row: int,
        start: float,
        end: float,
        link: int = -1,
        stream: int = -1,
        moved_bytes: int = -1,
        line: int = -1,
        collective: int = -1,
    ) -> None:
        """Keep one event; all times in the same unit."""
        self._kind.append(kind)
        ints, longs = self._ints, self._longs
        ints["name"].append(name)
        ints["row"].append(row)
        ints["stream"].append(stream)
        ints["line"].append(line)
        ints["collective"].append(collective)
        longs["link"].append(link)
        longs["moved_bytes"].append(moved_bytes)
        self._start.append(start)
        self._end.append(end)

    def link_last(self, link: int) -> None:
        """Give the event kept last its link."""
        if len(self) and -1 <= link < 2**63:
            self._longs["link"][-1] = link

    def build(self, *, origin: str, unit_s: float = 1.0, meta: Mapping[str, Any] | None = None) -> Trace:
        """The table; times are turned into seconds from the first start."""
        start, end = np.array(self._start), np.array(self._end)
        first = float(start.min()) if len(start) else 0.0
        start, end = (start - first) * unit_s, (end - first) * unit_s
        # An outer event that starts with its first child comes before it.
        order = np.lexsort((-end, start))
        columns = {name: np.array(values)[order] for name, values in {**self._ints, **self._longs}.items()}
        return Trace(
            names=tuple(self._names),
            rows=tuple(self._rows),
            kind=np.array(self._kind, dtype=np.uint8)[order],
            start_s=start[order],
            end_s=np.maximum(end, start)[order],
            origin=origin,
            meta=dict(meta or {}),
            **columns,
        )
