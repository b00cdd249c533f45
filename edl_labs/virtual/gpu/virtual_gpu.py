"""VirtualGPU: a deterministic model of a host and its GPU that code drives as it drives torch.cuda."""

from __future__ import annotations

from typing import Any, Unpack

from edl_labs.hardware import Accelerator
from edl_labs.virtual.errors import VirtualGPUError, shown
from edl_labs.virtual.gpu import graphs, streams
from edl_labs.virtual.gpu.buffers import (
    DEVICE,
    PAGEABLE,
    PINNED,
    Buffer,
    Region,
    checked,
    declare,
    plain,
    refuse_device,
    regions,
)
from edl_labs.virtual.gpu.copies import planned
from edl_labs.virtual.gpu.core import Core
from edl_labs.virtual.gpu.graphs import GraphContext, graph_context
from edl_labs.virtual.gpu.launches import KernelOptions, LaunchedKernel, kernel
from edl_labs.virtual.gpu.machine import VirtualMachine, machine, transfer_ps
from edl_labs.virtual.gpu.player import played
from edl_labs.virtual.gpu.streams import StreamContext, not_a_stream, own_stream
from edl_labs.virtual.gpu.work_items import COMPUTE, TO_HOST, Blocks, Operation
from edl_labs.virtual.host_clock import VirtualClock
from edl_labs.virtual.quantities import label, picoseconds, whole_bytes
from edl_labs.virtual.timeline import Timeline

MAX_STREAMS = 128  # as many grids may be resident on a device (CUDA C++ Programming Guide, technical specifications)
HIGHEST_PRIORITY = -5  # the range of an H100: 0 to -5 (cudaDeviceGetStreamPriorityRange)
_SCALAR_BYTES = 16  # the largest scalar of torch: complex128


