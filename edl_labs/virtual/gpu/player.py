"""Playing a recorded program on a VirtualGPU: each operation is checked once, and issued as often as it occurs.

Programs are loops, so most of their entries have been seen before: equal bytes of `marshal` are equal plain data, types
included, and what was checked, looked up and counted for them holds again.
"""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from edl_labs.virtual.gpu.buffers import DEVICE
from edl_labs.virtual.gpu.core import Core, timeline
from edl_labs.virtual.gpu.program import COPIED, OPERATIONS, PROGRAM, Entry
from edl_labs.virtual.program import MAX_REPLAYED, Reading, require_same
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Timeline

_REMEMBERED = 4096  # different entries: more than any loop has, and a few MB
_MARSHAL_VERSION = 2  # the last one without references, which would tell equal data apart


class _Plan:
    """One entry of a program, ready to be issued again: what it does, and what there is to count."""

    __slots__ = ("act", "blocks", "charge", "copied_bytes", "counted", "entry", "kernels", "launched", "seen", "times")

    def __init__(self, gpu: Any, charge: int, entry: Entry) -> None:
        kind = OPERATIONS[entry["op"]]
        self.entry, self.charge, self.seen = entry, charge, 0
        self.act: Callable[[Entry], Any] = kind.bind(gpu, entry) if kind.bind else partial(kind.play, gpu)
        places = [gpu.buffers[entry[side][0]].where for side in ("dst", "src") if side in entry]
        self.times = entry.get("times", 1)
        self.blocks = kind.blocks(entry, places)
        self.counted = _direction(*places) if kind.writes == COPIED else entry["op"]
        self.kernels: dict[str, int] = Counter()
        self.copied_bytes: dict[str, int] = Counter()
        for node in _issued(gpu, entry):
            if OPERATIONS[node["op"]].is_kernel:
                self.kernels[node["name"]] += self.times
            elif OPERATIONS[node["op"]].writes == COPIED:
                places = [gpu.buffers[node[side][0]].where for side in ("dst", "src")]
                self.copied_bytes[_direction(*places)] += node["dst"][2] - node["dst"][1]
        self.launched = sum(self.kernels.values())


class Player:
    """Issues the operations of a program to a VirtualGPU made for it, and keeps count of what is over."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.launches: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.blocking = 0
        self.readings: list[Reading] = []
        self._launched = 0
        self._plans: dict[bytes, _Plan] = {}

    def play(self, program: object, *, max_operations: int = MAX_REPLAYED) -> Core:
        """Check and issue a whole program to its end; ReplayError where it is none or reads what is not replayed."""
        gpu, plans, dumps, done_again = self.gpu, self._plans, marshal.dumps, PROGRAM.done_again
        left = max_operations
        for index, raw in enumerate(PROGRAM.listed(program)):
            key, is_reading = b"", False
            if type(raw) is dict:
                is_reading = "value" in raw
                try:
                    key = _reading_key(raw) if is_reading else dumps(raw, _MARSHAL_VERSION)
                except ValueError:
                    # Not plain data, or too deep: the check says so.
                    key = b""
            plan = plans.get(key)
            if plan is None:
                entry = PROGRAM.checked(index, raw)
                if left < (charge := OPERATIONS[entry["op"]].charge(gpu, entry)):
                    raise PROGRAM.too_many(max_operations)
                plan = done_again(partial(_Plan, gpu, charge), index, entry)
                self._remember(key, plan)
            left -= plan.charge
            if left < 0:
                raise PROGRAM.too_many(max_operations)
            value = done_again(plan.act, index, plan.entry)
            plan.seen += 1
            self._launched += plan.launched
            if is_reading:
                self._read(index, raw, value)
        self._settle()
        core: Core = gpu.core
        core.all_done()
        return core

    def _remember(self, key: bytes, plan: _Plan) -> None:
        if len(self._plans) >= _REMEMBERED:
            self._settle()
        self._plans[key] = plan

    def _read(self, index: int, entry: Entry, value: Any) -> None:
        require_same(index, entry, value)
        core: Core = self.gpu.core
        host_s, drained = core.host_ps / PER_SECOND, core.is_idle()
        self.readings.append(Reading(index, entry["op"], value, host_s, drained, self._launched))

    def _settle(self) -> None:
        """Count what was issued, in the order in which it first came."""
        for plan in self._plans.values():
            self._count(plan)
        self._plans.clear()

    def _count(self, plan: _Plan) -> None:
        times = plan.times * plan.seen
        self.counts[plan.counted] += times
        self.blocking += plan.blocks * plan.seen
        for name, launched in plan.kernels.items():
            self.launches[name] += launched * plan.seen
        for direction, copied in plan.copied_bytes.items():
            self.copied[direction] += copied * plan.seen


def _issued(gpu: Any, entry: Entry) -> list[Entry]:
    """What an entry lets the device do: itself, or the nodes of a graph."""
    return [node for node, _ in gpu.graphs[entry["graph"]].nodes] if entry["op"] == "replay_graph" else [entry]


def _reading_key(entry: Entry) -> bytes:
    """The key of a reading whatever it read; no entry without a value has one that ends like this."""
    asked = entry.copy()
    del asked["value"]
    return marshal.dumps(asked, _MARSHAL_VERSION) + b"value"


def played(gpu: Any, program: object) -> Timeline:
    """What runs when in a program, from playing it on a VirtualGPU made for it."""
    gpu.core.traced = True
    return timeline(Player(gpu).play(program))


def _direction(dst: str, src: str) -> str:
    """The name under which a copy between two places is counted: H is the host, D the device."""
    ends = ["D" if place == DEVICE else "H" for place in (src, dst)]
    return f"copy {ends[0]}2{ends[1]}"
