"""The replay of a VirtualWarp's program: what its warps asked of memory, what raced, and where values came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.units import counted
from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualWarpError, shown
from edl_labs.virtual.program import MAX_REPLAYED, Entry
from edl_labs.virtual.warp.engine import Memory, WarpEngine
from edl_labs.virtual.warp.memory_requests import LANES, WarpRequest
from edl_labs.virtual.warp.program import PROGRAM, elements_of
from edl_labs.virtual.warp.warp_races import WarpRace, unordered
from edl_labs.virtual.warp.warp_values import Origins

_MOST_RACES = 100  # more than anybody reads; the first ones tell what is missing


@dataclass(frozen=True, repr=False)
class AccessSummary(Value):
    """All requests of one place in a kernel's text, as a profiler's source view sums them up."""

    launch: int
    line: int
    op: str
    array: str
    is_shared: bool
    requests: int
    sectors: int
    least_sectors: int
    lines: int
    wavefronts: int
    least_wavefronts: int

    @property
    def bank_conflicts(self) -> int:
        """Turns of shared memory beyond the least."""
        return self.wavefronts - self.least_wavefronts

    def __str__(self) -> str:
        what = f"line {self.line}: {self.op} of {self.array}, {counted(self.requests, 'request')}"
        if self.is_shared:
            least, got = (count / self.requests for count in (self.least_wavefronts, self.wavefronts))
            return f"{what}, wavefronts per request {got:.3g}, best {least:.3g}"
        least, got = (count / self.requests for count in (self.least_sectors, self.sectors))
        return f"{what}, sectors per request {got:.3g}, best {least:.3g}"


@dataclass(frozen=True, repr=False)
class WarpReplay(Value, Plottable):
    """What kernels did, from their program alone.

    `instructions` counts what warps issued: accesses, arithmetic on loaded values, shuffles and barriers (index
    arithmetic is not recorded); `issued_by_warp` has it for each warp. `active_share` is the part of their lanes that
    took part. `hangs` says where threads wait for ever, `missed` which barriers not all threads of a block come by
    (those that have ended are not waited for; CUDA promises that only of whole blocks), `undefined` lists reads of
    unwritten memory: (memory, place, thread of the block).
    """

    DERIVED = ("sectors", "bank_conflicts")
    OMITTED = ("program", "_memories", "_origins")
    ROWS = "accesses"

    requests: tuple[WarpRequest, ...]
    accesses: tuple[AccessSummary, ...]
    races: tuple[WarpRace, ...]
    hangs: tuple[str, ...]
    undefined: tuple[tuple[str, int, int], ...]
    instructions: int
    issued_by_warp: tuple[int, ...]
    active_share: float
    launches: int
    missed: tuple[str, ...] = ()
    program: tuple[Entry, ...] = field(default=(), repr=False, compare=False)
    _memories: Mapping[str, tuple[Memory, tuple[int, ...], Callable[[int], Any]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _origins: Origins = field(default_factory=Origins, repr=False, compare=False)

    @property
    def sectors(self) -> int:
        """32-byte sectors that all requests to global memory moved."""
        return sum(one.sectors for one in self.accesses)

    @property
    def bank_conflicts(self) -> int:
        """Turns of shared memory beyond the least, of all requests."""
        return sum(one.bank_conflicts for one in self.accesses)

    def origins(self, array: str) -> list[int]:
        """The origin of each element of an array in the end, as a number for `leaves`, `depth` and `node`."""
        _, shape, cell = self._memory(array)
        return [cell(place).origin for place in range(elements_of(shape))]

    def contents(self, array: str) -> list[Any]:
        """Each element in the end: (array, place) of the element that was copied there, or "a sum" of several."""
        nodes = (self._origins.node(one) for one in self.origins(array))
        return [node if len(node) == 2 else f"a result of {node[0]}" for node in nodes]

    def leaves(self, origin: int) -> dict[tuple[str, Any], int]:
        """How often each element of the beginning comes into a sum."""
        return dict(self._origins.leaves(origin))

    def operations(self, origin: int) -> set[str]:
        """The names of the operations that made it."""
        return self._origins.operations(origin)

    def shape_of(self, origin: int) -> str:
        """A digest: equal in two replays where the same additions, in the same order, made it of the same elements."""
        return self._origins.shape_of(origin)

    def depth(self, origin: int) -> int:
        """The longest chain of operations in it, each of which waits for the one before."""
        return self._origins.depth(origin)

    def values(self, array: str) -> Any:
        """The numbers of an array in the end, in its shape and dtype."""
        import numpy as np

        _, shape, cell = self._memory(array)
        return np.array([cell(place).number for place in range(elements_of(shape))]).reshape(shape)

    def __str__(self) -> str:
        lines = [str(one) for one in self.accesses]
        if self.races:
            lines.append(f"{counted(len(self.races), 'race')}: {self.races[0]}")
        return "\n".join([*lines, *self.hangs]) or "the kernels did not access memory"

    def _memory(self, array: str) -> tuple[Memory, tuple[int, ...], Callable[[int], Any]]:
        if array not in self._memories:
            known = ", ".join(self._memories) or "none"
            raise VirtualWarpError(
                f"there is no array {shown(array)}", why=f"the arrays are: {known}", next="use one of these"
            )
        return self._memories[array]


def replay_warp(
    program: object,
    values: Mapping[str, Any] | None = None,
    *,
    arrival_seed: int | None = None,
    max_operations: int = MAX_REPLAYED,
) -> WarpReplay:
    """What recorded kernels do, with these numbers in arrays by name, and blocks and warps in an order that is drawn.

    ReplayError where `program` is not one: never anything else, whatever it is.
    """
    engine = WarpEngine(values or {}, arrival_seed=arrival_seed)
    done = [entry for _, entry, _ in PROGRAM.replayed(engine, program, at_most=max_operations)]
    return _result(engine, done)


def _result(engine: WarpEngine, program: list[Entry]) -> WarpReplay:
    arrays = [entry for entry in program if entry["op"] == "array"]
    issued = Counter((launch, warp) for launch, warp, _ in engine.slots)
    active = sum(lanes for _, _, lanes in engine.slots)
    memories = {
        memory.name: (memory, tuple(entry["shape"]), lambda place, memory=memory: engine.read(memory, place))
        for memory, entry in zip(engine.arrays, arrays, strict=True)
    }
    return WarpReplay(
        requests=tuple(engine.requests),
        accesses=_summaries(engine.requests),
        races=_races(engine),
        hangs=tuple(engine.hangs),
        undefined=tuple(engine.undefined),
        instructions=len(engine.slots),
        issued_by_warp=tuple(issued[key] for key in sorted(issued)),
        active_share=active / (LANES * len(engine.slots)) if engine.slots else 1.0,
        launches=engine.launches,
        missed=tuple(engine.missed),
        program=tuple(program),
        _memories=memories,
        _origins=engine.origins,
    )


def _summaries(requests: list[WarpRequest]) -> tuple[AccessSummary, ...]:
    places: dict[tuple[Any, ...], list[WarpRequest]] = {}
    for one in requests:
        places.setdefault((one.launch, one.pc, one.op, one.array), []).append(one)
    return tuple(
        AccessSummary(
            launch=launch,
            line=mine[0].line,
            op=op,
            array=array,
            is_shared=mine[0].is_shared,
            requests=len(mine),
            sectors=sum(one.sectors for one in mine),
            least_sectors=sum(one.least_sectors for one in mine),
            lines=sum(one.lines for one in mine),
            wavefronts=sum(one.wavefronts for one in mine),
            least_wavefronts=sum(one.least_wavefronts for one in mine),
        )
        for (launch, _, op, array), mine in sorted(places.items())
    )


def _races(engine: WarpEngine) -> tuple[WarpRace, ...]:
    found = []
    for launch, memory, place, touches in engine.touched:
        pair = unordered(touches)
        if pair:
            first, second = pair
            found.append(
                WarpRace(
                    launch=launch,
                    array=memory.name,
                    is_shared=memory.is_shared,
                    place=place,
                    first=(first.block, first.thread),
                    first_op=first.op,
                    first_line=first.line,
                    second=(second.block, second.thread),
                    second_op=second.op,
                    second_line=second.line,
                )
            )
            if len(found) == _MOST_RACES:
                break
    return tuple(found)


__all__ = ["AccessSummary", "WarpReplay", "replay_warp"]
