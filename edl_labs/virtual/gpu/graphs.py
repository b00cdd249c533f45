"""Graphs of device work, as `torch.cuda.CUDAGraph`: captured from streams once, replayed with the cost of one launch.

While a graph is captured nothing runs: launches, copies that do not block, records and waits become its nodes, at their
addresses. The host pays for all of their calls when the capture ends. A replay issues the nodes at one moment, in the
orders that were captured; two replays of one graph never overlap (CUDA C++ Programming Guide, CUDA graphs).
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.buffers import Buffer
from edl_labs.virtual.gpu.core import Core
from edl_labs.virtual.gpu.streams import Stream, own_stream
from edl_labs.virtual.gpu.work_items import Blocks, Lane, Mark, Operation

# What becomes a node, and what the host may do meanwhile, by its name in the record.
NODES = ("launch", "copy", "record", "wait")
_BESIDE = ("stream", "event", "host_work", "now")
_MOST_NODES = 100_000  # of one graph: a training step has a few thousand


class CUDAGraph:
    """Device work to be replayed: `g = gpu.CUDAGraph()`, filled in `with gpu.graph(g):`, run with `g.replay()`."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.index: int | None = None
        self.nodes: list[tuple[dict[str, Any], Operation]] = []
        self.written: list[Buffer] = []
        self._used: list[Buffer] = []
        self._origin: Lane | None = None
        self._sides: dict[int, Lane] = {}
        self._last: tuple[Stream, Mark] | None = None

    def replay(self) -> None:
        """Run the captured work in the current stream and those forked from it; the host pays for one launch.

        The addresses are those of the capture: what an input holds now is what the kernels read.
        """
        gpu, stream = self.gpu, self.gpu.current_stream()
        if self.index is None:
            raise VirtualGPUError(
                "the graph contains nothing to replay",
                why="no operation has been captured into it",
                next="capture something first: with gpu.graph(g): ...",
            )
        gone = [buffer for buffer in self._used if buffer.freed]
        if gone:
            raise VirtualGPUError(
                f"the graph uses {gone[0].name}, which has been freed",
                why="a replay uses the memory addresses of the capture",
                next="do not free these buffers while you still replay the graph",
            )
        core: Core = gpu.core
        core.keep({"op": "replay_graph", "graph": self.index, "stream": stream.index})
        waits = self._last[1] if self._last is not None and self._last[0] is not stream else None
        core.issue(Mark(stream.lane, "replay graph", waits), core.costs_ps["launch_overhead_s"])
        copies: dict[Operation, Mark] = {}
        for _, node in self.nodes:
            core.add(_copied(node, self._lane(node.lane, stream), copies))
        self._last = stream, Mark(stream.lane, "end of graph")
        core.add(self._last[1])
        for buffer in self.written:
            buffer.versions += 1

    def hold(self, capture: Capturing, index: int) -> None:
        """Take what a capture has gathered."""
        self.index, self.nodes, self.written, self._origin = index, capture.nodes, capture.written, capture.origin.lane
        self._sides, self._last = {}, None
        numbers = {place[0] for entry, _ in capture.nodes for place in (*_read(entry), *_written(entry))}
        self._used = [self.gpu.buffers[number] for number in sorted(numbers)]

    def _lane(self, captured: Lane, stream: Stream) -> Lane:
        if captured is self._origin:
            return stream.lane
        if captured.index not in self._sides:
            self._sides[captured.index] = Lane(captured.index, captured.rank)
        return self._sides[captured.index]


def _copied(node: Operation, lane: Lane, copies: dict[Operation, Mark]) -> Operation:
    if not isinstance(node, Mark):
        return Operation(lane, node.engine, node.label, node.cost)
    copies[node] = mark = Mark(lane, node.label, None if node.awaits is None else copies[node.awaits])
    return mark


