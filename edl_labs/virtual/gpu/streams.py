"""Streams and events of a VirtualGPU, with the names and habits of torch.cuda."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol

from edl_labs.virtual.errors import VirtualGPUError
from edl_labs.virtual.gpu.copies import Copy
from edl_labs.virtual.gpu.core import Core
from edl_labs.virtual.gpu.launches import LaunchedKernel
from edl_labs.virtual.gpu.work_items import Lane, Mark


class StreamOwner(Protocol):
    """What streams and events need of the VirtualGPU that made them."""

    core: Core

    def Event(self, *, enable_timing: bool = False) -> Event: ...  # noqa: N802

    def current_stream(self) -> Stream: ...

    def set_stream(self, stream: Stream) -> None: ...


class Stream:
    """A queue of device work that runs in the order of issue. Make one with `gpu.Stream()`."""

    __slots__ = ("_records", "_waits", "copies", "gpu", "index", "known", "lane", "priority")

    def __init__(self, gpu: StreamOwner, index: int, *, priority: int = 0) -> None:
        self.gpu, self.index, self.priority, self.lane = gpu, index, priority, Lane(index, priority)
        # What loops issue again and again is checked and priced once.
        self.known: dict[Any, LaunchedKernel] = {}
        self.copies: dict[Any, Copy] = {}
        self._records: dict[int, dict[str, Any]] = {}
        self._waits: dict[int, dict[str, Any]] = {}

    def forget(self) -> None:
        """Check again what is issued next: some memory is gone."""
        self.known.clear()
        self.copies.clear()

    def synchronize(self) -> None:
        """Make the host wait until everything issued to this stream is done."""
        core = self.gpu.core
        core.keep({"op": "sync_stream", "stream": self.index})
        core.wake()
        core.spend("stream.synchronize", core.costs_ps["sync_overhead_s"])
        core.drain("stream.synchronize", self.lane)

    def query(self) -> bool:
        """Whether everything issued to this stream is done now."""
        core = self.gpu.core
        core.spend("stream.query", core.costs_ps["event_overhead_s"])
        core.engines.run_until(core.host_ps)
        value = self.lane.head is None and self.lane.done <= core.host_ps
        core.keep({"op": "query_stream", "stream": self.index, "value": value})
        return value

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for the point that `event` recorded last; the host goes on.

        As in CUDA, an event that was never recorded is waited for by nothing: a mistake that only a race shows.
        """
        gpu = self.gpu
        if type(event) is not Event or event.gpu is not gpu:
            own_event(gpu, event, use="wait for")
        entry = self._waits.get(event.index)
        if entry is None:
            entry = self._waits[event.index] = {"op": "wait", "event": event.index, "stream": self.index}
        core = gpu.core
        core.keep(entry)
        core.issue(Mark(self.lane, "wait_event", event.mark), core.costs_ps["event_overhead_s"])

    def wait_stream(self, other: Stream) -> None:
        """Make later work of this stream wait for everything issued to `other` so far."""
        self.wait_event(own_stream(self.gpu, other).record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark the current end of this stream with `event` (by default, a new one)."""
        gpu = self.gpu
        marked = gpu.Event() if event is None else event
        if type(marked) is not Event or marked.gpu is not gpu:
            own_event(gpu, marked, use="record")
        entry = self._records.get(marked.index)
        if entry is None:
            entry = self._records[marked.index] = {"op": "record", "event": marked.index, "stream": self.index}
        core = gpu.core
        core.keep(entry)
        mark = Mark(self.lane, "record")
        core.issue(mark, core.costs_ps["event_overhead_s"])
        marked.mark = mark
        return marked

    def __repr__(self) -> str:
        return f"stream {self.index}"


class Event:
    """A mark in a stream, to wait for and, with `enable_timing=True`, to measure between. Made with `gpu.Event()`."""

    __slots__ = ("enable_timing", "gpu", "index", "mark")

    def __init__(self, gpu: StreamOwner, index: int, *, enable_timing: bool) -> None:
        self.gpu, self.index, self.enable_timing = gpu, index, enable_timing
        self.mark: Mark | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the current end of `stream` (by default, the current stream)."""
        own_stream(self.gpu, stream).record_event(self)

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work of `stream` (by default, the current one) wait for this mark."""
        own_stream(self.gpu, stream).wait_event(self)

    def synchronize(self) -> None:
        """Keep the host until the mark is reached; an event that was never recorded blocks nothing, as in CUDA."""
        core = self.gpu.core
        core.keep({"op": "sync_event", "event": self.index})
        core.spend("event.synchronize", core.costs_ps["sync_overhead_s"])
        if self.mark is not None:
            core.block("event.synchronize", self.mark)

    def query(self) -> bool:
        """Whether the mark is reached now; True for an event that was never recorded, as in CUDA."""
        core, mark = self.gpu.core, self.mark
        core.spend("event.query", core.costs_ps["event_overhead_s"])
        core.engines.run_until(core.host_ps)
        value = mark is None or (mark.done is not None and mark.done <= core.host_ps)
        core.keep({"op": "query_event", "event": self.index, "value": value})
        return value

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds (as in torch) from this mark to that of `end_event`; the device must have reached both."""
        core = self.gpu.core
        core.engines.run_until(core.host_ps)
        marks = [_mark_of(self.gpu, event) for event in (self, end_event)]
        began, ended = (_reached_ps(event, mark) for event, mark in zip((self, end_event), marks, strict=True))
        value = (ended - began) / 10**9
        core.keep({"op": "elapsed_time", "start": self.index, "end": end_event.index, "value": value})
        return value

    def __repr__(self) -> str:
        return f"event {self.index}"


class StreamContext:
    """`with gpu.stream(s):` makes `s` the current stream inside the block."""

    def __init__(self, gpu: StreamOwner, stream: Stream) -> None:
        self._gpu, self._stream = gpu, stream
        self._before: list[Stream] = []

    def __enter__(self) -> Stream:
        self._before.append(self._gpu.current_stream())
        self._gpu.set_stream(self._stream)
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gpu.set_stream(self._before.pop())


def own_stream(gpu: StreamOwner, stream: object) -> Stream:
    """`stream`, or the current one for None; VirtualGPUError if it belongs elsewhere."""
    if stream is None:
        return gpu.current_stream()
    if type(stream) is not Stream or stream.gpu is not gpu:
        raise not_a_stream(stream)
    return stream


def not_a_stream(stream: object) -> VirtualGPUError:
    """The error for what is no stream of the device that it was given to."""
    return VirtualGPUError(
        f"{_short(stream)} is not a stream of this device",
        why="a device runs only the work in its own streams",
        next="create streams with gpu.Stream()",
    )


def own_event(gpu: StreamOwner, event: object, *, use: str) -> Event:
    """`event`; VirtualGPUError if it belongs elsewhere."""
    if not isinstance(event, Event):
        raise VirtualGPUError(
            f"cannot {use} {_short(event)}",
            why=f"{_short(event)} is not an event",
            next="create one with gpu.Event(enable_timing=...)",
        )
    if event.gpu is not gpu:
        raise VirtualGPUError(
            f"cannot {use} {event!r} here: it belongs to another device",
            why="each device has its own streams, events and time",
            next="create events with gpu.Event() on the device that records them",
        )
    return event


def _mark_of(gpu: StreamOwner, event: object) -> Mark:
    """The point whose time is to be taken; VirtualGPUError if the event was never recorded."""
    mark = own_event(gpu, event, use="read the time of").mark
    if mark is None:
        raise VirtualGPUError(
            f"cannot read the time of {event!r}: it was never recorded",
            why="an event has no time until it has been recorded with event.record(stream)",
            next="record it in the stream that does the work, before and after the work to be timed",
        )
    return mark


def _reached_ps(event: Event, mark: Mark) -> int:
    if not event.enable_timing:
        raise VirtualGPUError(
            f"cannot read the time of {event!r}: it was created without timing",
            why="only events with enable_timing=True store a time",
            next="create it with gpu.Event(enable_timing=True)",
        )
    if mark.done is None or mark.done > event.gpu.core.host_ps:
        raise VirtualGPUError(
            f"cannot read the time of {event!r}: the device has not reached it",
            why="the host runs ahead of the device, which has not completed this event yet",
            next="call event.synchronize() on the later event, or gpu.synchronize(), first",
        )
    return mark.done


def _short(value: object) -> str:
    return repr(value) if isinstance(value, (Stream, Event, str, int, float, type(None))) else type(value).__name__
