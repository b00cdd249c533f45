"""The engine behind a replay: warps issue instructions, lanes wait at barriers, and values go where they are sent.

A warp issues one place of the kernel's text at a time, for all lanes that are there: of the lanes that can go on, those
at the earliest place first, so that lanes which skipped a branch or left a loop wait for the others and meet them
again. (Real schedulers keep no promise about this order; earliest first is what code without jumps backwards gives,
and what stackless models of reconvergence do.) A block's warps run up to the next barrier one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edl_labs.virtual.program import Entry
from edl_labs.virtual.warp.memory_requests import LANES, WarpRequest
from edl_labs.virtual.warp.program import ACCESSES, ARITHMETIC, ITEMSIZES, SHUFFLES, elements_of
from edl_labs.virtual.warp.warp_races import Touch
from edl_labs.virtual.warp.warp_values import Cell, Origins, computed, initial, stored

_ALIGNMENT = 256  # of arrays in global memory, as cudaMalloc gives it


@dataclass
class ThreadPath:
    """A thread on its path: the next step, the next place, what it holds, and the barriers that it has passed."""

    thread: int
    path: Sequence[Any]
    places: Iterator[int]
    at: int = 0
    values: list[Cell] = field(default_factory=list)
    phase: int = 0
    warp_phase: int = 0
    is_waiting: bool = False

    @property
    def step(self) -> Any:
        """What it does next; None at its end."""
        return self.path[self.at] if self.at < len(self.path) else None


@dataclass(frozen=True)
class Memory:
    """An array in memory: its name, the address of its first element, how many it has, and those that were touched."""

    name: str
    base: int
    dtype: str
    is_shared: bool
    size: int
    given: Any = None
    cells: dict[int, Cell] = field(default_factory=dict)
    touches: dict[int, list[Touch]] = field(default_factory=dict)


class WarpEngine:
    """All launches of a program, in order, on one memory."""

    def __init__(self, given: Mapping[str, Any], *, arrival_seed: int | None = None) -> None:
        self.origins = Origins()
        self.arrays: list[Memory] = []
        self.requests: list[WarpRequest] = []
        self.slots: list[tuple[int, int, int]] = []  # of each instruction: launch, warp of the launch, active lanes
        self.undefined: list[tuple[str, int, int]] = []
        self.hangs: list[str] = []
        self.missed: list[str] = []
        self.touched: list[tuple[int, Memory, int, list[Touch]]] = []
        self.launches = 0
        self._given = given
        self._arrivals = None if arrival_seed is None else random.Random(arrival_seed)
        self._end = 0

    def add_array(self, entry: Entry) -> None:
        """An array in global memory, behind the ones before it."""
        base = -(-self._end // _ALIGNMENT) * _ALIGNMENT + entry["offset_bytes"]
        size = elements_of(entry["shape"])
        self._end = base + size * ITEMSIZES[entry["dtype"]]
        given = self._given.get(entry["name"])
        self.arrays.append(Memory(entry["name"], base, entry["dtype"], False, size, given))

    def launch(self, entry: Entry) -> None:
        """Run a launch: its blocks in their order, or in one that was drawn."""
        per_block = elements_of(entry["block"])
        accesses = [sum(step[0] in ACCESSES for step in path) for path in entry["paths"]]
        starts, at = [], 0
        for path in entry["threads"]:
            starts.append(at)
            at += accesses[path]
        starts.append(at)
        for block in self.arriving(range(elements_of(entry["grid"]))):
            first = block * per_block
            lanes = [
                ThreadPath(
                    thread,
                    entry["paths"][entry["threads"][first + thread]],
                    iter(entry["places"][starts[first + thread] : starts[first + thread + 1]]),
                )
                for thread in range(per_block)
            ]
            _BlockRun(self, entry, block, lanes).run()
        for memory in self.arrays:
            self.keep_touches(memory)
        self.launches += 1

    def read(self, memory: Memory, place: int) -> Cell:
        """What an element holds now."""
        cell = memory.cells.get(place)
        if cell is None:
            cell = initial(self.origins, memory.name, place, memory.dtype, memory.given)
        return cell

    def arriving(self, what: Sequence[Any]) -> Sequence[Any]:
        """The same in the order in which they come."""
        if self._arrivals is None or len(what) < 2:
            return what
        drawn = list(what)
        self._arrivals.shuffle(drawn)
        return drawn

    def keep_touches(self, memory: Memory) -> None:
        """What a launch, or a block in its shared memory, touched: races are looked for in it."""
        self.touched += [(self.launches, memory, place, touches) for place, touches in memory.touches.items()]
        memory.touches.clear()


class _BlockRun:
    """A block of a launch: its warps, its shared memory."""

    def __init__(self, engine: WarpEngine, entry: Entry, block: int, lanes: list[ThreadPath]) -> None:
        self.engine, self.entry, self.block = engine, entry, block
        self.warps = [lanes[at : at + LANES] for at in range(0, len(lanes), LANES)]
        self.shared, base = [], 0
        for number, (shape, dtype) in enumerate(entry["shared"]):
            base = -(-base // LANES // 4) * LANES * 4  # each begins at bank 0
            size = elements_of(shape)
            self.shared.append(Memory(f"shared{number}", base, dtype, True, size))
            base += size * ITEMSIZES[dtype]

    def run(self) -> None:
        """Each warp up to its next barrier, all of them in turn, until every thread has ended."""
        while True:
            for number in self.engine.arriving(range(len(self.warps))):
                self._advance(number)
            waiting = [lane for warp in self.warps for lane in warp if lane.step is not None]
            if not waiting:
                break
            stuck = sorted({lane.step[0] for lane in waiting} - {"syncthreads"})
            if stuck:
                self._hang(waiting, f"some of them in syncthreads, others in {stuck[0]}")
                break
            if len({lane.step[1] for lane in waiting}) > 1:
                lines = sorted({self.entry["lines"][lane.step[1]] for lane in waiting})
                self._hang(waiting, f"in different calls of syncthreads, in lines {', '.join(map(str, lines))}")
                break
            self._note_missing(waiting)
            for lane in waiting:
                lane.at, lane.is_waiting = lane.at + 1, False
                lane.phase += 1
        for memory in self.shared:
            self.engine.keep_touches(memory)

    def _note_missing(self, waiting: list[ThreadPath]) -> None:
        """A barrier that some threads of the block do not come by: they have ended."""
        lanes = sum(map(len, self.warps))
        if len(waiting) < lanes:
            line = self.entry["lines"][waiting[0].step[1]]
            came = f"{len(waiting)} of {lanes} threads reach the barrier in line {line}"
            self.engine.missed.append(f"block {self.block} of launch {self.engine.launches}: {came}")

    def _hang(self, waiting: list[ThreadPath], why: str) -> None:
        self.engine.hangs.append(
            f"block {self.block} of launch {self.engine.launches}: {len(waiting)} threads wait forever, {why}"
        )

    def _advance(self, number: int) -> None:
        """Issue instructions of a warp until all its lanes wait for the block, or have ended."""
        warp = self.warps[number]
        while True:
            ready = [lane for lane in warp if lane.step is not None and not lane.is_waiting]
            if not ready:
                if not self._released(warp):
                    return
                continue
            first = min((lane.step[1], lane.step[0], lane.step[2:3]) for lane in ready)
            group = [lane for lane in ready if (lane.step[1], lane.step[0], lane.step[2:3]) == first]
            self.engine.slots.append((self.engine.launches, self.block * len(self.warps) + number, len(group)))
            if first[1] in ACCESSES:
                self._access(number, group)
            elif first[1] in ARITHMETIC:
                for lane in group:
                    self._arithmetic(lane)
            else:
                for lane in group:
                    lane.is_waiting = True

    def _released(self, warp: list[ThreadPath]) -> bool:
        """Let lanes go on that wait for their warp alone; False where there are none, or they wait for each other."""
        waiting = [lane for lane in warp if lane.step is not None]
        ops = {lane.step[0] for lane in waiting}
        if len(ops) != 1 or ops == {"syncthreads"}:
            return False
        if ops <= set(SHUFFLES):
            if len({lane.step[1] for lane in waiting}) > 1:
                return False
            self._shuffle(warp, waiting)
        for lane in waiting:
            lane.warp_phase += ops == {"syncwarp"}
            lane.at, lane.is_waiting = lane.at + 1, False
        return True

    def _shuffle(self, warp: list[ThreadPath], waiting: list[ThreadPath]) -> None:
        offered = {lane.thread % LANES: self._value(lane, lane.step[3]) for lane in waiting}
        for lane in waiting:
            own, op, number = lane.thread % LANES, lane.step[0], lane.step[2]
            source = {"shfl": number, "shfl_down": own + number, "shfl_xor": own ^ number}[op]
            if source >= LANES:
                source = own
            lane.values.append(offered.get(source) or self._missing("a shuffle", lane, source))

    def _access(self, number: int, group: list[ThreadPath]) -> None:
        op, pc, which = group[0].step[:3]
        memory = self.engine.arrays[which] if which >= 0 else self.shared[-1 - which]
        itemsize, line = ITEMSIZES[memory.dtype], self.entry["lines"][pc]
        places = {lane.thread: next(lane.places) for lane in group}
        request = WarpRequest(
            launch=self.engine.launches, block=self.block, warp=number, pc=pc, line=line, op=op, array=memory.name,
            is_shared=memory.is_shared, itemsize=itemsize, lanes=tuple(lane.thread % LANES for lane in group),
            addresses=tuple(memory.base + itemsize * places[lane.thread] for lane in group),
        )  # fmt: skip
        self.engine.requests.append(request)
        for lane in self.engine.arriving(group) if op == "atomic_add" else group:
            place = places[lane.thread]
            touch = Touch(self.block, lane.phase, number, lane.warp_phase, lane.thread, op, line)
            memory.touches.setdefault(place, []).append(touch)
            if op != "store":
                lane.values.append(self._read(memory, place, lane))
            if op == "store":
                memory.cells[place] = stored(self._value(lane, lane.step[3]), memory.dtype)
            elif op == "atomic_add":
                added = computed(self.engine.origins, "+", lane.values[-1], self._value(lane, lane.step[3]))
                memory.cells[place] = stored(added, memory.dtype)
            lane.at += 1

    def _read(self, memory: Memory, place: int, lane: ThreadPath) -> Cell:
        if memory.is_shared and place not in memory.cells:
            return self._missing(memory.name, lane, place)
        return self.engine.read(memory, place)

    def _missing(self, what: str, lane: ThreadPath, place: int) -> Cell:
        self.engine.undefined.append((what, place, lane.thread))
        return Cell(self.engine.origins.leaf("nothing", place), float("nan"))

    def _arithmetic(self, lane: ThreadPath) -> None:
        op, _, first, second = lane.step
        lane.values.append(computed(self.engine.origins, op, self._value(lane, first), self._value(lane, second)))
        lane.at += 1

    def _value(self, lane: ThreadPath, source: int | float) -> Cell:
        if type(source) is float:
            return Cell(self.engine.origins.constant(source), source)
        return lane.values[source]  # type: ignore[index]
