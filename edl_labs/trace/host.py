"""What the host does at each moment: nested events of its threads, flattened into stretches with a cause each."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from edl_labs.trace.classify import DATA, EMPTY_CACHE
from edl_labs.trace.table import DEVICE_KINDS, KINDS, Trace

# The causes among which wall time is shared out, in the order in which they are shown.
CAUSES = ("compute", "communication", "copy", "launch", "sync", "data", "alloc", "host")
# One number: what item(), a comparison or a print of a scalar brings to the host.
READ_BYTES = 16
# On a CPU an operator shorter than this is mostly dispatch: checks, strides, allocation, autograd's bookkeeping.
TINY_OPERATOR_S = 15e-6
_CPU_COPY = re.compile(r"aten::(copy_|_to_copy|to|contiguous|clone)$")
_CPU_ALLOC = re.compile(r"aten::(empty|empty_strided|empty_like|resize_|malloc)$|\[memory\]")
_FIRST_CALL = re.compile(r"make context|load |cuModule|cuLibrary")


class Stretch(NamedTuple):
    """The host from `start_s` to `end_s` at one thing; `event` is its index in the table, -1 for code in between."""

    start_s: float
    end_s: float
    cause: str
    event: int


@dataclass(frozen=True)
class Host:
    """The host's whole time as stretches without gaps."""

    stretches: tuple[Stretch, ...]

    def between(self, start_s: float, end_s: float) -> list[Stretch]:
        """The stretches from `start_s` to `end_s`, cut to it."""
        place = max(bisect_right(self._starts, start_s) - 1, 0)
        found = []
        # By index: a slice would copy the rest of the trace for each gap.
        for number in range(place, len(self.stretches)):
            stretch = self.stretches[number]
            if stretch.start_s >= end_s:
                break
            low, high = max(stretch.start_s, start_s), min(stretch.end_s, end_s)
            if high > low:
                found.append(stretch._replace(start_s=low, end_s=high))
        return found

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", [stretch.start_s for stretch in self.stretches])

    _starts: list[float] = None  # type: ignore[assignment]


def host_of(trace: Trace) -> Host:
    """The host's stretches: where several threads are busy, the ones that issue device work hide the main one."""
    causes = _causes(trace)
    main, others = _threads(trace)
    stretches = _flat(trace, main, causes)
    for row in others:
        stretches = _over(stretches, _flat(trace, row, causes))
    filled = _filled(stretches, trace.span_s)
    return Host(tuple(filled if trace.on_device else _joined(filled)))


def tiny_reads(trace: Trace) -> set[int]:
    """The links of copies of one number to the host: those that reads such as item() cause."""
    found = set()
    for i in trace.select("copy"):
        name = trace.names[trace.name[i]]
        to_host = name == "item" or "DtoH" in name or "D2H" in trace.rows[trace.row[i]] or "Device ->" in name
        if to_host and (name == "item" or 0 <= trace.moved_bytes[i] <= READ_BYTES):
            found.add(int(trace.link[i]))
    return found


def _causes(trace: Trace) -> list[str | None]:
    """By event its cause; None where the cause is that of what is around it."""
    found: list[str | None] = []
    reads, on_device = tiny_reads(trace), trace.on_device
    parent = trace.parent
    kinds, names, links = trace.kind.tolist(), trace.name.tolist(), trace.link.tolist()
    fixed = [_named_cause(name) for name in trace.names]
    calls: dict[int, int] = {}
    for i, number in enumerate(kinds):
        kind, name = KINDS[number], trace.names[names[i]]
        above = found[parent[i]] if parent[i] >= 0 else None
        if above in ("data", "alloc") and kind not in ("sync", "copy call"):
            found.append(above)
        elif kind in ("annotation", "step", "python"):
            found.append(fixed[names[i]] if kind == "annotation" else above)
        elif kind == "operator":
            found.append("launch" if on_device else _cpu_operator(trace, i, above))
        elif kind == "copy call":
            found.append("sync" if links[i] in reads or name == "item" else "copy")
        elif kind == "sync":
            copied = name == "copy" or (name.startswith("cudaStream") and _behind_copy(trace, i, calls, found))
            found.append("alloc" if above == "alloc" else "copy" if copied else "sync")
        elif kind == "work":
            found.append(_work(name, above))
        else:
            found.append({"alloc": "alloc"}.get(kind, "launch"))
        if kind in ("launch", "copy call", "sync", "alloc"):
            calls[int(trace.row[i])] = i
    return found


