"""One step of a training loop as plain data: run it on a VirtualGPU, see what ran when, and how long a step takes.

A step is a list of operations, each a dict with `op` and `line`, the line of the script that does it:

* `{"op": "load", "duration_s"}`: the host gets the next batch;
* `{"op": "python", "duration_s"}`: the host does anything else;
* `{"op": "launch", "name", "duration_s"}`: a kernel;
* `{"op": "copy", "nbytes", "pinned", "stream"}`: a copy to the device, which does not block when it is pinned;
* `{"op": "item"}`: the host reads a number from the device; `{"op": "sync"}`: it waits for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError, shown
from edl_labs.virtual.gpu.buffers import Buffer
from edl_labs.virtual.gpu.engine import COMPUTE, NO_ENGINE, TO_DEVICE, Operation
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Span, Timeline

Step = Sequence[dict[str, Any]]
OPERATIONS = ("load", "python", "launch", "copy", "item", "sync")
WARM_STEPS = 4  # a few, after which the loops of the labs repeat themselves


def step_s(step: Step, machine: VirtualMachine, *, count: int = 8) -> float:
    """Seconds that a step takes in the steady state: what `count` further steps add, drained, over `count`.

    >>> step_s([{"op": "launch", "name": "k", "duration_s": 3e-6, "line": "train.py:1"}], VirtualMachine())
    3e-06
    """
    before_s, after_s = (_drained_s(step, machine, count=steps) for steps in (WARM_STEPS, WARM_STEPS + count))
    return (after_s - before_s) / count


def run_steps(gpu: VirtualGPU, step: Step, *, count: int) -> None:
    """Issue a step `count` times."""
    _Runner(gpu).run(step, count)


def step_spans(step: Step, machine: VirtualMachine, *, count: int = 2) -> list[dict[str, Any]]:
    """What runs during `count` steps of the steady state, from the first device operation of a step on.

    Spans are dicts with `row` ("host", "stream 0", "copy H2D", ...), `kind` ("load", "python", "call" and "wait" on the
    host, "kernel" or "copy" elsewhere), `name`, `line` (on the device: that of the call which issued it), `start_s` and
    `end_s`, cut at both ends of the window.
    """
    gpu = VirtualGPU(machine.warm())
    gpu.core.traced = True
    runner = _Runner(gpu)
    runner.run(step, WARM_STEPS)
    first = len(gpu.core.operations)
    runner.run(step, count)
    later = len(gpu.core.operations)
    runner.run(step, WARM_STEPS)
    gpu.core.engines.run_all()
    start, stop = (_first_start(gpu.core.operations[index:]) for index in (first, later))
    spans = [*runner.host_spans(), *runner.device_spans()]
    seen = [_cut(span, start, stop) for span in spans if span["end"] > start and span["start"] < stop]
    return sorted(seen, key=lambda span: (span["row"] != "host", span["row"], span["start_s"], span["end_s"]))


def as_timeline(spans: Sequence[dict[str, Any]]) -> Timeline:
    """Spans of `step_spans` as a timeline to draw; Python is the host's work."""
    kinds = {"python": "work"}
    return Timeline(
        tuple(
            Span(s["row"], kinds.get(s["kind"], s["kind"]), s["name"], float(s["start_s"]), float(s["end_s"]))
            for s in spans
        )
    )


