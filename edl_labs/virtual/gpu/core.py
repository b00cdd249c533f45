"""The host's side of the model: its time, what its calls cost, the launch queue, and the record of all it issues.

A traced core keeps what ran when, and `timeline` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.engine import COMPUTE, NO_ENGINE, TO_DEVICE, Engines, Lane, Operation
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.quantities import PER_SECOND, picoseconds
from edl_labs.virtual.timeline import Span, Timeline

# About 1 GB of records: more is a loop that does not end.
MAX_OPERATIONS = 2_000_000
HOST_ROW, TO_DEVICE_ROW, TO_HOST_ROW = "host", "copy H2D", "copy D2H"


class Core:
    """A host that issues work to engines. Nothing here checks what a caller says; VirtualGPU does."""

    def __init__(self, machine: VirtualMachine, *, traced: bool) -> None:
        self.machine = machine
        self.traced = traced
        self.costs_ps = {
            name: picoseconds(value, name)
            for name, value in vars(machine).items()
            if name.endswith("_s") and not name.endswith("_per_s")
        }
        self._clock_step_ps, self._clock_cost_ps = (
            self.costs_ps["clock_resolution_s"],
            self.costs_ps["clock_read_cost_s"],
        )
        self.engines = Engines(
            l2_bytes=machine.l2_bytes,
            memory_byte_per_s=machine.memory_bandwidth_byte_per_s,
            l2_byte_per_s=machine.l2_bandwidth_byte_per_s,
            floor_ps=self.costs_ps["kernel_floor_s"],
        )
        self.host_ps = 0
        self.host_spans: list[tuple[str, int, int]] = []
        self.operations: list[Operation] = []
        self.recorded: list[dict[str, Any]] = []
        self._depth = machine.queue_depth
        self.awake = False
        self.loaded: set[str] = set()

    def keep(self, entry: dict[str, Any]) -> None:
        """Record one operation or reading."""
        if len(self.recorded) >= MAX_OPERATIONS:
            raise VirtualGPUError(
                f"the program has more than {MAX_OPERATIONS:,} operations",
                why="every one of them is kept, for the replay",
                next="fix the loop that issues them, or measure with fewer calls",
            )
        self.recorded.append(entry)

    def issue(self, operation: Operation, overhead_ps: int) -> None:
        """Spend a call's overhead, then hand the operation to the device; before that, wait for room in the queue."""
        if not self.awake:
            self.wake()
        if self._depth is not None:
            in_flight = operation.lane.in_flight
            if len(in_flight) >= self._depth:
                first = in_flight.popleft()
                end = self.engines.finish(first, self.host_ps) if first.done is None else first.done
                if end > self.host_ps:
                    self._wait_until("queue full", end)
            in_flight.append(operation)
        operation.called = self.host_ps
        self.host_ps = now = self.host_ps + overhead_ps
        if self.traced:
            self.operations.append(operation)
        self.engines.submit(operation, now)

    def spend(self, what: str, ps: int) -> None:
        """Keep the host busy."""
        if self.traced and ps:
            self.host_spans.append((what, self.host_ps, self.host_ps + ps))
        self.host_ps += ps

    def block(self, what: str, operation: Operation) -> None:
        """Keep the host until the end of an operation."""
        self._wait_until(what, self.engines.finish(operation, self.host_ps))

    def drain(self, what: str, lane: Lane) -> None:
        """Keep the host until everything of a lane is over."""
        last = lane.pending[-1] if lane.pending else lane.head
        self._wait_until(what, lane.done if last is None else self.engines.finish(last, self.host_ps))

    def drain_all(self, what: str) -> None:
        """Keep the host until everything is over."""
        self.engines.run_all()
        self._wait_until(what, self.engines.last_done)

    def wake(self) -> None:
        """Make the device's context, once: what the first call of a program pays."""
        if not self.awake:
            self.awake = True
            self.spend("make context", self.costs_ps["context_init_s"])

    def load(self, kernel: str) -> None:
        """Load a kernel's code, once for each name."""
        if kernel not in self.loaded:
            self.wake()
            self.loaded.add(kernel)
            self.spend(f"load {kernel}", self.costs_ps["module_load_s"])

    def read_clock(self) -> float:
        """The host's time in seconds after the reading's cost, rounded down to the resolution."""
        if self._clock_cost_ps:
            self.spend("read clock", self._clock_cost_ps)
        # A quotient of whole numbers is rounded correctly, the same on every machine.
        return self.host_ps // self._clock_step_ps * self._clock_step_ps / PER_SECOND

    def _wait_until(self, what: str, moment: int) -> None:
        if moment <= self.host_ps:
            return
        if self.traced:
            self.host_spans.append((f"wait: {what}", self.host_ps, moment))
        self.host_ps = moment


def timeline(core: Core) -> Timeline:
    """The timeline of a traced program that has run to its end."""
    spans = [*_host_spans(core), *filter(None, map(_device_span, core.operations))]
    return Timeline(tuple(sorted(spans, key=lambda span: (_row_order(span.row), span.start_s, span.end_s))))


def _host_spans(core: Core) -> Iterable[Span]:
    for name, start, end in core.host_spans:
        kind = "wait" if name.startswith("wait: ") else "work"
        yield Span(HOST_ROW, kind, name.removeprefix("wait: "), start / PER_SECOND, end / PER_SECOND)
    for call in core.operations:
        if call.arrived > call.called:
            start_s, end_s = call.called / PER_SECOND, call.arrived / PER_SECOND
            issue = None if call.engine == NO_ENGINE else call.sequence
            yield Span(HOST_ROW, "call", call.label, start_s, end_s, call.lane.index, issue)


def _device_span(operation: Operation) -> Span | None:
    if operation.engine == NO_ENGINE or operation.done is None:
        return None
    stream = operation.lane.index
    row = TO_DEVICE_ROW if operation.engine == TO_DEVICE else TO_HOST_ROW
    row, kind = (f"stream {stream}", "kernel") if operation.engine == COMPUTE else (row, "copy")
    start_s, end_s = operation.start / PER_SECOND, operation.done / PER_SECOND
    return Span(row, kind, operation.label, start_s, end_s, stream, operation.sequence)


def _row_order(row: str) -> tuple[int, int]:
    if row.startswith("stream "):
        return 1, int(row.removeprefix("stream "))
    return {HOST_ROW: (0, 0), TO_DEVICE_ROW: (2, 0), TO_HOST_ROW: (3, 0)}[row]
