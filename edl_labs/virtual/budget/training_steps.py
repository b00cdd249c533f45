"""A training run step by step: how long each step took on one GPU, and what its kernels waited for meanwhile.

A step ends when every layer is updated once more, the last one when the run does. Between two kernels, time belongs to
what the next kernel waited for last: a copy, a sum, GPUs that came late to one, or the host.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from edl_labs.values import Value
from edl_labs.virtual.budget.replay import TrainingRun
from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.cluster.machine import ATTOSECONDS
from edl_labs.virtual.cluster.meetings import COMPUTE, MARK, PART, TO_DEVICE, RankOperation
from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.timeline import Span, Timeline

WAITS = ("copy", "sum", "others", "host")
MOST_BARS = 3000  # of a GPU, 125 kB as JSON: the reference has 60 to 1,500, a program that does all wrong some 3,500
_MOST_STEPS, _MOST_LETTERS = 200, 40  # of what is read back; no drawn job has more than 5 steps, no name 20 letters
_NANOSECONDS = 1e9  # of a second
# (row, kind of a span) by the one letter that data have for it.
_ROWS = {
    "l": ("host", "load"),
    "w": ("host", "wait"),
    "k": ("kernels", "kernel"),
    "c": ("copies in", "copy"),
    "r": ("copies out", "copy"),
    "s": ("sums", "comm"),
}
Interval = tuple[int, int]


@dataclass(frozen=True, repr=False)
class StepTime(Value):
    """One step: its start and end, how long kernels ran, and how long each cause kept them from running."""

    start_s: float
    end_s: float
    kernels_s: float
    copy_s: float = 0.0
    sum_s: float = 0.0
    others_s: float = 0.0
    """Time spent waiting for other GPUs to reach a sum."""
    host_s: float = 0.0

    @property
    def duration_s(self) -> float:
        """The duration of the step: its kernels and the four kinds of waiting."""
        return self.end_s - self.start_s

    def parts(self) -> dict[str, float]:
        """Where its time went."""
        return {"kernels": self.kernels_s, **{name: getattr(self, f"{name}_s") for name in WAITS}}


@dataclass(frozen=True, repr=False)
class TrainingSteps(Value):
    """A run as GPU 0 of `gpus` saw it: its steps, and its bars, of which the last `left_out` were too many to keep."""

    ROWS = "steps"

    gpus: int
    steps: tuple[StepTime, ...]
    timeline: Timeline
    left_out: int = 0

    @property
    def makespan_s(self) -> float:
        """When the run ends."""
        return self.steps[-1].end_s

    def to_plain(self) -> dict[str, Any]:
        """The steps as small plain data; bars have whole nanoseconds."""
        letters = {row: letter for letter, row in _ROWS.items()}
        bars = [[letters[s.row, s.kind], s.name, *map(_ns, (s.start_s, s.end_s))] for s in self.timeline.spans]
        steps = [[one.end_s, *one.parts().values()] for one in self.steps]
        return {"gpus": self.gpus, "steps": steps, "bars": bars, "left_out": self.left_out}

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """What `to_plain` gave; ReplayError for anything else, whatever it is."""
        try:
            found = _steps(data["steps"])
            gpus, left_out = data["gpus"], data["left_out"]
            _require(type(gpus) is int and gpus > 0 and type(left_out) is int and left_out >= 0)
            _require(type(data["bars"]) is list and len(data["bars"]) <= MOST_BARS)
            spans = tuple(_span(*bar) for bar in data["bars"])
        except (TypeError, ValueError, LookupError):
            why = "the timeline was not written by to_plain(), or it has been changed since then"
            raise ReplayError("this is not a saved timeline", why=why, next="grade again") from None
        return cls(gpus, found, Timeline(spans), left_out)


def training_steps(run: TrainingRun, job: TrainingJob, *, most_bars: int = MOST_BARS) -> TrainingSteps:
    """The steps of a run of a job; ReplayError where some layer is never updated so often, so that no step ends."""
    side = _Gpu(run)
    ends = side.step_ends(job)
    end = round(run.makespan_s * ATTOSECONDS)
    bounds = [0, *ends[:-1], end]
    parts = side.parts(bounds)
    steps = tuple(
        StepTime(bounds[k] / ATTOSECONDS, bounds[k + 1] / ATTOSECONDS, *(one / ATTOSECONDS for one in parts[k]))
        for k in range(job.steps)
    )
    spans = sorted(side.spans(job), key=lambda span: span.start_s)
    kept, rows = spans[:most_bars], [row for row, _ in _ROWS.values()]
    kept.sort(key=lambda span: (rows.index(span.row), span.start_s))
    return TrainingSteps(job.ranks, steps, Timeline(tuple(kept)), max(0, len(spans) - most_bars))


class _Gpu:
    """GPU 0 of a played run: its operations, what each came after, and where its host was."""

    def __init__(self, run: TrainingRun) -> None:
        graph = run.replay.engine.graph
        self.nodes: list[RankOperation] = [node for node in graph.nodes if node.rank == 0 and node.done is not None]
        self.before: dict[int, list[RankOperation]] = defaultdict(list)
        for node in self.nodes:
            for other in node.followers or ():
                if other.gate is not node:
                    self.before[other.seq].append(node)
        self.kernels = sorted((one for one in self.nodes if one.engine == COMPUTE), key=lambda one: one.start)
        overhead = round(graph.machine.call_overhead_s * ATTOSECONDS)
        self._follow_host(run.replay.programs[0], overhead)

    def _follow_host(self, program: list[dict[str, Any]], overhead: int) -> None:
        """When the host issued each operation, when it loaded, and when and for which mark it waited."""
        marks = {node.index: node for node in self.nodes if node.entry["op"] in ("synchronize", "sync_stream")}
        self.issued: list[int] = []
        self.loads: list[Interval] = []
        self.waits: list[tuple[int, int, RankOperation]] = []
        now = 0
        for index, entry in enumerate(program):
            now += overhead
            self.issued.append(now)
            until = now
            if entry["op"] == "host_work":
                until = now + round(entry["duration_s"] * ATTOSECONDS)
                self.loads.append((now, until))
            elif index in marks:
                until = max(now, marks[index].done or 0)
                self.waits.append((now, until, marks[index]))
            now = until
        self.host_end = now

    def step_ends(self, job: TrainingJob) -> list[int]:
        """The times at which every layer has been updated once, twice and so on."""
        updated, ends = [0] * job.layers, list[int]()
        for node in self.kernels:
            if node.entry["name"].startswith("update"):
                first, stop = map(int, node.entry["name"].split()[1:])
                for i in range(first, stop):
                    updated[i] += 1
                if min(updated) > len(ends):
                    ends.append(node.done or 0)
        if len(ends) != job.steps:
            why = f"every layer is updated {len(ends)} times, but there are {job.steps} steps"
            raise ReplayError(
                "cannot find where each step of this run ends",
                why=why,
                next="replay a run that updates every layer once per step",
            )
        return ends

    def parts(self, bounds: list[int]) -> list[list[int]]:
        """By step, how long kernels ran and each of WAITS took."""
        found = [[0] * (1 + len(WAITS)) for _ in bounds[1:]]
        for column, low, high in self._columns(bounds[-1]):
            for k in range(len(found)):
                found[k][column] += max(0, min(high, bounds[k + 1]) - max(low, bounds[k]))
        return found

    def _columns(self, end: int) -> Iterator[tuple[int, int, int]]:
        """All time until the end: which column it counts in, from when to when."""
        now = 0
        for kernel in self.kernels:
            yield from self._waited(kernel, now, kernel.start)
            assert kernel.done is not None
            yield 0, kernel.start, kernel.done
            now = kernel.done
        last = max(now, min(self.host_end, end))
        yield from self._by_host(now, last)
        yield _column("others"), last, end

    def _waited(self, node: RankOperation, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """What an operation waited for between two moments, the latter no later than its start."""
        stack = [(node, low, high)]
        while stack:
            one, low, high = stack.pop()
            if low >= high:
                continue
            issued = self.issued[one.index]
            after = max(self.before[one.seq], key=lambda other: other.done or 0, default=None)
            freed = 0 if after is None else after.done or 0
            ready = min(high, max(low, issued, freed))
            if ready < high:  # it may begin, and does not: its engine is busy, or others are not there yet
                yield _column("others" if one.engine == PART else "copy"), ready, high
            if after is None or issued >= freed:
                yield from self._by_host(low, ready)
                continue
            begun = min(ready, max(low, after.start))
            if after.engine == MARK:
                begun = ready
            elif begun < ready:
                kind = {COMPUTE: "kernels", PART: "sum"}.get(after.engine, "copy")
                yield _column(kind), begun, ready
            stack.append((after, low, begun))

    def _by_host(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Time until the host came: what it waited for itself, or else its own loads and calls."""
        now = low
        for since, until, mark in self.waits:
            if until > now and since < high:
                yield _column("host"), now, max(now, since)
                now = max(now, since)
                yield from self._waited(mark, now, min(until, high))
                now = min(until, high)
        yield _column("host"), now, high

    def spans(self, job: TrainingJob) -> Iterator[Span]:
        """All bars of the GPU and its host, with names made here: what a program's record says is not repeated."""
        for low, high in self.loads:
            yield _span("l", "load", _nanoseconds(low), _nanoseconds(high))
        for low, high, _ in self.waits:
            if high > low:
                yield _span("w", "wait", _nanoseconds(low), _nanoseconds(high))
        letters = {COMPUTE: "k", TO_DEVICE: "c", PART: "s"}
        for node in self.nodes:
            if node.engine != MARK and node.done is not None:
                letter = letters.get(node.engine, "r")
                yield _span(letter, _name(node, job), _nanoseconds(node.start), _nanoseconds(node.done))