class Capturing:
    """Stands in for the core during a capture: it gathers what is issued, and refuses what no graph can hold."""

    alone = None
    traced = True

    def __init__(self, gpu: Any, origin: Stream) -> None:
        self.core: Core = gpu.core
        self.gpu, self.origin = gpu, origin
        self.nodes: list[tuple[dict[str, Any], Operation]] = []
        self.written: list[Buffer] = []
        self.marked: dict[int, Mark | None] = {}
        self.costs_ps, self.awake = self.core.costs_ps, self.core.awake
        self._entry: dict[str, Any] = {}
        # Of each captured lane, how many nodes of each other one come before its next: what it knows.
        self._known: dict[Lane, dict[Lane, int]] = {origin.lane: {}}
        self._at_mark: dict[Mark, dict[Lane, int]] = {}

    @property
    def host_ps(self) -> int:
        """The host's time, which goes on."""
        return self.core.host_ps

    @property
    def recorded(self) -> list[dict[str, Any]]:
        """What was recorded before."""
        return self.core.recorded

    @property
    def loaded(self) -> set[str]:
        """Kernels are loaded when the capture ends."""
        return self.core.loaded

    def keep(self, entry: dict[str, Any]) -> None:
        """Take note of what is issued next; VirtualGPUError for what cannot be captured."""
        name = entry["op"]
        if name in _BESIDE or (name == "alloc" and entry["where"] == "pageable"):
            self.core.keep(entry)
        elif name not in NODES or (name == "copy" and self._keeps_the_host(entry)):
            raise _refused(name)
        elif len(self.nodes) >= _MOST_NODES:
            raise VirtualGPUError(
                f"the graph has more than {_MOST_NODES:,} nodes",
                why="every node of a graph is stored",
                next="capture a single step, and replay it",
            )
        else:
            self._entry = entry

    def issue(self, operation: Operation, overhead_ps: int) -> None:
        """Gather an operation, in a stream that is part of the capture."""
        lane, awaits = operation.lane, operation.awaits if isinstance(operation, Mark) else None
        if lane.index == 0:
            raise VirtualGPUError(
                "the default stream cannot be used while a graph is captured",
                why="work in the default stream would wait for every other stream",
                next="omit stream=, or capture a stream of your own: gpu.graph(g, stream=s)",
            )
        if awaits is not None and awaits not in self._at_mark:
            raise VirtualGPUError(
                f"stream {lane.index} waits for an event from outside the capture",
                why="a graph can depend only on operations that were captured with it",
                next="let the stream in which you replay wait for that event before the replay",
            )
        if lane not in self._known:
            if awaits is None:
                raise VirtualGPUError(
                    f"stream {lane.index} is not part of the capture",
                    why="this stream does not wait for a stream that is being captured",
                    next=f"fork first with side.wait_stream(s), where s is {self.origin!r}",
                )
            self._known[lane] = {}
        known = self._known[lane]
        if awaits is not None:
            for other, count in self._at_mark[awaits].items():
                known[other] = max(known.get(other, 0), count)
        known[lane] = known.get(lane, 0) + 1
        if isinstance(operation, Mark) and self._entry["op"] == "record":
            self._at_mark[operation] = dict(known)
            event = self.gpu.events[self._entry["event"]]
            self.marked.setdefault(event.index, event.mark)
        self.nodes.append((self._entry, operation))
        self.written += [self.gpu.buffers[place[0]] for place in _written(self._entry)]

    def spend(self, what: str, ps: int) -> None:
        """Keep the host busy; it must not ask the device anything."""
        if what in ("host work", "read clock"):
            self.core.spend(what, ps)
        elif what != "make context":
            raise _refused(what)

    def read_clock(self) -> float:
        """What the core reads."""
        return self.core.read_clock()

    def load(self, kernel: str) -> None:
        """Kernels are loaded when the capture ends."""

    def share(self, *, ranked: bool) -> None:
        """A stream with a priority counts from now on; kernels of blocks, from the end of the capture."""
        if ranked:
            self.core.share(ranked=True)

    def enter(self, lane: Lane) -> bool:
        """Nothing runs, so nothing is alone."""
        return False

    def wake(self) -> None:
        """Make the device's context."""
        self.core.wake()

    def block(self, what: str, operation: Operation) -> None:
        """Nothing that waits gets here."""
        raise _refused(what)

    @property
    def engines(self) -> Any:
        """Nothing that asks the device gets here."""
        raise _refused("a question about the device")

    def unjoined(self) -> list[int]:
        """The side streams with work for which the captured stream does not wait."""
        known = self._known[self.origin.lane]
        return [lane.index for lane, own in self._known.items() if known.get(lane, 0) < own.get(lane, 0)]

    def _keeps_the_host(self, entry: dict[str, Any]) -> bool:
        places = [self.gpu.buffers[entry[side][0]].where for side in ("dst", "src")]
        across = places.count("device") == 1
        return "device" not in places or (across and ("pageable" in places or not entry["non_blocking"]))


