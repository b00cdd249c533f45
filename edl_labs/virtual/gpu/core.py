"""The host's side of the model: its time, what its calls cost, the launch queue, and the record of all it issues.

A traced core keeps what ran when, and `timeline` shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.engine import Engines
from edl_labs.virtual.gpu.launches import LaunchedKernel
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.work_items import COMPUTE, NO_ENGINE, TO_DEVICE, Lane, Operation
from edl_labs.virtual.quantities import PER_SECOND, picoseconds
from edl_labs.virtual.timeline import Span, Timeline

# About 1 GB of records: more is a loop that does not end.
MAX_OPERATIONS = 2_000_000
# Kernels of a lane that runs alone on a machine whose queue has no end: then those that are over are let go.
_KEPT_ALONE = 4096
HOST_ROW, TO_DEVICE_ROW, TO_HOST_ROW = "host", "copy H2D", "copy D2H"


class Core:
    """A host that issues work to engines. Nothing here checks what a caller says; VirtualGPU does.

    While one stream alone issues kernels of known durations, their ends follow at once: `alone` is its lane then, and
    its `in_flight` holds (end, arrival, kernel) instead of operations. Whatever else happens ends that (`leave`), and
    takes back what had not become ready.
    """

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
        self._device = Engines(
            l2_bytes=machine.l2_bytes,
            memory_byte_per_s=machine.memory_bandwidth_byte_per_s,
            l2_byte_per_s=machine.l2_bandwidth_byte_per_s,
            floor_ps=self.costs_ps["kernel_floor_s"],
        )
        self.host_ps = 0
        self.host_spans: list[tuple[str, int, int]] = []
        self.operations: list[Operation] = []
        self.recorded: list[dict[str, Any]] = []
        self.most_recorded = MAX_OPERATIONS
        self.is_bounded = machine.queue_depth is not None
        self.room = machine.queue_depth or _KEPT_ALONE
        self.alone: Lane | None = None
        self.lane_done_before = self.done_before = 0
        self.awake = False
        self.loaded: set[str] = set()

    @property
    def engines(self) -> Engines:
        """The device, with everything that was issued."""
        if self.alone is not None:
            self.leave()
        return self._device

    def keep(self, entry: dict[str, Any]) -> None:
        """Record one operation or reading."""
        if len(self.recorded) >= self.most_recorded:
            raise VirtualGPUError(
                f"the program has more than {self.most_recorded:,} operations",
                why="every operation is stored for the replay",
                next="fix the loop that issues them, or measure fewer calls",
            )
        self.recorded.append(entry)

    def issue(self, operation: Operation, overhead_ps: int) -> None:
        """Spend a call's overhead, then hand the operation to the device; before that, wait for room in the queue."""
        if not self.awake:
            self.wake()
        if self.alone is not None:
            self.leave()
        if self.is_bounded:
            in_flight = operation.lane.in_flight
            if len(in_flight) >= self.room:
                first = in_flight.popleft()
                end = first[0] if type(first) is tuple else first.done
                if end is None:
                    end = self._device.finish(first, self.host_ps)
                if end > self.host_ps:
                    self._wait_until("queue full", end)
            in_flight.append(operation)
        operation.called = self.host_ps
        self.host_ps = now = self.host_ps + overhead_ps
        if self.traced:
            self.operations.append(operation)
        self._device.submit(operation, now)

    def add(self, operation: Operation) -> None:
        """Hand an operation to the device that takes none of the host's time: a node of a graph that was issued."""
        operation.called = self.host_ps
        if self.traced:
            self.operations.append(operation)
        self.engines.submit(operation, self.host_ps)

    def share(self, *, ranked: bool) -> None:
        """From now on kernels share SMs as `multiprocessors` says; `ranked`: by the priorities of their streams too."""
        self.engines.share(self.machine.sm_count, self.host_ps, ranked=ranked)

    def enter(self, lane: Lane) -> bool:
        """Let `lane` run alone if nothing else is on its way; whether it does."""
        if self.alone is lane:
            return True
        if self.traced or lane._pending or not self.awake:
            return False
        if self.alone is not None:
            self.leave()
        engines = self._device
        engines.run_until(self.host_ps)
        if lane._head is not None or not engines.alone_from(lane.done, self.host_ps):
            return False
        if lane.in_flight and type(lane.in_flight[-1]) is tuple:
            # What ran alone at an earlier time is over, or on its way for good.
            end, arrived, kernel = lane.in_flight[-1]
            lane.in_flight[-1] = over = _operation(lane, kernel, arrived)
            over.done = end
        self.alone, lane.alone = lane, self
        self.lane_done_before, self.done_before = lane.done, engines.last_done
        return True

    def run_alone(self, kernel: LaunchedKernel, overhead_ps: int) -> None:
        """Record and issue a kernel of known duration in the lane that is alone."""
        lane, now = self.alone, self.host_ps
        assert lane is not None
        self.keep(kernel.entry)
        queue = lane.in_flight
        if len(queue) >= self.room:
            if self.is_bounded:
                first = queue.popleft()
                now = max(now, first[0] if type(first) is tuple else first.done)
            else:
                self.let_go(queue)
        self.host_ps = now = now + overhead_ps
        lane.done = end = max(now, lane.done) + kernel.ps
        queue.append((end, now, kernel))

    def let_go(self, queue: deque[Any]) -> None:
        """Drop what is over from the queue of a lane that is alone, where no bound does so."""
        while queue and queue[0][0] <= self.host_ps:
            self.lane_done_before = queue.popleft()[0]
        self.room = 2 * len(queue) + _KEPT_ALONE

    def leave(self) -> None:
        """Make operations of what ran alone: kernels that have not become ready by now wait again."""
        lane, engines, host = self.alone, self._device, self.host_ps
        assert lane is not None
        self.alone = lane.alone = None
        queue, waiting = lane.in_flight, deque[Operation]()
        while queue and type(queue[-1]) is tuple:
            end, arrived, kernel = queue[-1]
            before = self._end_before_last(queue)
            if before <= host:
                engines.settle(end)
                break
            queue.pop()
            waiting.appendleft(_operation(lane, kernel, arrived))
            lane.done = before
        if not self.is_bounded:
            queue.clear()
        else:
            queue.extend(waiting)
        for operation in waiting:
            engines.submit(operation, operation.arrived)

    def _end_before_last(self, queue: deque[Any]) -> int:
        if len(queue) == 1:
            return self.lane_done_before
        before = queue[-2]
        return int(before[0] if type(before) is tuple else before.done)

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
        if self.alone is None and lane._head is not None:
            self._device.finish(lane._pending[-1] if lane._pending else lane._head, self.host_ps)
        self._wait_until(what, lane.done)

    def drain_all(self, what: str) -> None:
        """Keep the host until everything is over."""
        self._wait_until(what, self.all_done())

    def all_done(self) -> int:
        """When everything that was issued is over."""
        if self.alone is not None:
            return max(self.alone.done, self.done_before)
        self._device.run_all()
        return self._device.last_done

    def is_idle(self) -> bool:
        """Whether everything that was issued is over by now."""
        if self.alone is not None:
            return self.all_done() <= self.host_ps
        return self._device.idle_at(self.host_ps)

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
        if self.traced:
            self.spend("read clock", self._clock_cost_ps)
        else:
            self.host_ps += self._clock_cost_ps
        # A quotient of whole numbers is rounded correctly, the same on every machine.
        return self.host_ps // self._clock_step_ps * self._clock_step_ps / PER_SECOND

    def _wait_until(self, what: str, moment: int) -> None:
        if moment <= self.host_ps:
            return
        if self.traced:
            self.host_spans.append((f"wait: {what}", self.host_ps, moment))
        self.host_ps = moment


def _operation(lane: Lane, kernel: LaunchedKernel, arrived: int) -> Operation:
    operation = Operation(lane, COMPUTE, kernel.entry["name"], kernel.cost)
    operation.arrived = operation.called = arrived
    return operation


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
