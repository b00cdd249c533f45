"""All ranks of a run in one report: who waits for whom, who computes longest, and what communication is hidden."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.trace._diagnose import Diagnosis, diagnosed, first_step
from edl_labs.trace._read_trace import read_ranks
from edl_labs.trace.collectives import function_name, is_host_collective
from edl_labs.trace.trace_table import Trace, TraceEvent
from edl_labs.units import percent, seconds
from edl_labs.values import Value

# Waiting for less than this part of a step does not matter in practice.
_BALANCED = 0.01
# A pair of ranks is not worth a line below this part of a step.
_LEAST_WAIT = 0.005
# Transfers between two ranks, by NCCL's kernel or torch's name.
_PAIRWISE = re.compile(r"SendRecv|\b(send|recv)\b", re.IGNORECASE)
# More pairs than this are not read in a report.
_PAIRS = 8
# Profilers round times to this.
_CLOCK_S = 2e-9


@dataclass(frozen=True, repr=False)
class RankSummary(Value):
    """One rank, times in seconds a step: wall, computing, communication that is not hidden, waiting in collectives for
    the last rank to arrive, and what the others wait for this one.

    `overlap` is the communication hidden behind computing as a part of all communication, over the whole trace, as
    HolisticTraceAnalysis defines it; None where nothing communicates.
    """

    name: str
    rank: int
    wall_s: float
    compute_s: float
    exposed_s: float
    overlap: float | None
    waits_s: float
    waited_for_s: float
    verdict: str


@dataclass(frozen=True, repr=False)
class RanksDiagnosis(Value):
    """What `diagnose_ranks` found: a summary and a diagnosis of each rank, and `waits_s[i][j]`, the seconds a step that
    rank i waits for rank j. `notes` say what could not be compared.
    """

    ranks: tuple[RankSummary, ...]
    waits_s: tuple[tuple[float, ...], ...]
    notes: tuple[str, ...]
    reports: tuple[Diagnosis, ...]
    DERIVED: ClassVar[tuple[str, ...]] = ("imbalance",)
    ROWS: ClassVar[str] = "ranks"

    @property
    def imbalance(self) -> float:
        """By how much the rank that computes longest exceeds the mean of all."""
        computed = [rank.compute_s for rank in self.ranks]
        mean = sum(computed) / len(computed)
        return max(computed) / mean - 1.0 if mean > 0 else 0.0

    @property
    def slowest(self) -> Diagnosis:
        """The rank that the others wait for most; where none waits, the one whose steps take longest."""
        place = max(range(len(self.ranks)), key=lambda i: (self.ranks[i].waited_for_s, self.ranks[i].wall_s))
        return self.reports[place]

    def text(self) -> str:
        """The report as plain text."""
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([self._headline(), *notes, "", *self._table(), "", *self._waits()])

    def __str__(self) -> str:
        return self.text()

    def _headline(self) -> str:
        if len(self.ranks) == 1:
            return "1 rank: there is no other rank to compare it with"
        late = max(self.ranks, key=lambda rank: rank.waited_for_s)
        longest = max(rank.waits_s for rank in self.ranks)
        wall_s = max(rank.wall_s for rank in self.ranks)
        if longest < _BALANCED * wall_s:
            return f"{len(self.ranks)} ranks: balanced; no rank waits for another for as much as 1 % of a step"
        taken = f"{seconds(longest)} per step ({percent(longest / wall_s, digits=2)})"
        return f"{len(self.ranks)} ranks: rank {late.rank} arrives last; another rank waits up to {taken}"

    def _table(self) -> list[str]:
        head = ("rank", "step", "compute", "exposed comm.", "overlap", "waits", "waited for", "verdict")
        rows = [head, *(_cells(rank) for rank in self.ranks)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

    def _waits(self) -> list[str]:
        said = f"computing: the busiest rank takes {percent(round(self.imbalance, 4), digits=2)} longer than the mean"
        lines = zip(self.ranks, self.waits_s, strict=True)
        pairs = [(wait_s, i, j) for i, row in lines for j, wait_s in zip(self.ranks, row, strict=True)]
        shown = [pair for pair in sorted(pairs, key=lambda pair: -pair[0]) if pair[0] > _LEAST_WAIT * pair[1].wall_s]
        waits = (f"rank {i.rank} waits {seconds(wait_s)} per step for rank {j.rank}" for wait_s, i, j in shown[:_PAIRS])
        return [said, *waits]


def _cells(rank: RankSummary) -> tuple[str, ...]:
    times = [seconds(value) for value in (rank.wall_s, rank.compute_s, rank.exposed_s)]
    overlap = "none" if rank.overlap is None else percent(rank.overlap, digits=3)
    return (str(rank.rank), *times, overlap, seconds(rank.waits_s), seconds(rank.waited_for_s), rank.verdict)


_Source = str | os.PathLike[str] | Trace


@checked_arguments()
def diagnose_ranks(sources: _Source | Iterable[_Source], *, skip: int | None = None) -> RanksDiagnosis:
    """One report over the ranks of a run, from a file a rank, files with several ranks, or traces.

    Collectives are matched by name, group and order. All ranks leave one together, so the rank that spends the least
    time in it arrived last, and the others wait for it: no clocks are compared.
    """
    if isinstance(sources, (str, os.PathLike, Trace)):
        sources = [sources]
    named = [pair for source in sources for pair in _traces(source)]
    if not named:
        raise UsageError(
            "no trace was passed",
            why="a report on all ranks needs the trace of each rank",
            next="pass the file of each rank",
        )
    numbers = _numbers([trace for _, trace in named])
    order = sorted(range(len(named)), key=lambda place: numbers[place])
    traces = [named[place][1] for place in order]
    reports = [diagnosed(named[place][1], name=named[place][0], skip=skip) for place in order]
    waits, notes = _waiting(traces, skip=skip)
    ranks = [
        _summary(report, numbers[place], sum(waits[i]), sum(row[i] for row in waits))
        for i, (report, place) in enumerate(zip(reports, order, strict=True))
    ]
    notes = [*_missing_ranks(traces), *_same_ranks(traces), *notes]
    return RanksDiagnosis(tuple(ranks), tuple(map(tuple, waits)), tuple(notes), tuple(reports))


def _traces(source: _Source) -> list[tuple[str, Trace]]:
    if isinstance(source, Trace):
        return [("trace", source)]
    name, found = Path(source).name, read_ranks(source)
    return [(f"{name}, rank {number}" if len(found) > 1 else name, trace) for number, trace in enumerate(found)]


def _numbers(traces: Sequence[Trace]) -> list[int]:
    """The rank of each trace: what it says itself where that tells all apart, else its place."""
    known = _said_ranks(traces)
    return known if len(set(known)) == len(traces) else list(range(len(traces)))


def _said_ranks(traces: Sequence[Trace]) -> list[int]:
    said = [(trace.meta.get("distributedInfo") or {}).get("rank") for trace in traces]
    return [rank for rank in said if type(rank) is int]


def _same_ranks(traces: Sequence[Trace]) -> list[str]:
    counts = sorted(Counter(_said_ranks(traces)).items())
    return [
        f"{n} traces say that they belong to rank {rank}, so the ranks are numbered in the order of the traces"
        for rank, n in counts
        if n > 1
    ]


def _missing_ranks(traces: Sequence[Trace]) -> list[str]:
    said = [(trace.meta.get("distributedInfo") or {}).get("world_size") for trace in traces]
    size = max((size for size in said if type(size) is int), default=0)
    missing = size > len(traces)
    return (
        [f"only {len(traces)} of {size} ranks were passed, so waiting for the other ranks is not visible"]
        if missing
        else []
    )


def _summary(report: Diagnosis, rank: int, waits_s: float, waited_for_s: float) -> RankSummary:
    wall_s, shares = report.attribution.wall_s, report.shares
    return RankSummary(
        name=report.name,
        rank=rank,
        wall_s=wall_s,
        compute_s=wall_s * shares["compute"],
        exposed_s=wall_s * shares["communication"],
        overlap=report.overlap,
        waits_s=waits_s,
        waited_for_s=waited_for_s,
        verdict=report.verdict,
    )


def _waiting(traces: Sequence[Trace], *, skip: int | None) -> tuple[list[list[float]], list[str]]:
    """Seconds a step that each rank waits for each other, and what could not be matched."""
    waits = [[0.0] * len(traces) for _ in traces]
    taken = [_collectives(trace) for trace in traces]
    steps = [trace.steps[first_step(trace, skip) :] for trace in traces]
    notes = []
    for key in dict.fromkeys(key for found in taken for key in found):
        members = [i for i, found in enumerate(taken) if key in found]
        if len(members) > 2 and _PAIRWISE.search(key):
            notes.append(f"{key} is not compared, because the traces do not say which two ranks exchange data")
            continue
        counts = [len(taken[i][key]) for i in members]
        if len(set(counts)) > 1:
            often = f"{min(counts)} to {max(counts)} times"
            notes.append(f"ranks differ in how often {key} runs ({often}), so only the first runs are compared")
        for each in zip(*(taken[i][key] for i in members), strict=False):
            last = min(range(len(members)), key=lambda place: each[place].duration_s)
            for i, event in zip(members, each, strict=True):
                wait_s = event.duration_s - each[last].duration_s
                if wait_s > _CLOCK_S and steps[i][0][0] <= event.start_s <= steps[i][-1][1]:
                    waits[i][members[last]] += wait_s / len(steps[i])
    return waits, notes


def _collectives(trace: Trace) -> dict[str, list[TraceEvent]]:
    """By name the collectives of this rank, in order; without a device those that the host annotates."""
    found: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in trace.events("communication") if trace.on_device else trace.events("annotation"):
        label = int(trace.collective[event.index])
        if trace.on_device or is_host_collective(event.name):
            found[trace.names[label] if label >= 0 else function_name(event.name)].append(event)
    return found