def _name(node: RankOperation, job: TrainingJob) -> str:
    if node.engine == COMPUTE:
        name = str(node.entry["name"])
        kind = name.rstrip("0123456789 ")
        return " ".join([kind, *(str(int(one)) for one in name[len(kind) :].split())])
    if node.engine != PART:
        return "data" if node.engine == TO_DEVICE else "losses"
    (_, low, high), *_ = node.entry["reads"]
    first, last = job.bounds.index(low), job.bounds.index(high) - 1
    return f"sum {first}" if first == last else f"sum {first} to {last}"


def _column(name: str) -> int:
    return ("kernels", *WAITS).index(name)


def _nanoseconds(moment: int) -> int:
    return round(moment / (ATTOSECONDS / _NANOSECONDS))


def _ns(time_s: float) -> int:
    return round(time_s * _NANOSECONDS)


def _span(letter: str, name: str, start_ns: int, end_ns: int) -> Span:
    _require(type(name) is str and len(name) <= _MOST_LETTERS and type(start_ns) is type(end_ns) is int)
    _require(0 <= start_ns <= end_ns)
    row, kind = _ROWS[letter]
    return Span(row, kind, name, start_ns / _NANOSECONDS, end_ns / _NANOSECONDS)


def _steps(data: Any) -> tuple[StepTime, ...]:
    _require(type(data) is list and 0 < len(data) <= _MOST_STEPS)
    found, start = [], 0.0
    for end, *parts in data:
        _require(all(type(one) in (int, float) and math.isfinite(one) for one in (end, *parts)))
        _require(end >= start and len(parts) == 1 + len(WAITS) and min(parts) >= 0)
        found.append(StepTime(start, float(end), *map(float, parts)))
        start = float(end)
    return tuple(found)


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def gap_parts(theirs: StepTime, other: StepTime, *, least: float = 0.02) -> Mapping[str, float]:
    """Where one step's time differs from another's, the largest first: seconds by kernels or by what they waited for.

    What is less than `least` of the other step is left out.
    """
    mine, its = theirs.parts(), other.parts()
    differences = {name: mine[name] - its[name] for name in mine}
    large: Iterable[str] = [name for name, one in differences.items() if abs(one) > least * other.duration_s]
    return {name: differences[name] for name in sorted(large, key=lambda name: -abs(differences[name]))}