class _Runner:
    """Issues operations to a GPU, and remembers which line each span of its timeline comes from."""

    def __init__(self, gpu: VirtualGPU) -> None:
        self.gpu = gpu
        self._buffers: dict[tuple[int, bool], tuple[Buffer, Buffer]] = {}
        self._loss: Buffer | None = None
        self._works: list[tuple[str, str]] = []
        self._lines: list[str] = []

    def run(self, step: Step, count: int) -> None:
        """Issue a step `count` times."""
        for _ in range(count):
            for operation in step:
                self._issue(operation)

    def host_spans(self) -> list[dict[str, Any]]:
        """What the host did, with its calls."""
        spans = []
        for (name, start, end), (kind, line) in zip(self.gpu.core.host_spans, self._works, strict=True):
            waits = name.startswith("wait: ")
            kind, name = ("wait", name.removeprefix("wait: ")) if waits else (kind, name)
            name = kind if kind in ("load", "python") else name
            spans.append({"row": "host", "kind": kind, "name": name, "line": line, "start": start, "end": end})
        for call, line in zip(self.gpu.core.operations, self._lines, strict=True):
            if call.arrived > call.called:
                named = {"kind": "call", "name": _name(call), "line": line}
                spans.append({"row": "host", **named, "start": call.called, "end": call.arrived})
        return spans

    def device_spans(self) -> list[dict[str, Any]]:
        """What the device did, under the lines that issued it."""
        spans = []
        for done, line in zip(self.gpu.core.operations, self._lines, strict=True):
            if done.engine == NO_ENGINE or done.done is None:
                continue
            kernel = done.engine == COMPUTE
            row = f"stream {done.lane.index}" if kernel else "copy H2D" if done.engine == TO_DEVICE else "copy D2H"
            named = {"kind": "kernel" if kernel else "copy", "name": _name(done), "line": line}
            spans.append({"row": row, **named, "start": done.start, "end": done.done})
        return spans

    def _issue(self, operation: dict[str, Any]) -> None:
        gpu, core, name = self.gpu, self.gpu.core, operation.get("op")
        if name in ("load", "python"):
            gpu.host_work(operation["duration_s"])
        elif name == "launch":
            gpu.launch(operation["name"], duration_s=operation["duration_s"])
        elif name == "copy":
            self._copy(operation)
        elif name == "item":
            self._loss = self._loss or gpu.empty(4)
            gpu.item(self._loss)
        elif name == "sync":
            gpu.synchronize()
        else:
            raise VirtualGPUError(
                f"there is no operation {shown(name)}",
                why=f"the operations of a step are {', '.join(OPERATIONS)}",
                next="use one of these",
            )
        line, kind = str(operation.get("line", "")), "call" if name not in ("load", "python") else str(name)
        self._works += [(kind, line)] * (len(core.host_spans) - len(self._works))
        self._lines += [line] * (len(core.operations) - len(self._lines))

    def _copy(self, operation: dict[str, Any]) -> None:
        gpu, nbytes, pinned = self.gpu, operation["nbytes"], bool(operation.get("pinned"))
        if (nbytes, pinned) not in self._buffers:
            self._buffers[nbytes, pinned] = gpu.empty(nbytes), gpu.host_empty(nbytes, pin_memory=pinned)
        inside, outside = self._buffers[nbytes, pinned]
        while len(gpu.streams) <= operation.get("stream", 0):
            gpu.Stream()
        gpu.copy(inside, outside, non_blocking=pinned, stream=gpu.streams[operation.get("stream", 0)])


def _drained_s(step: Step, machine: VirtualMachine, *, count: int) -> float:
    gpu = VirtualGPU(machine.warm())
    run_steps(gpu, step, count=count)
    gpu.core.engines.run_all()
    return max(gpu.core.host_ps, gpu.core.engines.last_done) / PER_SECOND


def _name(operation: Operation) -> str:
    return "copy" if operation.engine == TO_DEVICE else operation.label


def _first_start(operations: Sequence[Operation]) -> int:
    starts = [operation.start for operation in operations if operation.engine != NO_ENGINE]
    if not starts:
        raise VirtualGPUError(
            "the step does not use the device",
            why="it has neither a launch nor a copy",
            next="add a launch to the step",
        )
    return min(starts)


def _cut(span: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    kept = {key: span[key] for key in ("row", "kind", "name", "line")}
    begins, ends = max(span["start"], start) - start, min(span["end"], stop) - start
    return {**kept, "start_s": begins / PER_SECOND, "end_s": ends / PER_SECOND}
