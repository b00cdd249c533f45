"""Recordings of the real allocator, `torch.cuda.memory._snapshot()`, as programs of a VirtualAllocator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory.allocator.program import MOST_STREAMS
from edl_labs.virtual.program import Entry

_RELEASES = ("segment_free", "segment_unmap")  # what empty_cache does, to whole segments or to pages


def program_of_snapshot(snapshot: Mapping[str, Any], *, device: int = 0) -> list[Entry]:
    """The requests in `torch.cuda.memory._snapshot()` (its dict, or JSON read back) as a program of a VirtualAllocator.

    The recording must start before the first allocation. A block whose free completes later than requested was used by
    another stream, which a number of its own stands for. Runs of `segment_free` or `segment_unmap` are an
    `empty_cache`, called or inside a retry: either leaves the same. VirtualMemoryError for anything else.

    >>> events = [("segment_alloc", 0, 2097152), ("alloc", 0, 1000), ("free_requested", 0, 1000)]
    >>> trace = [{"action": a, "addr": p, "size": s, "stream": 0} for a, p, s in events]
    >>> [entry["op"] for entry in program_of_snapshot({"device_traces": [trace]})]
    ['malloc', 'free']
    """
    traces = snapshot.get("device_traces") if isinstance(snapshot, Mapping) else None
    if not isinstance(traces, (list, tuple)) or not 0 <= device < len(traces):
        raise _not_a_trace(f"it has no device_traces for device {device}")
    reader = _TraceReader(list(traces[device]))
    try:
        return reader.program()
    except (KeyError, TypeError) as error:
        raise _not_a_trace(f"event {reader.at} has no field {error}") from None


class _TraceReader:
    """Turns the events of a device into operations, one pass from the first to the last."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.at = 0
        self.live: dict[int, int] = {}
        self.waiting: dict[int, int] = {}
        self.found: list[Entry] = []
        self.made = 0
        self.segment_at: int | None = None

    def program(self) -> list[Entry]:
        completed_later = self._completed_later()
        releasing = False
        for at, event in enumerate(self.events):
            self.at = at
            action, address = event["action"], event.get("addr", 0)
            if action in _RELEASES and not releasing:
                self.found.append({"op": "empty_cache"})
            releasing = action in _RELEASES
            if action == "segment_alloc":
                self.segment_at = address
            elif action in ("alloc", "oom"):
                self._malloc(event, fits=action == "alloc")
            elif action == "free_requested":
                self._free(address, later=self.at in completed_later)
            elif action == "free_completed" and address in self.waiting:
                self.found.append({"op": "finish", "stream": self.waiting.pop(address)})
        return self.found

    def _completed_later(self) -> set[int]:
        """The events that ask for a free which does not complete at once."""
        late, names = set(), [event["action"] for event in self.events]
        for at, event in enumerate(self.events):
            if names[at] == "free_requested":
                follows = self.events[at + 1] if at + 1 < len(self.events) else None
                at_once = follows is None or (follows["action"], follows.get("addr")) == (
                    "free_completed",
                    event["addr"],
                )
                if not at_once:
                    late.add(at)
        return late

    def _malloc(self, event: Mapping[str, Any], *, fits: bool) -> None:
        entry: Entry = {"op": "malloc", "number": self.made, "bytes": event["size"], "stream": event["stream"]}
        entry["value"] = True if fits else None
        if self.segment_at is not None:
            entry["segment_at"], self.segment_at = self.segment_at, None
        if fits:
            self.live[event["addr"]] = self.made
        self.made += 1
        self.found.append(entry)

    def _free(self, address: int, *, later: bool) -> None:
        if address not in self.live:
            raise _not_a_trace(f"event {self.at} frees memory that the trace did not allocate")
        number = self.live.pop(address)
        if later:
            self.waiting[address] = MOST_STREAMS - number
            self.found.append({"op": "record_stream", "number": number, "stream": self.waiting[address]})
        self.found.append({"op": "free", "number": number})


def _not_a_trace(why: str) -> VirtualMemoryError:
    return VirtualMemoryError(
        "this is not a complete allocator trace",
        why=why,
        next="call torch.cuda.memory._record_memory_history() before the first allocation, then call _snapshot()",
    )
