"""The operations of a recorded program, one entry of `OPERATIONS` each: its form, its replay, what it reads and writes.

To add an operation, add its entry here, and the method that records it to VirtualGPU or its streams: replays,
races and data flow follow the table. Nothing in a program is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.gpu.buffers import DEVICE, MAX_REGIONS, PAGEABLE, PINNED, Region
from edl_labs.virtual.gpu.graphs import NODES
from edl_labs.virtual.gpu.multiprocessors import MAX_BLOCKS, MAX_PER_SM
from edl_labs.virtual.program import (
    FOLLOWS,
    INDEX,
    READING,
    SECONDS,
    TIMES,
    Check,
    Entry,
    Field,
    OperationKind,
    Program,
    flag,
    from_case,
    number,
    one_of,
    text,
    whole,
)
from edl_labs.virtual.quantities import MAX_BYTES, MAX_FLOPS

# Regions in plain form, as [buffer, start, stop]: what an operation reads, and what it writes.
Accesses = tuple[list[list[int]], list[list[int]]]

# What an operation does to memory and order, in the eyes of those who follow a program: it makes a buffer, works on
# buffers, puts a mark into a stream, makes a stream wait for a mark, gives a buffer back, or keeps it for a stream.
ALLOCATES, WORKS, MARKS, AWAITS, FREES, KEEPS = "allocates", "works", "marks", "awaits", "frees", "keeps"
# How the bytes that an operation writes follow from those that it reads.
COPIED, COMPUTED = "copied", "computed"
# For `observes`: every stream of the device.
EVERY = -1
# What operations have in common: the stream that they are issued to, their event.
ON_STREAM = {"stream": INDEX}
OF_EVENT = {"event": INDEX}


def region_form(value: object) -> bool:
    """A region in plain form, as [buffer, start, stop]."""
    return type(value) is list and len(value) == 3 and all(map(whole(MAX_BYTES), value))


def regions(value: object) -> bool:
    """Several regions in plain form."""
    return type(value) is list and len(value) <= MAX_REGIONS and all(map(region_form, value))


def _nothing(entry: Entry) -> Accesses:
    return [], []


def _never(entry: Entry, places: list[str]) -> bool:
    return False


def _always(entry: Entry, places: list[str]) -> bool:
    return True


@dataclass(frozen=True)
class GPUOperationKind(OperationKind):
    """One kind of operation of a VirtualGPU.

    `bind` gives what plays one entry alone, again and again, with everything looked up. `effect` and `touches` say what
    it does to whose order and to which memory, `writes` how. `on_host` tells whether the host itself does the work and
    `blocks` whether the call keeps the host until the device is done, from the entry and the places of its `dst` and
    `src`. `observes` lists the streams and events that are over once it has returned.
    """

    bind: Callable[[Any, Entry], Callable[[Entry], Any]] | None = None
    effect: str = ""
    touches: Callable[[Entry], Accesses] = _nothing
    writes: str = ""
    on_host: Callable[[Entry, list[str]], bool] = _never
    blocks: Callable[[Entry, list[str]], bool] = _never
    observes: Callable[[Entry], list[tuple[str, int]]] = lambda entry: []
    is_kernel: bool = False


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


def _launch(gpu: Any, entry: Entry) -> Callable[[Entry], None]:
    name, stream, launch = entry["name"], gpu.streams[entry["stream"]], gpu.launch
    work = {key: entry[key] for key in _WORK if key in entry}
    work |= {role: _declared(gpu, entry, role) for role in ("reads", "writes") if role in entry}
    times, duration_s = entry.get("times", 1), entry.get("duration_s")
    if times > 1:

        def again(entry: Entry) -> None:
            for _ in range(times):
                launch(name, duration_s=duration_s, stream=stream, **work)

        return again
    if work:
        return lambda entry: launch(name, duration_s=duration_s, stream=stream, **work)
    return lambda entry: launch(name, duration_s=duration_s, stream=stream)


def _copy(gpu: Any, entry: Entry) -> Callable[[Entry], None]:
    dst, src, copy = _region(gpu, entry["dst"]), _region(gpu, entry["src"]), gpu.copy
    stream, non_blocking = gpu.streams[entry["stream"]], entry["non_blocking"]
    return lambda entry: copy(dst, src, non_blocking=non_blocking, stream=stream)


def _record(gpu: Any, entry: Entry) -> Callable[[Entry], None]:
    record, stream = gpu.events[entry["event"]].record, gpu.streams[entry["stream"]]
    return lambda entry: record(stream)


def _wait(gpu: Any, entry: Entry) -> Callable[[Entry], None]:
    wait, event = gpu.streams[entry["stream"]].wait_event, gpu.events[entry["event"]]
    return lambda entry: wait(event)


def _synchronize(gpu: Any, entry: Entry) -> Callable[[Entry], None]:
    synchronize = gpu.synchronize
    return lambda entry: synchronize()


def _now(gpu: Any, entry: Entry) -> Callable[[Entry], float]:
    now_s = gpu.now_s
    return lambda entry: now_s()


def _nodes(value: object) -> bool:
    return type(value) is list and all(map(_is_node, value))


def _is_node(value: object) -> bool:
    if type(value) is not dict or value.get("op") not in NODES or "times" in value:
        return False
    try:
        PROGRAM.checked(0, value)
    except ReplayError:
        return False
    return True


def _capture(gpu: Any, entry: Entry) -> None:
    graph = gpu.CUDAGraph()
    with gpu.graph(graph, stream=gpu.streams[entry["stream"]]):
        for node in entry["nodes"]:
            OPERATIONS[node["op"]].play(gpu, node)
    _expect(graph, entry["graph"])


def _replay_graph(gpu: Any, entry: Entry) -> None:
    with gpu.stream(gpu.streams[entry["stream"]]):
        gpu.graphs[entry["graph"]].replay()


def _nodes_charge(nodes: Iterable[Entry]) -> int:
    return 1 + sum(OPERATIONS[node["op"]].charge(None, node) for node in nodes)


def _graph_charge(gpu: Any, entry: Entry) -> int:
    number = entry["graph"]
    return _nodes_charge(node for node, _ in gpu.graphs[number].nodes) if number < len(gpu.graphs) else 1


def _access_charge(gpu: Any, entry: Entry) -> int:
    """Operations on many regions count for several: each region of each of them is kept."""
    touched = len(entry.get("reads", ())) + len(entry.get("writes", ()))
    return int(entry.get("times", 1)) * max(1, touched // 4)


def _at_once(bind: Callable[[Any, Entry], Callable[[Entry], Any]]) -> dict[str, Any]:
    return {"play": lambda gpu, entry: bind(gpu, entry)(entry), "bind": bind}


def _declared_accesses(entry: Entry) -> Accesses:
    return entry.get("reads", []), entry.get("writes", [])


def _copy_blocks(entry: Entry, places: list[str]) -> bool:
    across = len({place == DEVICE for place in places}) == 2
    return across and (PAGEABLE in places or not entry["non_blocking"])


_WORK = ("flops", "moved_bytes", "dtype", "elementwise", "blocks", "blocks_per_sm")
_LASTS = from_case({"duration_s": SECONDS})
# What a kernel touches is followed by its data flow, and so not compared with the case.
_ACCESSES: dict[str, Check] = {role: Field(regions, regions=True) for role in ("reads", "writes")}
_KERNEL = from_case(
    {
        "flops": number(MAX_FLOPS),
        "moved_bytes": whole(MAX_BYTES),
        "dtype": text,
        "elementwise": flag,
        "blocks": whole(MAX_BLOCKS, 1),
        "blocks_per_sm": whole(MAX_PER_SM, 1),
    }
)
_SIZE = from_case({"bytes": whole(MAX_BYTES, 1), "where": one_of(DEVICE, PINNED, PAGEABLE)})
_SRC: dict[str, Check] = {"src": Field(region_form, regions=True)}
_DST: dict[str, Check] = {"dst": Field(region_form, regions=True)}

# A value that is a reading may be anything: it only has to equal the replayed one.
OPERATIONS: dict[str, GPUOperationKind] = {
    "alloc": GPUOperationKind(
        {"buffer": Field(INDEX, FOLLOWS), "name": text, **_SIZE},
        _alloc,
        makes="buffer",
        effect=ALLOCATES,
    ),
    "free": GPUOperationKind({"buffer": INDEX}, _free, optional=ON_STREAM, effect=FREES),
    "record_stream": GPUOperationKind(
        {"buffer": INDEX, **ON_STREAM},
        lambda gpu, e: gpu.buffers[e["buffer"]].record_stream(gpu.streams[e["stream"]]),
        effect=KEEPS,
    ),
    "stream": GPUOperationKind(
        ON_STREAM,
        lambda gpu, e: _expect(gpu.Stream(priority=e.get("priority", 0)), e["stream"]),
        optional={"priority": lambda value: type(value) is int and -5 <= value < 0},
    ),
    "event": GPUOperationKind(
        {**OF_EVENT, "timing": flag}, lambda gpu, e: _expect(gpu.Event(enable_timing=e["timing"]), e["event"])
    ),
    "launch": GPUOperationKind(
        {"name": text, **ON_STREAM},
        **_at_once(_launch),
        optional={**_LASTS, **_KERNEL, **_ACCESSES, "times": TIMES},
        charge=_access_charge,
        effect=WORKS,
        touches=_declared_accesses,
        writes=COMPUTED,
        is_kernel=True,
    ),
    "copy": GPUOperationKind(
        {**_DST, **_SRC, **ON_STREAM, "non_blocking": flag},
        **_at_once(_copy),
        effect=WORKS,
        touches=lambda e: ([e["src"]], [e["dst"]]),
        writes=COPIED,
        on_host=lambda e, places: DEVICE not in places,
        blocks=_copy_blocks,
    ),
    "item": GPUOperationKind(
        {**_SRC, **ON_STREAM, **READING},
        lambda gpu, e: gpu.item(_region(gpu, e["src"]), stream=gpu.streams[e["stream"]]),
        effect=WORKS,
        touches=lambda e: ([e["src"]], []),
        blocks=_always,
    ),
    "host_work": GPUOperationKind(
        _LASTS,
        lambda gpu, e: gpu.host_work(
            e["duration_s"], reads=_declared(gpu, e, "reads"), writes=_declared(gpu, e, "writes")
        ),
        optional=_ACCESSES,
        charge=_access_charge,
        effect=WORKS,
        touches=_declared_accesses,
        writes=COMPUTED,
        on_host=_always,
    ),
    "record": GPUOperationKind({**OF_EVENT, **ON_STREAM}, **_at_once(_record), effect=MARKS),
    "wait": GPUOperationKind({**OF_EVENT, **ON_STREAM}, **_at_once(_wait), effect=AWAITS),
    "synchronize": GPUOperationKind(
        {}, **_at_once(_synchronize), blocks=_always, observes=lambda e: [("stream", EVERY)]
    ),
    "sync_stream": GPUOperationKind(
        ON_STREAM,
        lambda gpu, e: gpu.streams[e["stream"]].synchronize(),
        blocks=_always,
        observes=lambda e: [("stream", e["stream"])],
    ),
    "sync_event": GPUOperationKind(
        OF_EVENT,
        lambda gpu, e: gpu.events[e["event"]].synchronize(),
        blocks=_always,
        observes=lambda e: [("event", e["event"])],
    ),
    "query_stream": GPUOperationKind(
        {**ON_STREAM, **READING},
        lambda gpu, e: gpu.streams[e["stream"]].query(),
        observes=lambda e: [("stream", e["stream"])] if e["value"] else [],
    ),
    "query_event": GPUOperationKind(
        {**OF_EVENT, **READING},
        lambda gpu, e: gpu.events[e["event"]].query(),
        observes=lambda e: [("event", e["event"])] if e["value"] else [],
    ),
    "elapsed_time": GPUOperationKind(
        {"start": INDEX, "end": INDEX, **READING},
        lambda gpu, e: gpu.events[e["start"]].elapsed_time(gpu.events[e["end"]]),
        observes=lambda e: [("event", e["start"]), ("event", e["end"])],
    ),
    "capture": GPUOperationKind(
        {"graph": INDEX, **ON_STREAM, "nodes": _nodes},
        _capture,
        charge=lambda gpu, e: _nodes_charge(e["nodes"]),
        holds="nodes",
    ),
    "replay_graph": GPUOperationKind({"graph": INDEX, **ON_STREAM}, _replay_graph, charge=_graph_charge),
    "now": GPUOperationKind(READING, **_at_once(_now)),
}


PROGRAM = Program("VirtualGPU", "gpu.program", OPERATIONS)


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
