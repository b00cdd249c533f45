"""From the events of a Chrome trace to the rows of the table, each with its kind, in the words of each profiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from edl_labs.trace.collectives import is_collective, with_communication
from edl_labs.trace.errors import TraceError
from edl_labs.trace.ranks import by_rank
from edl_labs.trace.trace_table import NUMBER, TableBuilder, Trace
from edl_labs.units import counted

# The device's own rows and what is drawn on them for orientation alone.
_IGNORED = {"gpu_user_annotation", "cuda_sync", "overhead", "ac2g", "fwdbwd", "trace", "async_cpu_to_gpu", "issue"}
_VIRTUAL = {"call", "work", "wait", "kernel", "copy"}
_RUNTIME = {
    "cuda_runtime",
    "cuda_driver",
    "runtime",
    "cuda_api",
    "cuda-api",
    "hip_runtime",
    "hip_driver",
    "privateuse1_runtime",
}
_ANNOTATION = {"user_annotation", "nvtx", "annotation", "user_scope", "python_user_annotation"}
_STEP = re.compile(r"(ProfilerStep|step|iteration)\s*#?\s*\d+$", re.IGNORECASE)
_LAUNCH = re.compile(
    r"(cuda|cu|hip|hipExt|hipModule)(Launch|ModuleLaunch|GraphLaunch|ExtModuleLaunch)|LaunchKernel|GraphLaunch"
)
_COPY_CALL = re.compile(r"(cuda|cu|hip)(Memcpy|Memset)")
_SYNC = re.compile(r"(Device|Stream|Event|Ctx|Context)Synchronize")
_ALLOC = re.compile(
    r"(cuda|cu|hip)(Malloc|Free|Mem(Alloc|Free|Create|Map|Unmap|Release|AddressReserve)|HostAlloc|HostRegister)"
)
_COPY = re.compile(r"\[?(CUDA |HIP )?mem(cpy|set)", re.IGNORECASE)


def kind_of(category: str, name: str) -> str | None:
    """The kind of a complete event, one of KINDS; None for what says nothing about time.

    >>> kind_of("cuda_runtime", "cudaLaunchKernel"), kind_of("user_annotation", "ProfilerStep#4")
    ('launch', 'step')
    """
    category = category.lower()
    if category in _IGNORED or not category:
        return None
    if category in _RUNTIME:
        return _runtime(name)
    if category in _ANNOTATION:
        return "step" if _STEP.match(name) else "annotation"
    if category in _VIRTUAL and category not in ("kernel", "copy"):
        return _virtual(category, name)
    return _other(category, name)


def _other(category: str, name: str) -> str | None:
    if category in ("cpu_op", "operator"):
        # Some versions write steps as operators.
        return "step" if _STEP.match(name) else "operator"
    if category in ("python_function", "python"):
        return "python"
    if category in ("gpu_memcpy", "gpu_memset", "copy", "memcpy", "memset"):
        return "copy"
    if category in ("kernel", "gpu_op", "cuda", "gpu", "cuda_kernel"):
        return _device(name)
    return None


def _device(name: str) -> str:
    if _COPY.match(name):
        return "copy"
    return "communication" if is_collective(name) else "kernel"


def _runtime(name: str) -> str:
    if _LAUNCH.search(name):
        return "launch"
    if _COPY_CALL.search(name):
        return "copy call"
    if _SYNC.search(name):
        return "sync"
    return "alloc" if _ALLOC.search(name) else "runtime"


def _virtual(category: str, name: str) -> str:
    if category == "wait":
        return "queue full" if name == "queue full" else "sync"
    if category == "work":
        return "sync" if name.endswith("synchronize") else "work"
    return "copy call" if name == "item" or " to " in name else "launch"


_LINKS = ("correlation", "correlationId", "correlation_id", "correlationID", "Correlation ID")
_BYTES = ("bytes", "Bytes", "size", "moved_bytes")
_DEVICE_FROM = NUMBER["kernel"]
# The format's unit of time, in seconds.
_MICROSECOND = 1e-6
# Beyond this a float cannot tell neighbouring microseconds apart.
_FAR = 1e18
# Lanes of further devices count from here: numbers that no stream has.
_OTHER_DEVICES = 1 << 30


class ChromeEvents:
    """Takes the events of a trace one by one, and builds its table."""

    def __init__(self, kind_of: Callable[[str, str], str | None]) -> None:
        self._kind_of = kind_of
        self._table = TableBuilder()
        self._kinds: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[Any, Any], int] = {}
        self._streams: dict[int, Any] = {}
        self._lanes: dict[tuple[Any, int], int] = {}
        self._open: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
        self._row_names: dict[tuple[Any, Any], str] = {}
        self._backwards: list[str] = []
        self.seen = 0
        self._virtual = self._torch = False

    def take(self, event: dict[str, Any]) -> None:
        """Keep one event: complete ones, begins with their ends, names of rows, and arrows of issue."""
        self.seen += 1
        phase = event.get("ph")
        if phase == "X":
            self._complete(event)
        elif phase == "B":
            self._open.setdefault((event.get("pid"), event.get("tid")), []).append(event)
        elif phase == "E":
            self._close(event)
        elif phase == "M":
            self._named(event)
        elif phase in ("s", "f") and event.get("cat") == "issue":
            self._flow(event)

    def build(self, label: str, meta: dict[str, Any]) -> tuple[Trace, ...]:
        """A table for each rank; TraceError where the events hold nothing of a loop, or times that cannot be."""
        if self._backwards:
            raise TraceError(
                f"{label} holds {counted(len(self._backwards), 'event')} of negative duration",
                why=f"{self._backwards[0]} ends before it begins: without these times no share would be right",
                next="record it again; clocks that were set during the run, and cut files, give such times",
            )
        if not len(self._table):
            raise TraceError(
                f"{label} holds nothing of a training loop",
                why=f"none of its {self.seen:,} events is an operator, a runtime call, a kernel or an annotation",
                next="record it with torch.profiler, VirtualGPU or nsys, and export while the profiler has data",
            )
        origin = "VirtualGPU" if self._virtual else str(meta.get("origin") or _origin(meta, torch=self._torch))
        kept = {key: value for key, value in meta.items() if key in ("deviceProperties", "traceName", "schemaVersion")}
        trace = self._table.build(origin=origin, unit_s=_MICROSECOND, meta=kept)
        processes = {row: place[0] for place, row in self._rows.items()}
        ranks = by_rank(trace, [processes[row] for row in range(len(trace.rows))], label=label)
        # Correlation ids of two processes are alike: what a collective launched is known within one alone.
        return tuple(map(with_communication, ranks))

    def _complete(self, event: dict[str, Any]) -> None:
        category, name = event.get("cat") or "", event.get("name")
        if type(name) is not str or type(category) is not str:
            return
        key = (category, name)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._number(category, name)
        if kind < 0:
            return
        start, duration = event.get("ts"), event.get("dur", 0)
        if type(start) is not float:
            start = _number(start)
        if type(duration) is not float:
            duration = _number(duration)
        if start is None or duration is None or not (-_FAR < start < _FAR and -_FAR < duration < _FAR):
            return
        if duration < 0:
            self._backwards.append(name)
            return
        args = event.get("args")
        link, stream, moved, line = self._details(args) if args else (-1, -1, -1, -1)
        place = (event.get("pid"), event.get("tid"))
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = self._table.row(self._row_names.get(place, f"{place[0]}/{place[1]}"))
        if kind >= _DEVICE_FROM:
            stream = self._lane(args, event.get("pid"), stream, row)
            # What torch knows of the collective that a kernel is part of.
            if kind == NUMBER["kernel"] and args and "Collective name" in args:
                kind = NUMBER["communication"]
        self._table.add(
            kind, self._table.name(name), row=row, start=start, end=start + duration, link=link, stream=stream,
            moved_bytes=moved, line=line,
        )  # fmt: skip

    def _lane(self, args: Any, place: Any, stream: int, row: int) -> int:
        """The number of a stream, its own where two devices have streams of one number; the row where it has none."""
        if stream < 0:
            return row
        device = (place, args.get("device") if type(args) is dict else None)
        if self._streams.setdefault(stream, device) == device:
            return stream
        return self._lanes.setdefault((device, stream), _OTHER_DEVICES + len(self._lanes))

    def _number(self, category: str, name: str) -> int:
        kind = self._kind_of(category, name)
        self._torch |= category in ("cpu_op", "python_function", "user_annotation")
        return -1 if kind is None else NUMBER[kind]

    def _details(self, args: dict[str, Any]) -> tuple[int, int, int, int]:
        if type(args) is not dict:
            return -1, -1, -1, -1
        link = _first(args, _LINKS)
        stream = args.get("stream", -1)
        line = args.get("line") or args.get("CallFrom")
        return (
            link,
            stream if type(stream) is int and abs(stream) < 2**31 else -1,
            _first(args, _BYTES),
            self._table.name(line) if type(line) is str and line else -1,
        )

    def _close(self, event: dict[str, Any]) -> None:
        stack = self._open.get((event.get("pid"), event.get("tid")))
        if stack:
            begin = stack.pop()
            first, last = _number(begin.get("ts")), _number(event.get("ts"))
            if first is not None and last is not None:
                self._complete({**begin, "dur": last - first})

    def _named(self, event: dict[str, Any]) -> None:
        args = event.get("args")
        if event.get("name") == "thread_name" and isinstance(args, dict):
            place = (event.get("pid"), event.get("tid"))
            self._row_names[place] = f"{place[0]}/{place[1]} {args.get('name', '')}".strip()
        elif event.get("name") == "process_name" and isinstance(args, dict):
            self._virtual |= args.get("name") == "VirtualGPU"

    def _flow(self, event: dict[str, Any]) -> None:
        """VirtualGPU's arrows come right behind the event they start or end at: they name its link after the fact."""
        number = event.get("id")
        if type(number) is int:
            self._table.link_last(number)


def _origin(meta: dict[str, Any], *, torch: bool) -> str:
    return "torch.profiler" if torch or "deviceProperties" in meta or "schemaVersion" in meta else "a Chrome trace"


def _first(args: dict[str, Any], keys: tuple[str, ...]) -> int:
    for key in keys:
        value = args.get(key)
        if type(value) is int and 0 <= value < 2**63:
            return value
        if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
    return -1


def _number(value: Any) -> float | None:
    if type(value) is str:
        try:
            value = float(value)
        except ValueError:
            return None
    if type(value) not in (int, float):
        return None
    return float(value) if abs(value) < _FAR else None
