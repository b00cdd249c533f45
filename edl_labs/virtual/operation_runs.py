"""Some steps of a training script as plain data: run on a VirtualGPU, as they are or with fixes, and read as spans.

An operation is a dict with `name` and `op`:

* `{"op": "host", "duration_s"}`: the host works;
* `{"op": "kernel", "duration_s", "row"}`: a kernel, on the row "gpu" or "network";
* `{"op": "copy", "nbytes", "pinned", "row"}`: a copy to the device, in turn with the kernels or on the row "copies";
* `{"op": "read"}`: the host reads a number behind the kernels that it has issued, and waits for it.

`after` names the operation, issued before, whose last run a kernel or copy of another row waits for. A fix is a dict:
`names` of operations, and `times`, what is left of their seconds; with 0 they are not issued at all. Fixes of one
operation multiply, in whatever order they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError, shown
from edl_labs.virtual.gpu.buffers import Buffer
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.streams import Stream
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU
from edl_labs.virtual.gpu.work_items import COMPUTE
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Span, Timeline

ROWS = ("gpu", "copies", "network")
_BLOCKS = {"gpu": 96, "network": 12}  # of 108 SMs: a kernel of each fits beside the other, as NCCL's few blocks do
_PICTURED = {"work": "work", "call": "call", "wait": "wait", "kernel": "kernel", "copy": "copy"}


def run_s(
    step: Sequence[dict[str, Any]], machine: VirtualMachine, *, count: int, mends: Iterable[dict[str, Any]] = ()
) -> float:
    """Seconds until `count` steps are over, host and device, with the fixes made.

    >>> step = [{"op": "host", "name": "decode", "duration_s": 3e-3}]
    >>> run_s(step, VirtualMachine(), count=2)
    0.006
    >>> run_s(step, VirtualMachine(), count=2, mends=[{"names": ["decode"], "times": 0.5}])
    0.003
    """
    return _Run(step, machine, count, tuple(mends)).end_s()


def run_spans(step: Sequence[dict[str, Any]], machine: VirtualMachine, *, count: int) -> list[dict[str, Any]]:
    """What ran when during `count` steps, in the order of issue.

    Spans are dicts with `row` ("host", "gpu", "copies", "network"), `kind` ("work", "call" and "wait" on the host,
    "kernel" or "copy" elsewhere), `name` of the operation, `start_s` and `end_s`, and `after`: the places in this list
    of the spans of other rows that had to be over first.
    """
    return _Run(step, machine, count, ()).spans()


def as_picture(spans: Sequence[dict[str, Any]]) -> Timeline:
    """Spans as a timeline to draw."""
    return Timeline(
        tuple(Span(s["row"], _PICTURED[s["kind"]], s["name"], float(s["start_s"]), float(s["end_s"])) for s in spans)
    )


class _Run:
    """Issues steps to a VirtualGPU and remembers which operation each call belongs to."""

    def __init__(
        self, step: Sequence[dict[str, Any]], machine: VirtualMachine, count: int, mends: tuple[dict[str, Any], ...]
    ) -> None:
        self.gpu = VirtualGPU(machine.warm())
        self.gpu.core.traced = True
        self._left: dict[str, float] = {}
        for mend in mends:
            for operation in mend["names"]:
                self._left[operation] = self._left.get(operation, 1.0) * mend["times"]
        self._streams: dict[str, Stream] = {"gpu": self.gpu.streams[0]}
        self._streams |= {row: self.gpu.Stream() for row in ROWS[1:]}
        self._buffers: dict[tuple[str, bool], tuple[Buffer, Buffer]] = {}
        self._number = self.gpu.empty(4)
        self._latest: dict[str, int] = {}  # the span on the device of an operation's last run
        self._ends: dict[str, tuple[Any, str]] = {}  # an event behind each operation that another one waits for
        self._awaited = {one["after"] for one in step if "after" in one}
        self._made: list[dict[str, Any]] = []
        for _ in range(count):
            for operation in step:
                self._issue(operation)
        self.gpu.core.engines.run_all()

    def end_s(self) -> float:
        """When host and device are through."""
        return max(self.gpu.core.host_ps, self.gpu.core.engines.last_done) / PER_SECOND

    def spans(self) -> list[dict[str, Any]]:
        """The spans, in seconds."""
        return [self._span(one) for one in self._made]

    def _issue(self, operation: dict[str, Any]) -> None:
        name, kind = operation["name"], operation["op"]
        times = self._left.get(name, 1.0)
        if times == 0.0:
            return
        row = operation.get("row", "gpu")
        after = [self._latest[operation["after"]]] if operation.get("after") in self._latest else []
        if after:
            event, home = self._ends[operation["after"]]
            if home != row:
                self._streams[row].wait_event(event)
        issued, waited = len(self.gpu.core.operations), len(self.gpu.core.host_spans)
        if kind == "host":
            self.gpu.host_work(times * operation["duration_s"])
        elif kind == "kernel":
            lasts = {"duration_s": times * operation["duration_s"], "blocks": _BLOCKS[row]}
            self.gpu.launch(name, stream=self._streams[row], **lasts)
        elif kind == "copy":
            self._copy(operation, int(times * operation["nbytes"]), row)
        elif kind == "read":
            self.gpu.item(self._number)
        else:
            raise VirtualGPUError(
                f"there is no operation {shown(kind)}",
                why="the operations are host, kernel, copy and read",
                next="use one of these kinds",
            )
        self._keep(name, row, after, issued, waited)
        if name in self._awaited:
            event = self.gpu.Event()
            event.record(self._streams[row])
            self._ends[name] = (event, row)

    def _copy(self, operation: dict[str, Any], nbytes: int, row: str) -> None:
        gpu, pinned, name = self.gpu, bool(operation["pinned"]), operation["name"]
        if (name, pinned) not in self._buffers:
            size = operation["nbytes"]
            self._buffers[name, pinned] = gpu.empty(size), gpu.host_empty(size, pin_memory=pinned)
        inside, outside = self._buffers[name, pinned]
        gpu.copy(inside[0:nbytes], outside[0:nbytes], non_blocking=pinned, stream=self._streams[row])

    def _keep(self, name: str, row: str, after: list[int], issued: int, waited: int) -> None:
        """The spans of what was issued last: its call and its run on the device, and what the host did itself."""
        core = self.gpu.core
        for place in range(issued, len(core.operations)):
            kind = "kernel" if core.operations[place].engine == COMPUTE else "copy"
            self._made.append({"row": "host", "kind": "call", "name": name, "after": [], "issued": place})
            call = len(self._made) - 1
            self._made.append({"row": row, "kind": kind, "name": name, "after": [call, *after], "issued": place})
            self._latest[name] = call + 1
        for place in range(waited, len(core.host_spans)):
            waits = core.host_spans[place][0].startswith("wait: ")
            told = {"kind": "wait", "after": [self._latest[name]]} if waits else {"kind": "work", "after": []}
            self._made.append({"row": "host", "name": name, **told, "spent": place})

    def _span(self, made: dict[str, Any]) -> dict[str, Any]:
        if "spent" in made:
            _, start, end = self.gpu.core.host_spans[made["spent"]]
        else:
            one = self.gpu.core.operations[made["issued"]]
            start, end = (one.called, one.arrived) if made["kind"] == "call" else (one.start, one.done)
        kept = {key: made[key] for key in ("row", "kind", "name", "after")}
        return {**kept, "start_s": start / PER_SECOND, "end_s": end / PER_SECOND}
