"""A VirtualGPU that is traced while it runs, and one on which a cause does not exist: the same loop runs on both."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.hardware import Accelerator
from edl_labs.trace.causes import ABLATIONS, CHARGED, ENCLOSING, named_cause
from edl_labs.trace.event_kinds import kind_of
from edl_labs.trace.samplers import code_line
from edl_labs.trace.trace_table import NUMBER, TableBuilder, Trace
from edl_labs.virtual import Region, Stream, VirtualGPU, VirtualMachine
from edl_labs.virtual.gpu.buffers import DEVICE, PINNED
from edl_labs.virtual.gpu.core import Core, timeline
from edl_labs.virtual.gpu.engine import COMPUTE, Operation
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Span

_OURS = (
    str(Path(__file__)),
    str(Path(sys.modules["edl_labs.virtual"].__file__ or "").parent),
    str(Path(sys.modules["contextlib"].__file__ or "")),
)


class TracedGPU(VirtualGPU):
    """A VirtualGPU to run a loop on: `step()` marks steps, `annotate(name)` names intervals of the host.

    >>> gpu = TracedGPU("A100-80GB")
    >>> for _ in range(3):
    ...     with gpu.step():
    ...         with gpu.annotate("dataloader"):
    ...             gpu.host_work(1e-3)
    ...         gpu.launch("gemm", duration_s=2e-3)
    >>> gpu.trace()
    <trace of VirtualGPU: 17 events, 2 rows, 0.257405 s>
    """

    def __init__(
        self, model: str | Accelerator | VirtualMachine | dict[str, Any] = "A100-80GB", **parameters: Any
    ) -> None:
        super().__init__(model, **parameters)
        self.core: _NotingCore = _NotingCore(self.machine)
        self._marks: list[tuple[str, str, int, int]] = []
        self.open: list[str] = []
        self.steps = 0

    @contextmanager
    def annotate(self, name: str) -> Iterator[None]:
        """Name what the host does in the block: 'dataloader', 'optimizer', or a runtime call such as 'cudaMalloc'."""
        start, line = self.core.host_ps, caller_line()
        self.open.append(name)
        # Kept in the order of entry: of two that last equally long, the outer one comes first.
        place = len(self._marks)
        self._marks.append((name, line, start, start))
        try:
            yield
        finally:
            self.open.pop()
            self._marks[place] = (name, line, start, self.core.host_ps)

    @contextmanager
    def step(self) -> Iterator[int]:
        """One step of the loop; gives its number."""
        number = self.steps
        self.steps += 1
        with self.annotate(f"ProfilerStep#{number}"):
            yield number

    def call(self, name: str, duration_s: float) -> None:
        """A runtime call that keeps the host busy for so long, such as cudaMalloc."""
        with self.annotate(name):
            self.host_work(duration_s)

    def data_wait(self, duration_s: float) -> None:
        """The host waits for the next batch."""
        with self.annotate("dataloader"):
            self.host_work(duration_s)

    def trace(self) -> Trace:
        """The table of everything, the device run to its end; nothing may be issued afterwards."""
        core = self.core
        core.engines.run_all()
        table = TableBuilder()
        for name, line, start, end in self._marks:
            kind = kind_of("cuda_runtime" if name.startswith(("cuda", "hip")) else "user_annotation", name)
            number = NUMBER[kind or "annotation"]
            self._add(table, number, name, "host", start / PER_SECOND, end / PER_SECOND, line=line)
        lines = core.lines()
        for span in timeline(core).spans:
            self._span(table, span, lines)
        work = {op.label: core.works[op.label] for op in core.operations if op.label in core.works}
        return table.build(origin="VirtualGPU", meta={"machine": self.machine.to_dict(), "kernels": work})

    def _span(self, table: TableBuilder, span: Span, lines: _Lines) -> None:
        if span.kind in ("kernel", "copy"):
            kind, moved = NUMBER[kind_of(span.kind, span.name) or span.kind], self._moved(span)
        else:
            kind, moved = NUMBER[kind_of(span.kind, span.name) or "work"], -1
        if span.kind == "call" and span.issue is not None:
            kind = NUMBER["launch" if self.core.engine_of(span.issue) == COMPUTE else "copy call"]
        line = "" if span.kind in ("kernel", "copy") else lines.at(span)
        link = -1 if span.issue is None else span.issue
        stream = -1 if span.stream is None else span.stream
        self._add(
            table, kind, span.name, span.row, span.start_s, span.end_s, line=line, link=link, stream=stream, moved=moved
        )

    def _moved(self, span: Span) -> int:
        return self.core.moved.get(span.issue or 0, -1)

    @staticmethod
    def _add(
        table: TableBuilder,
        kind: int,
        name: str,
        row: str,
        start_s: float,
        end_s: float,
        *,
        line: str,
        link: int = -1,
        stream: int = -1,
        moved: int = -1,
    ) -> None:
        table.add(
            kind,
            table.name(name),
            row=table.row(row),
            start=start_s,
            end=end_s,
            link=link,
            stream=stream,
            moved_bytes=moved,
            line=table.name(line) if line else -1,
        )


class _Lines:
    """Which line the host was at: for calls and for intervals of host time, by when they began."""

    def __init__(self, marks: list[tuple[int, str]]) -> None:
        self._moments, self._texts = [moment for moment, _ in marks], [text for _, text in marks]

    def at(self, span: Span) -> str:
        place = bisect_right(self._moments, round(span.start_s * PER_SECOND)) - 1
        return self._texts[place] if place >= 0 else ""


class _NotingCore(Core):
    """A core that notes where each operation was asked for, and how many bytes copies move."""

    def __init__(self, machine: VirtualMachine) -> None:
        super().__init__(machine, traced=True)
        self._asked: list[tuple[int, str]] = []
        self.moved: dict[int, int] = {}
        self.works: dict[str, dict[str, Any]] = {}
        self._engines: dict[int, int] = {}
        self.holding = True

    def keep(self, entry: dict[str, Any]) -> None:
        super().keep(entry)
        self._asked.append((self.host_ps, caller_line()))
        if entry["op"] == "launch" and "flops" in entry:
            self.works.setdefault(
                entry["name"], {"flops": entry["flops"], "dtype": entry["dtype"], "moved_bytes": entry["moved_bytes"]}
            )
        elif entry["op"] in ("copy", "item"):
            # What is issued next gets the next number of the engines.
            self.moved[self.engines._issued + 1] = entry["src"][2] - entry["src"][1]

    def block(self, what: str, operation: Operation) -> None:
        if self.holding:
            super().block(what, operation)

    def lines(self) -> _Lines:
        return _Lines(self._asked)

    def engine_of(self, issue: int) -> int:
        """The engine of the operation with this number."""
        if len(self._engines) != len(self.operations):
            self._engines = {operation.sequence: operation.engine for operation in self.operations}
        return self._engines.get(issue, COMPUTE)


def caller_line() -> str:
    """'file.py(12): function' of the first frame outside the library's own tracing and device."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    return code_line(code.co_filename, frame.f_lineno, code.co_name)