class GraphContext:
    """`with gpu.graph(g):` captures into `g` what the block issues."""

    def __init__(self, gpu: Any, graph: CUDAGraph, stream: Stream) -> None:
        self._gpu, self._graph, self._stream = gpu, graph, stream
        self._before: Stream = stream
        self._capturing: Capturing | None = None

    def __enter__(self) -> None:
        gpu = self._gpu
        if isinstance(gpu.core, Capturing):
            raise VirtualGPUError(
                "a graph is being captured already",
                why="captures cannot be nested",
                next="end the current capture first",
            )
        if self._stream.index == 0:
            raise VirtualGPUError(
                "the default stream cannot be captured",
                why="work in the default stream would wait for every other stream",
                next="omit stream=, or pass one that gpu.Stream() returned",
            )
        gpu.core.wake()
        self._before = gpu.current_stream()
        self._capturing = gpu.core = Capturing(gpu, self._stream)
        gpu.set_stream(self._stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gpu, capturing = self._gpu, self._capturing
        assert capturing is not None
        gpu.core = core = capturing.core
        gpu.set_stream(self._before)
        for index, mark in capturing.marked.items():
            gpu.events[index].mark = mark
        for buffer in capturing.written:
            buffer.versions -= 1
        for stream in gpu.streams:
            stream.forget()
        if error is not None:
            return
        loose = capturing.unjoined()
        if loose:
            raise VirtualGPUError(
                f"the captured stream does not wait for the work of stream {loose[0]}",
                why="the graph would end before that work is done",
                next="end the capture with s.wait_stream(side), where s is the captured stream",
            )
        index = len(gpu.graphs)
        entries = [entry for entry, _ in capturing.nodes]
        core.keep({"op": "capture", "graph": index, "stream": self._stream.index, "nodes": entries})
        for entry, operation in capturing.nodes:
            if entry["op"] == "launch":
                core.load(entry["name"])
            if isinstance(operation.cost, Blocks):
                core.share(ranked=False)
        core.spend("make graph", core.costs_ps["launch_overhead_s"] * len(entries))
        self._graph.hold(capturing, index)
        gpu.graphs.append(self._graph)


def graph_context(gpu: Any, graph: object, stream: Stream | None) -> GraphContext:
    """What `gpu.graph(g, stream=s)` gives: without `stream` it captures a stream of its own."""
    if not isinstance(graph, CUDAGraph) or graph.gpu is not gpu:
        raise VirtualGPUError(
            f"{type(graph).__name__} is not a graph of this device",
            why="a graph can be replayed only on the device that captured it",
            next="create a graph with gpu.CUDAGraph()",
        )
    return GraphContext(gpu, graph, gpu.Stream() if stream is None else own_stream(gpu, stream))


def _read(entry: dict[str, Any]) -> list[list[int]]:
    return [entry["src"]] if entry["op"] == "copy" else list(entry.get("reads", []))


def _written(entry: dict[str, Any]) -> list[list[int]]:
    return [entry["dst"]] if entry["op"] == "copy" else list(entry.get("writes", []))


_ASKED = {
    "alloc": "memory is requested",
    "free": "memory is freed",
    "record_stream": "memory is marked with record_stream",
}


def _refused(what: str) -> VirtualGPUError:
    if what in _ASKED:
        return VirtualGPUError(
            f"{_ASKED[what]} while a graph is captured",
            why="a replay uses the memory addresses of the capture and cannot allocate memory",
            next="allocate static buffers before the capture, and free them after the last replay",
        )
    return VirtualGPUError(
        f"{what.replace('_', ' ')} cannot be captured in a graph",
        why="this call makes the host wait for the device, but nothing runs during a capture",
        next="make this call before the capture or after a replay; copies need non_blocking=True and pinned memory",
    )