def _behind_copy(trace: Trace, sync: int, calls: dict[int, int], causes: list[str | None]) -> bool:
    """Whether a synchronisation is the second half of a blocking copy, as PyTorch makes them: right behind its call."""
    last = calls.get(int(trace.row[sync]), -1)
    if last < 0 or KINDS[trace.kind[last]] != "copy call" or causes[last] != "copy":
        return False
    around = int(trace.parent[sync])
    together = around >= 0 and around == trace.parent[last] and KINDS[trace.kind[around]] == "operator"
    return bool(together or trace.start_s[sync] - trace.end_s[last] < 2e-6)


def _named_cause(name: str) -> str | None:
    if EMPTY_CACHE.search(name):
        return "alloc"
    return "data" if DATA.search(name) else None


def _work(name: str, above: str | None) -> str | None:
    if name == "copy on the host":
        return "copy"
    return "launch" if _FIRST_CALL.match(name) else above


def _cpu_operator(trace: Trace, index: int, above: str | None) -> str:
    name = trace.names[trace.name[index]]
    if above in ("launch", "copy", "alloc"):
        return above
    if _CPU_ALLOC.match(name):
        return "alloc"
    short = trace.end_s[index] - trace.start_s[index] < TINY_OPERATOR_S
    if short and above != "compute":
        return "launch"
    return "copy" if _CPU_COPY.match(name) else "compute"


def _threads(trace: Trace) -> tuple[int, list[int]]:
    """The main thread's row, and the other rows that issue device work (on a CPU: that run operators)."""
    host = trace.select(*(kind for kind in KINDS if kind not in DEVICE_KINDS))
    if not len(host):
        return -1, []
    issuing = trace.select("launch", "copy call") if trace.on_device else trace.select("operator")
    rows = sorted({int(row) for row in trace.row[issuing]})
    steps = trace.select("step")
    weights = {row: int((trace.row[host] == row).sum()) for row in set(trace.row[host].tolist())}
    main = int(trace.row[steps[0]]) if len(steps) else max(weights, key=lambda row: (row in rows, weights[row]))
    return main, [row for row in rows if row != main]


def _flat(trace: Trace, row: int, causes: list[str | None]) -> list[Stretch]:
    """The innermost event at each moment of one row, as stretches; nothing between them."""
    mine = [int(i) for i in (trace.row == row).nonzero()[0]]
    starts, ends = trace.start_s.tolist(), trace.end_s.tolist()
    found: list[Stretch] = []
    stack: list[int] = []
    now = 0.0

    def until(moment: float) -> None:
        nonlocal now
        while stack and now < moment:
            top = stack[-1]
            stop = min(ends[top], moment)
            if stop > now:
                found.append(Stretch(now, stop, causes[top] or "host", top))
                now = stop
            if ends[top] <= moment:
                stack.pop()
        now = max(now, moment)

    for i in mine:
        until(starts[i])
        stack.append(i)
    until(float("inf"))
    return found


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """On a CPU the short way from one small operator to the next is overhead, as the operators themselves are."""
    found = stretches[:]
    for place in range(1, len(stretches) - 1):
        before, stretch, behind = stretches[place - 1 : place + 2]
        short = stretch.end_s - stretch.start_s < TINY_OPERATOR_S
        if short and stretch.cause == "host" and before.cause == behind.cause == "launch":
            found[place] = stretch._replace(cause="launch", event=behind.event)
    return found


def _over(below: list[Stretch], above: list[Stretch]) -> list[Stretch]:
    """Two rows of stretches as one; `above` hides `below`."""
    found: list[Stretch] = []
    place = 0
    for stretch in below:
        now = stretch.start_s
        while place < len(above) and above[place].end_s <= now:
            place += 1
        look = place
        while look < len(above) and above[look].start_s < stretch.end_s:
            if above[look].start_s > now:
                found.append(stretch._replace(start_s=now, end_s=above[look].start_s))
            now = max(now, above[look].end_s)
            look += 1
        if now < stretch.end_s:
            found.append(stretch._replace(start_s=now))
    return sorted([*found, *above])


def _filled(stretches: list[Stretch], span_s: float) -> list[Stretch]:
    """The same without gaps: where nothing is known to run, the host is at its own code."""
    found: list[Stretch] = []
    now = 0.0
    for stretch in stretches:
        if stretch.end_s <= now:
            continue
        if stretch.start_s > now:
            found.append(Stretch(now, stretch.start_s, "host", -1))
        found.append(stretch._replace(start_s=max(stretch.start_s, now)))
        now = stretch.end_s
    if now < span_s:
        found.append(Stretch(now, span_s, "host", -1))
    return found
