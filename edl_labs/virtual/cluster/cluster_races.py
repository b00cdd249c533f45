"""Races of a rank: a stream touches what communication still reads or writes, or the other way round.

A rank's program is written as that of one device, with a stream for each lane of its communication; the races of that
program, by the rules of `gpu.races`, are its own. An order that only another rank's messages make does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edl_labs.values import Value
from edl_labs.virtual.cluster.program import COLLECTIVE, LOCAL, MESSAGE, OPERATIONS, TensorForm, text_of
from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.gpu.races import find_races
from edl_labs.virtual.program import Entry

_HOLDS_HOST = "barrier"  # as synchronize does
_MAX_VISITS = 100_000_000  # lanes looked at: half a minute of a judge's time


@dataclass(frozen=True, repr=False)
class ClusterRace(Value):
    """Operations `first` and `second` of a rank touch elements `start` to `stop` of a tensor in no order.

    `kind` says what they do, in the order of issue: 'write, then read', for example.
    """

    rank: int
    tensor: str
    start: int
    stop: int
    first: int
    second: int
    kind: str
    calls: tuple[str, str]

    def __str__(self) -> str:
        return (
            f"rank {self.rank}: {self.calls[0]} (operation {self.first}) and {self.calls[1]} (operation {self.second}) "
            f"both use {self.tensor}[{self.start}:{self.stop}], and neither waits for the other ({self.kind})"
        )


def rank_races(rank: int, program: Sequence[Entry], forms: Sequence[TensorForm]) -> tuple[ClusterRace, ...]:
    """The races of one rank's checked program, at most 100."""
    device = _Device(forms)
    for index, entry in enumerate(program):
        device.take(index, entry)
    if len(device.program) * device.lanes > _MAX_VISITS:
        raise ReplayError(
            f"the program of rank {rank} has too many calls and peers to be checked for races",
            why="every call is compared with the calls to every peer",
            next="use fewer ranks or steps",
        )
    texts = _texts(program)
    found = []
    for race in find_races(device.program):
        form = forms[int(race.buffer)]
        first, second = device.origin[race.first], device.origin[race.second]
        calls = texts.get(first, "?"), texts.get(second, "?")
        bounds = race.start // form.item_bytes, race.stop // form.item_bytes
        found.append(ClusterRace(rank, form.name, *bounds, first, second, race.kind, calls))
    return tuple(found)


def _texts(program: Sequence[Entry]) -> Mapping[int, str]:
    counts: dict[str, int] = {}
    texts = {}
    for index, entry in enumerate(program):
        kind = OPERATIONS[entry["op"]]
        if kind.runs in (COLLECTIVE, MESSAGE):
            counts[entry["op"]] = counts.get(entry["op"], -1) + 1
            texts[index] = text_of(entry, counts[entry["op"]])
        else:
            texts[index] = str(entry.get("name", entry["op"])) if kind.runs == LOCAL else entry["op"]
    return texts


class _Device:
    """A rank's program as that of one device: streams, events, kernels that read and write."""

    def __init__(self, forms: Sequence[TensorForm]) -> None:
        self._forms = forms
        self.program: list[Entry] = []
        self.origin: list[int] = []
        self._streams: dict[Any, int] = {0: 0}
        self._works: list[int] = []
        self._marks = 0

    @property
    def lanes(self) -> int:
        """How many streams the device has, those of communication too."""
        return len(self._streams)

    def take(self, index: int, entry: Entry) -> None:
        """Write the next operation."""
        for made in self._written(entry):
            self.program.append(made)
            self.origin.append(index)

    def _written(self, entry: Entry) -> Iterator[Entry]:
        op, kind = entry["op"], OPERATIONS[entry["op"]].runs
        if op == "tensor":
            form = self._forms[entry["tensor"]]
            place = "device" if form.where == "device" else "pinned"
            yield {
                "op": "alloc",
                "buffer": entry["tensor"],
                "bytes": form.nbytes,
                "where": place,
                "name": str(entry["tensor"]),
            }
        elif op == "free":
            yield from self._made(entry.get("stream", 0))
            yield {"op": "free", "buffer": entry["tensor"], "stream": self._streams[entry.get("stream", 0)]}
        elif kind == LOCAL:
            yield from self._made(entry["stream"])
            yield self._kernel(entry, self._streams[entry["stream"]])
        elif kind in (MESSAGE, COLLECTIVE):
            yield from self._beside(entry)
        elif op in ("record", "wait_event"):
            yield from self._made(entry["stream"])
            event = ("event", entry["event"])
            yield {
                "op": "record" if op == "record" else "wait",
                "event": event,
                "stream": self._streams[entry["stream"]],
            }
        elif op == "wait_work":
            yield from self._made(entry["stream"])
            mark = self._works[entry["work"]]
            yield {"op": "wait", "event": mark, "stream": self._streams[entry["stream"]]}
        elif op == "synchronize":
            yield {"op": "synchronize"}
        elif op == "sync_stream":
            yield from self._made(entry["stream"])
            yield {"op": "sync_stream", "stream": self._streams[entry["stream"]]}

    def _beside(self, entry: Entry) -> Iterator[Entry]:
        lane = ("group", entry["group"]) if "group" in entry else (entry["op"], entry["peer"])
        yield from self._made(entry["stream"])
        yield from self._made(lane)
        stream, beside = self._streams[entry["stream"]], self._streams[lane]
        before, after = self._marks, self._marks + 1
        self._marks += 2
        yield {"op": "record", "event": before, "stream": stream}
        yield {"op": "wait", "event": before, "stream": beside}
        yield self._kernel(entry, beside)
        yield {"op": "record", "event": after, "stream": beside}
        if "async" in entry:
            self._works.append(after)
        else:
            yield {"op": "wait", "event": after, "stream": stream}
            if entry["op"] == _HOLDS_HOST:
                yield {"op": "sync_event", "event": after}

    def _made(self, lane: Any) -> Iterator[Entry]:
        if lane not in self._streams:
            self._streams[lane] = len(self._streams)
            yield {"op": "stream", "stream": self._streams[lane]}

    def _kernel(self, entry: Entry, stream: int) -> Entry:
        made: Entry = {"op": "launch", "name": entry["op"], "stream": stream, "duration_s": 0.0}
        for side in ("reads", "writes"):
            made[side] = [self._bytes(part) for part in entry.get(side, ())]
        return made

    def _bytes(self, part: list[int]) -> list[int]:
        size = self._forms[part[0]].item_bytes
        return [part[0], part[1] * size, part[2] * size]
