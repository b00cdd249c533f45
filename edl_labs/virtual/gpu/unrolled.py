"""A recorded program as it runs: each replay of a graph is its nodes again, in streams and with events of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edl_labs.virtual.program import Entry


@dataclass(frozen=True)
class _Graph:
    """A captured graph: its nodes in order, its captured stream, and the numbers that its side streams go by."""

    number: int
    origin: int
    nodes: tuple[Entry, ...]
    sides: dict[int, int]


def unrolled(program: Iterable[Entry]) -> Iterator[tuple[int, Entry]]:
    """The operations of a checked program in the order of issue, each with the number of the entry that issues it.

    Captures issue nothing. In a replay the captured stream is the one that it runs in; other streams go by numbers
    beyond those of the program, which `lanes` counts.
    """
    entries = list(program)
    graphs: list[_Graph] = []
    free = _streams(entries)
    last: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if entry["op"] == "capture":
            graphs.append(_captured(entry, len(graphs), free))
            free += len(graphs[-1].sides)
        elif entry["op"] == "replay_graph":
            graph, stream = graphs[entry["graph"]], entry["stream"]
            before = last.get(graph.number)
            for node in _replayed(graph, stream, after=stream if before is None else before):
                yield index, node
            last[graph.number] = stream
        else:
            yield index, entry


def lanes(program: Iterable[Entry]) -> int:
    """How many streams `unrolled` speaks of."""
    entries = list(program)
    return _streams(entries) + sum(len(_captured(e, 0, 0).sides) for e in entries if e["op"] == "capture")


def _streams(entries: list[Entry]) -> int:
    return 1 + sum(entry["op"] == "stream" for entry in entries)


def _captured(entry: Entry, number: int, free: int) -> _Graph:
    others = dict.fromkeys(node["stream"] for node in entry["nodes"] if node["stream"] != entry["stream"])
    sides = {stream: free + place for place, stream in enumerate(others)}
    return _Graph(number, entry["stream"], tuple(entry["nodes"]), sides)


def _replayed(graph: _Graph, stream: int, *, after: int) -> Iterator[Entry]:
    end = ("graph", graph.number)
    if after != stream:
        # Two replays of one graph never overlap.
        yield {"op": "wait", "event": end, "stream": stream}
    for node in graph.nodes:
        inner = {**node, "stream": graph.sides.get(node["stream"], stream)}
        if "event" in node:
            inner["event"] = ("graph", graph.number, node["event"])
        yield inner
    yield {"op": "record", "event": end, "stream": stream}