class VirtualGPU:
    """A host and a GPU on virtual time: exact, the same on every run and every computer.

    Calls cost the host what `machine` says; kernels and copies run on the device, in the order of issue in each stream,
    on one compute engine and one copy engine each way. Everything issued and every reading is kept in `program`.

    >>> gpu = VirtualGPU(VirtualMachine(launch_overhead_s=2e-6))
    >>> for _ in range(3):
    ...     gpu.launch("relu", duration_s=10e-6)
    >>> gpu.now_s()
    6e-06
    >>> gpu.synchronize()
    >>> gpu.now_s()
    3.2e-05
    """

    def __init__(
        self, model: str | Accelerator | VirtualMachine | dict[str, Any] = "A100-80GB", **parameters: Any
    ) -> None:
        self.machine = machine(model, **parameters)
        self.clock = VirtualClock(self)
        self.core = Core(self.machine, traced=False)
        self.streams = [streams.Stream(self, 0)]
        self.events: list[streams.Event] = []
        self.buffers: list[Buffer] = []
        self.graphs: list[graphs.CUDAGraph] = []
        self._current = self.streams[0]
        self._used_bytes = 0
        self._launch_ps = self.core.costs_ps["launch_overhead_s"]
        self._copy_ps = self.core.costs_ps["copy_overhead_s"]
        self._synchronized = {"op": "synchronize"}
        self._synchronize_ps = self.core.costs_ps["sync_overhead_s"]

    def empty(self, nbytes: int, *, name: str = "") -> Buffer:
        """Allocate memory on the device."""
        size = whole_bytes(nbytes, "a buffer", lowest=1)
        left = self.machine.memory_bytes - self._used_bytes
        if size > left:
            raise VirtualGPUError(
                f"out of memory: {size:,} bytes requested, {left:,} left",
                why=f"{self.machine.name} has {self.machine.memory_bytes:,} bytes",
                next="call gpu.free(buffer) for each buffer that is no longer used, or work in chunks",
            )
        buffer = self._alloc(size, DEVICE, name)
        self.core.wake()
        self._used_bytes += size
        return buffer

    def host_empty(self, nbytes: int, *, pin_memory: bool = False, name: str = "") -> Buffer:
        """Memory of the host: pageable, or pinned (page-locked), which copy engines reach directly."""
        return self._alloc(whole_bytes(nbytes, "a buffer", lowest=1), PINNED if pin_memory else PAGEABLE, name)

    def free(self, buffer: Buffer) -> None:
        """Free a buffer; it must not be used afterwards.

        As with torch's allocator nothing waits: the stream that was current when the buffer was made may use its memory
        for something else at once. Work of other streams on it that is not over by then races with that, unless
        `buffer.record_stream(stream)` announced them.
        """
        whole = checked(self, buffer, role="the buffer").buffer
        home = {"stream": whole.home} if whole.home and whole.where == DEVICE else {}
        self.core.keep({"op": "free", "buffer": whole.index, **home})
        whole.freed = True
        for stream in self.streams:
            stream.forget()
        if whole.where == DEVICE:
            self._used_bytes -= whole.nbytes

    def record_stream(self, buffer: Buffer, stream: streams.Stream) -> None:
        """What `buffer.record_stream(stream)` does."""
        whole = checked(self, buffer, role="the buffer").buffer
        self.core.keep({"op": "record_stream", "buffer": whole.index, "stream": own_stream(self, stream).index})

    def launch(
        self,
        name: str,
        *,
        duration_s: float | None = None,
        stream: streams.Stream | None = None,
        **work: Unpack[KernelOptions],
    ) -> None:
        """Issue a kernel, of `duration_s` or of an amount of work that the machine prices; the host goes on.

        Work is `flops` of a `dtype` ("fp32") and `moved_bytes` (the sizes of `reads` and `writes` unless given), which
        overlap. A kernel that touches a small working set again finds it in the L2; without declared buffers it has its
        own, by its name. `elementwise`: byte i of each write depends on byte i of each read alone, all of one size.

        A kernel has the device for itself, unless it says how many `blocks` it has, each of `duration_s`: blocks share
        SMs, of which one holds up to `blocks_per_sm` (1), by the law of `gpu.multiprocessors`.
        """
        if stream is None:
            stream = self._current
        elif type(stream) is not streams.Stream or stream.gpu is not self:
            raise not_a_stream(stream)
        if not work:
            # What programs issue most, written out: `Core.run_alone` of a kernel that the stream remembers.
            try:
                known = stream.known[name]
            except (KeyError, TypeError):
                known = None
            if known is not None and known.duration_s == duration_s and type(duration_s) is float:
                core, lane = self.core, stream.lane
                recorded = core.recorded
                if core.alone is lane and len(recorded) < core.most_recorded:
                    recorded.append(known.entry)
                    queue, now = lane.in_flight, core.host_ps
                    if len(queue) >= core.room:
                        if core.is_bounded:
                            first = queue.popleft()
                            end = first[0] if type(first) is tuple else first.done
                            if end > now:
                                now = end
                        else:
                            core.let_go(queue)
                    core.host_ps = now = now + self._launch_ps
                    end = lane.done
                    lane.done = end = (now if now > end else end) + known.ps
                    queue.append((end, now, known))
                    return
        self._launch(kernel(self.machine, name, stream=stream, duration_s=duration_s, work=work), stream)

    def _launch(self, kernel: LaunchedKernel, stream: streams.Stream) -> None:
        core, name = self.core, kernel.entry["name"]
        if name in core.loaded and kernel.ps is not None and core.enter(stream.lane):
            core.run_alone(kernel, self._launch_ps)
        else:
            core.keep(kernel.entry)
            core.load(name)
            if isinstance(kernel.cost, Blocks):
                core.share(ranked=False)
            core.issue(Operation(stream.lane, COMPUTE, name, kernel.cost), self._launch_ps)
        for buffer in kernel.written:
            buffer.versions += 1

    def copy(
        self, dst: Region, src: Region, *, non_blocking: bool = False, stream: streams.Stream | None = None
    ) -> None:
        """Copy `src` to `dst`, between host and device or on one of them.

        Only a pinned copy with `non_blocking=True`, and one on the device, lets the host go on. A copy to or from
        pageable memory is staged: it runs at a lower rate and keeps the host to its end, whatever `non_blocking` says.
        """
        stream = own_stream(self, stream)
        plan = planned(self.machine, dst, src, non_blocking=bool(non_blocking), stream=stream)
        core = self.core
        core.keep(plan.entry)
        if plan.engine is None:
            core.spend("copy on the host", plan.ps)
            plan.written.versions += 1
            return
        operation = Operation(stream.lane, plan.engine, plan.label, plan.ps)
        core.issue(operation, self._copy_ps)
        plan.written.versions += 1
        if plan.blocks:
            core.block("copy", operation)

    def item(self, source: Region, *, stream: streams.Stream | None = None) -> int:
        """Read one number (at most 16 bytes) from the device, as `tensor.item()` does: the host waits for the stream.

        What comes back stands for the value: how many operations issued so far write into the buffer.
        """
        stream = own_stream(self, stream)
        region = checked(self, source, role="the source")
        if region.buffer.where != DEVICE or region.nbytes > _SCALAR_BYTES:
            raise VirtualGPUError(
                f"{region!r}, of {region.nbytes} bytes, is not a single number on the device",
                why=f"item() reads a single number of at most {_SCALAR_BYTES} bytes from the device",
                next="copy larger data with gpu.copy(host_buffer, device_buffer)",
            )
        value = region.buffer.versions
        self.core.keep({"op": "item", "src": plain(region), "stream": stream.index, "value": value})
        ps = self.core.costs_ps["copy_latency_s"] + transfer_ps(region.nbytes, self.machine.link_byte_per_s)
        operation = Operation(stream.lane, TO_HOST, "item", ps)
        self.core.issue(operation, self._copy_ps)
        self.core.block("item", operation)
        return value

    def host_work(self, duration_s: float, *, reads: Any = (), writes: Any = ()) -> None:
        """Keep the host busy for `duration_s`, as Python between two calls does; it may touch host buffers."""
        ps = picoseconds(duration_s, "duration_s")
        read, written = regions(self, reads, role="the host's input"), regions(self, writes, role="the host's output")
        for part in read + written:
            refuse_device(part)
        entry: dict[str, Any] = {"op": "host_work", "duration_s": duration_s}
        declare(entry, read, written)
        self.core.keep(entry)
        self.core.spend("host work", ps)
        for part in written:
            part.buffer.versions += 1

    def Stream(self, *, priority: int = 0) -> streams.Stream:  # noqa: N802
        """A new stream. Of two with kernels ready the one of lower `priority` goes first, from its next block on.

        As in torch, a number beyond the device's range (-5 to 0) means the nearest in it.
        """
        if type(priority) is not int:
            raise VirtualGPUError(
                f"a stream cannot have the priority {shown(priority)}",
                why="a priority is a whole number: it is 0 for most streams, and streams with lower numbers run first",
                next="use priority=-1",
            )
        if len(self.streams) >= MAX_STREAMS:
            raise VirtualGPUError(
                f"a device has at most {MAX_STREAMS} streams here",
                why="a device has few hardware queues, and additional streams would share them",
                next="create a few streams and use them in turn",
            )
        rank = max(HIGHEST_PRIORITY, min(priority, 0))
        stream = streams.Stream(self, len(self.streams), priority=rank)
        self.core.keep({"op": "stream", "stream": stream.index, **({"priority": rank} if rank else {})})
        self.streams.append(stream)
        if rank:
            self.core.share(ranked=True)
        return stream

    def Event(self, *, enable_timing: bool = False) -> streams.Event:  # noqa: N802
        """A new event; `enable_timing=True` makes one that keeps its time."""
        event = streams.Event(self, len(self.events), enable_timing=bool(enable_timing))
        self.core.keep({"op": "event", "event": event.index, "timing": event.enable_timing})
        self.events.append(event)
        return event

    def CUDAGraph(self) -> graphs.CUDAGraph:  # noqa: N802
        """A new graph, to capture device work into and replay it."""
        return graphs.CUDAGraph(self)

    def graph(self, cuda_graph: graphs.CUDAGraph, *, stream: streams.Stream | None = None) -> GraphContext:
        """A context that captures what is issued in it into `cuda_graph`, from `stream` (a new one unless given)."""
        return graph_context(self, cuda_graph, stream)

    def is_current_stream_capturing(self) -> bool:
        """Whether a graph is being captured, so that nothing runs."""
        return isinstance(self.core, graphs.Capturing)

    def stream(self, stream: streams.Stream) -> StreamContext:
        """A context in which `stream` is the current stream."""
        return StreamContext(self, own_stream(self, stream))

    def current_stream(self) -> streams.Stream:
        """The stream that receives work if no other stream is named."""
        return self._current

    def default_stream(self) -> streams.Stream:
        """The stream that exists from the beginning."""
        return self.streams[0]

    def set_stream(self, stream: streams.Stream) -> None:
        """Make `stream` the current stream."""
        self._current = own_stream(self, stream)

    def synchronize(self) -> None:
        """Make the host wait until the device has finished all its work."""
        core = self.core
        lane, recorded = core.alone, core.recorded
        if lane is None or len(recorded) >= core.most_recorded:
            core.keep({"op": "synchronize"})
            core.wake()
            core.spend("synchronize", self._synchronize_ps)
            core.drain_all("synchronize")
            return
        # What timers do most, written out: `Core.all_done` of a lane that is alone.
        recorded.append(self._synchronized)
        now, end = core.host_ps + self._synchronize_ps, lane.done
        if core.done_before > end:
            end = core.done_before
        core.host_ps = now if now > end else end
        # All of it is over, and leaves room.
        core.lane_done_before = lane.done
        lane.in_flight.clear()

    def now_s(self) -> float:
        """A reading of the host's clock: it takes `clock_read_cost_s`, then is rounded down to the resolution."""
        core = self.core
        value = core.read_clock()
        recorded = core.recorded
        if core.traced or len(recorded) >= core.most_recorded:
            core.keep({"op": "now", "value": value})
        else:
            recorded.append({"op": "now", "value": value})
        return value

    @property
    def program(self) -> list[dict[str, Any]]:
        """Everything issued and every reading, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self.core.recorded]

    @property
    def timeline(self) -> Timeline:
        """What runs when, from playing the program so far to its end on a machine of the same kind."""
        return played(VirtualGPU(self.machine), self.program)

    def _alloc(self, size: int, where: str, name: str) -> Buffer:
        index = len(self.buffers)
        name = label(name or f"buffer{index}")
        buffer = Buffer(self, index=index, nbytes=size, where=where, name=name, home=self._current.index)
        self.core.keep({"op": "alloc", "buffer": index, "bytes": size, "where": where, "name": buffer.name})
        self.buffers.append(buffer)
        return buffer