class AblatedGPU(TracedGPU):
    """A TracedGPU without one cause of `ABLATIONS`: a loop that runs on it is otherwise unchanged."""

    def __init__(self, model: Any = "A100-80GB", *, without: str, **parameters: Any) -> None:
        if without not in ABLATIONS:
            raise UsageError(
                f"there is no cause {without!r} that a run could leave out",
                why=f"the causes are {', '.join(ABLATIONS)}",
                next="use one of these causes",
            )
        super().__init__(model, **parameters)
        self.without = without
        self._full_launch_ps = self._launch_ps
        self._side: Stream | None = None
        self._pinned: dict[int, Any] = {}

    @contextmanager
    def step(self) -> Iterator[int]:
        self._launch_ps = self._full_launch_ps
        with super().step() as number:
            yield number

    def launch(self, name: str, **work: Any) -> None:
        if self.without == "compute" and kind_of("kernel", name) == "kernel":
            kept = {key: work[key] for key in ("reads", "writes", "stream") if key in work}
            super().launch(name, duration_s=0.0, **kept)
        else:
            super().launch(name, **work)
        if self.without == "launch":
            self._launch_ps = 0

    def copy(self, dst: Region, src: Region, *, non_blocking: bool = False, stream: Stream | None = None) -> None:
        ends = {dst.buffer.where, src.buffer.where}
        if self.without != "copy" or ends == {DEVICE} or DEVICE not in ends:
            self.core.holding = self.without != "sync"
            super().copy(dst, src, non_blocking=non_blocking, stream=stream)
            self.core.holding = True
            return
        if self._side is None:
            self._side = self.Stream()
        super().copy(self._locked(dst), self._locked(src), non_blocking=True, stream=self._side)

    def item(self, source: Region, *, stream: Stream | None = None) -> int:
        if self.without == "sync":
            return source.buffer.versions
        return super().item(source, stream=stream)

    def synchronize(self) -> None:
        in_allocation = self._inside("alloc")
        if (self.without == "sync" and not in_allocation) or (self.without == "alloc" and in_allocation):
            return
        super().synchronize()

    def host_work(self, duration_s: float, *, reads: Any = (), writes: Any = ()) -> None:
        at = next((cause for cause in reversed(ENCLOSING) if self._inside(cause)), "host")
        super().host_work(0.0 if at == self.without else duration_s, reads=reads, writes=writes)

    def _inside(self, cause: str) -> bool:
        """Whether an interval is open that is charged to this cause, by its name or as a runtime call."""
        calls = (CHARGED.get(kind_of("cuda_runtime", name) or "") for name in self.open)
        return cause in calls or cause in map(named_cause, self.open)

    def _locked(self, region: Region) -> Region:
        """The same bytes in pinned memory, made at the first copy."""
        if region.buffer.where in (DEVICE, PINNED):
            return region
        index = region.buffer.index
        if index not in self._pinned:
            self._pinned[index] = self.host_empty(region.buffer.nbytes, pin_memory=True)
        part: Region = self._pinned[index][region.start : region.stop]
        return part
