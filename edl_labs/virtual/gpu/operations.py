"""The operations of a recorded program, one entry of `OPERATIONS` each: its form, its replay, what it reads and writes.

Whoever adds an operation adds its entry here, and the method that records it to VirtualGPU or its streams: replays,
races and data flow follow the table. Nothing in a program is trusted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, cast

from edl_labs.virtual.errors import shown
from edl_labs.virtual.gpu.buffers import DEVICE, MAX_REGIONS, PAGEABLE, PINNED, Region
from edl_labs.virtual.gpu.core import Core
from edl_labs.virtual.quantities import MAX_BYTES, MAX_FLOPS, MAX_NAME, MAX_SECONDS
from edl_labs.virtual.recorded import MAX_REPLAYED, Entry, ProgramForm

_Check = Callable[[object], bool]
# Regions in plain form, as [buffer, start, stop]: what an operation reads, and what it writes.
Accesses = tuple[list[list[int]], list[list[int]]]

# What an operation does to memory and order, in the eyes of those who follow a program: it makes a buffer, works on
# buffers, puts a mark into a stream, makes a stream wait for a mark, gives a buffer back, or keeps it for a stream.
ALLOCATES, WORKS, MARKS, AWAITS, FREES, KEEPS = "allocates", "works", "marks", "awaits", "frees", "keeps"
# How the bytes that an operation writes follow from those that it reads.
COPIED, COMPUTED = "copied", "computed"
# For `teaches`: every stream of the device.
EVERY = -1


def _nothing(entry: Entry) -> Accesses:
    return [], []


def _never(entry: Entry, places: list[str]) -> bool:
    return False


def _always(entry: Entry, places: list[str]) -> bool:
    return True


@dataclass(frozen=True)
class OperationKind:
    """One kind of operation.

    `required` and `optional` fields have a check each. `play` issues it to a VirtualGPU and gives what it returned.
    `effect` and `touches` say what it does to whose order and to which memory, `writes` how. `on_host` tells whether
    the host itself does the work and `blocks` whether the call keeps the host until the device is done, from the entry
    and the places of its `dst` and `src`. `teaches` lists the streams and events that are over once it has returned.
    """

    required: Mapping[str, _Check]
    play: Callable[[Any, Entry], Any]
    optional: Mapping[str, _Check] = field(default_factory=dict)
    effect: str = ""
    touches: Callable[[Entry], Accesses] = _nothing
    writes: str = ""
    on_host: Callable[[Entry, list[str]], bool] = _never
    blocks: Callable[[Entry, list[str]], bool] = _never
    teaches: Callable[[Entry], list[tuple[str, int]]] = lambda entry: []
    is_kernel: bool = False


def _number(highest: float) -> _Check:
    return lambda value: type(value) in (int, float) and _within(value, highest)


def _within(value: Any, highest: float) -> bool:
    # Comparing first keeps a huge integer from being turned into a float.
    return 0 <= value <= highest and math.isfinite(value)


def _whole(highest: int, lowest: int = 0) -> _Check:
    return lambda value: type(value) is int and lowest <= value <= highest


def _text(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= MAX_NAME


def _flag(value: object) -> bool:
    return type(value) is bool


def _region_form(value: object) -> bool:
    return type(value) is list and len(value) == 3 and all(map(_whole(MAX_BYTES), value))


def _regions(value: object) -> bool:
    return type(value) is list and len(value) <= MAX_REGIONS and all(map(_region_form, value))


def _place(value: object) -> bool:
    return type(value) is str and value in (DEVICE, PINNED, PAGEABLE)


def _anything(value: object) -> bool:
    return True


_INDEX, _TIMES, _SECONDS = _whole(10**9), _whole(10**9, 1), _number(MAX_SECONDS)


def _region(gpu: Any, plain: list[int]) -> Region:
    index, start, stop = plain
    return gpu.buffers[index][start:stop]


def _declared(gpu: Any, entry: Entry, role: str) -> Any:
    return tuple(_region(gpu, plain) for plain in entry[role]) if role in entry else ()


def _expect(made: Any, number: int) -> None:
    if made.index != number:
        raise LookupError(number)


def _alloc(gpu: Any, entry: Entry) -> None:
    if entry["where"] == DEVICE:
        made = gpu.empty(entry["bytes"], name=entry["name"])
    else:
        made = gpu.host_empty(entry["bytes"], pin_memory=entry["where"] == PINNED, name=entry["name"])
    _expect(made, entry["buffer"])


def _free(gpu: Any, entry: Entry) -> None:
    buffer = gpu.buffers[entry["buffer"]]
    # What was current when the buffer was made is no operation of the program; freeing tells whose memory it was.
    buffer.home = gpu.streams[entry.get("stream", 0)].index
    gpu.free(buffer)


def _launch(gpu: Any, entry: Entry) -> None:
    work = {name: entry[name] for name in ("duration_s", "flops", "moved_bytes", "dtype") if name in entry}
    reads, writes = _declared(gpu, entry, "reads"), _declared(gpu, entry, "writes")
    stream, elementwise = gpu.streams[entry["stream"]], entry.get("elementwise", False)
    for _ in range(entry.get("times", 1)):
        gpu.launch(entry["name"], **work, reads=reads, writes=writes, elementwise=elementwise, stream=stream)


def _copy(gpu: Any, entry: Entry) -> None:
    dst, src = _region(gpu, entry["dst"]), _region(gpu, entry["src"])
    gpu.copy(dst, src, non_blocking=entry["non_blocking"], stream=gpu.streams[entry["stream"]])


def _declared_accesses(entry: Entry) -> Accesses:
    return entry.get("reads", []), entry.get("writes", [])


def _copy_blocks(entry: Entry, places: list[str]) -> bool:
    across = len({place == DEVICE for place in places}) == 2
    return across and (PAGEABLE in places or not entry["non_blocking"])


_ON_STREAM = {"stream": _INDEX}
_OF_EVENT = {"event": _INDEX}
_READING = {"value": _anything}

# A value that is a reading may be anything: it only has to equal the replayed one.
OPERATIONS: dict[str, OperationKind] = {
    "alloc": OperationKind(
        {"buffer": _INDEX, "bytes": _whole(MAX_BYTES, 1), "where": _place, "name": _text}, _alloc, effect=ALLOCATES
    ),
    "free": OperationKind({"buffer": _INDEX}, _free, optional=_ON_STREAM, effect=FREES),
    "record_stream": OperationKind(
        {"buffer": _INDEX, **_ON_STREAM},
        lambda gpu, e: gpu.buffers[e["buffer"]].record_stream(gpu.streams[e["stream"]]),
        effect=KEEPS,
    ),
    "stream": OperationKind(_ON_STREAM, lambda gpu, e: _expect(gpu.Stream(), e["stream"])),
    "event": OperationKind(
        {**_OF_EVENT, "timing": _flag}, lambda gpu, e: _expect(gpu.Event(enable_timing=e["timing"]), e["event"])
    ),
    "launch": OperationKind(
        {"name": _text, **_ON_STREAM},
        _launch,
        optional={
            "duration_s": _SECONDS,
            "flops": _number(MAX_FLOPS),
            "moved_bytes": _whole(MAX_BYTES),
            "dtype": _text,
            "reads": _regions,
            "writes": _regions,
            "elementwise": _flag,
            "times": _TIMES,
        },
        effect=WORKS,
        touches=_declared_accesses,
        writes=COMPUTED,
        is_kernel=True,
    ),
    "copy": OperationKind(
        {"dst": _region_form, "src": _region_form, **_ON_STREAM, "non_blocking": _flag},
        _copy,
        effect=WORKS,
        touches=lambda e: ([e["src"]], [e["dst"]]),
        writes=COPIED,
        on_host=lambda e, places: DEVICE not in places,
        blocks=_copy_blocks,
    ),
    "item": OperationKind(
        {"src": _region_form, **_ON_STREAM, **_READING},
        lambda gpu, e: gpu.item(_region(gpu, e["src"]), stream=gpu.streams[e["stream"]]),
        effect=WORKS,
        touches=lambda e: ([e["src"]], []),
        blocks=_always,
    ),
    "host_work": OperationKind(
        {"duration_s": _SECONDS},
        lambda gpu, e: gpu.host_work(
            e["duration_s"], reads=_declared(gpu, e, "reads"), writes=_declared(gpu, e, "writes")
        ),
        optional={"reads": _regions, "writes": _regions},
        effect=WORKS,
        touches=_declared_accesses,
        writes=COMPUTED,
        on_host=_always,
    ),
    "record": OperationKind(
        {**_OF_EVENT, **_ON_STREAM},
        lambda gpu, e: gpu.events[e["event"]].record(gpu.streams[e["stream"]]),
        effect=MARKS,
    ),
    "wait": OperationKind(
        {**_OF_EVENT, **_ON_STREAM},
        lambda gpu, e: gpu.streams[e["stream"]].wait_event(gpu.events[e["event"]]),
        effect=AWAITS,
    ),
    "synchronize": OperationKind(
        {}, lambda gpu, e: gpu.synchronize(), blocks=_always, teaches=lambda e: [("stream", EVERY)]
    ),
    "sync_stream": OperationKind(
        _ON_STREAM,
        lambda gpu, e: gpu.streams[e["stream"]].synchronize(),
        blocks=_always,
        teaches=lambda e: [("stream", e["stream"])],
    ),
    "sync_event": OperationKind(
        _OF_EVENT,
        lambda gpu, e: gpu.events[e["event"]].synchronize(),
        blocks=_always,
        teaches=lambda e: [("event", e["event"])],
    ),
    "query_stream": OperationKind(
        {**_ON_STREAM, **_READING},
        lambda gpu, e: gpu.streams[e["stream"]].query(),
        teaches=lambda e: [("stream", e["stream"])] if e["value"] else [],
    ),
    "query_event": OperationKind(
        {**_OF_EVENT, **_READING},
        lambda gpu, e: gpu.events[e["event"]].query(),
        teaches=lambda e: [("event", e["event"])] if e["value"] else [],
    ),
    "elapsed_time": OperationKind(
        {"start": _INDEX, "end": _INDEX, **_READING},
        lambda gpu, e: gpu.events[e["start"]].elapsed_time(gpu.events[e["end"]]),
        teaches=lambda e: [("event", e["start"]), ("event", e["end"])],
    ),
    "now": OperationKind(_READING, lambda gpu, e: gpu.now_s()),
}


_FORM = ProgramForm("VirtualGPU", "gpu.program", OPERATIONS)
malformed, done_again = _FORM.malformed, _FORM.done_again


def entries(program: object, *, max_operations: int = MAX_REPLAYED) -> Iterator[tuple[int, Entry]]:
    """The operations of a program with their numbers, each checked in its turn; ReplayError for anything else."""
    return _FORM.entries(program, _checked, _charge, at_most=max_operations)


def _checked(index: int, entry: Any) -> Entry:
    name = _FORM.name_of(index, entry)
    kind = OPERATIONS[name]
    for key, value in entry.items():
        if key == "op" and type(key) is str:
            continue
        check = (kind.required.get(key) or kind.optional.get(key)) if type(key) is str else None
        if check is None:
            raise malformed(index, f"is a {name} with a field {shown(key)}, which it does not have")
        if not check(value):
            raise malformed(index, f"is a {name} whose {key} cannot be {shown(value)}")
    missing = [key for key in kind.required if key not in entry]
    if missing:
        raise malformed(index, f"is a {name} without its {missing[0]}")
    return cast(Entry, entry)


def _charge(entry: Entry) -> int:
    # Operations on many regions count for several: each region of each of them is kept.
    touched = len(entry.get("reads", ())) + len(entry.get("writes", ()))
    return int(entry.get("times", 1)) * max(1, touched // 4)


def compact(program: list[Entry]) -> list[Entry]:
    """The same program with runs of equal launches written once, with `times`: smaller evidence, replayed alike.

    >>> compact([{"op": "launch", "name": "k", "stream": 0, "duration_s": 1e-6}] * 3)
    [{'op': 'launch', 'name': 'k', 'stream': 0, 'duration_s': 1e-06, 'times': 3}]
    """
    short: list[Entry] = []
    for entry, run in groupby(program):
        times = len(list(run))
        kind = OPERATIONS.get(entry.get("op", ""))
        if kind is not None and kind.is_kernel and "times" not in entry and times > 1:
            short.append({**entry, "times": times})
        else:
            short.extend([entry] * times)
    return short


class Player:
    """Issues checked operations to a VirtualGPU made for it, whose core it traces, and keeps count."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        gpu.core.traced = True
        self.counts: Counter[str] = Counter()
        self.launches: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()
        self.blocking = 0

    def issue(self, entry: Entry) -> Any:
        """Issue one operation, and give what it returned; LookupError where it needs what the program did not make."""
        kind, name, times = OPERATIONS[entry["op"]], entry["op"], entry.get("times", 1)
        value = kind.play(self.gpu, entry)
        places = [self.gpu.buffers[entry[side][0]].where for side in ("dst", "src") if side in entry]
        if kind.writes == COPIED:
            name = _direction(*places)
            self.copied[name] += entry["dst"][2] - entry["dst"][1]
        if kind.is_kernel:
            self.launches[entry["name"]] += times
        self.counts[name] += times
        self.blocking += kind.blocks(entry, places)
        return value

    def finish(self) -> Core:
        """Let everything that was issued come to its end."""
        core: Core = self.gpu.core
        core.engines.run_all()
        return core


def _direction(dst: str, src: str) -> str:
    """The name under which a copy between two places is counted: H is the host, D the device."""
    ends = ["D" if place == DEVICE else "H" for place in (src, dst)]
    return f"copy {ends[0]}2{ends[1]}"
