"""The programs of all ranks, replayed: matching, contents, races, bytes, memory, time."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from edl_labs.units import byte_count, seconds
from edl_labs.values import Value
from edl_labs.virtual.cluster.cluster_contents import ClusterContents, ClusterPart
from edl_labs.virtual.cluster.cluster_graph import MAX_CLUSTER_REPLAYED, ClusterGraph
from edl_labs.virtual.cluster.cluster_hangs import Hang, find_hang
from edl_labs.virtual.cluster.cluster_races import ClusterRace, rank_races
from edl_labs.virtual.cluster.cluster_timeline import ClusterTimeline, cluster_timeline
from edl_labs.virtual.cluster.engine import ClusterEngine
from edl_labs.virtual.cluster.machine import ATTOSECONDS, ClusterMachine, Faults, cluster_machine
from edl_labs.virtual.cluster.real_processes import RealRun
from edl_labs.virtual.errors import ReplayError, VirtualClusterError, shown
from edl_labs.virtual.program import Entry

ClusterProgram = list[list[Entry]]


@dataclass(frozen=True, repr=False)
class LinkUse(Value):
    """What one port of a level sent, and how long it was busy; `port` counts groups of ranks that share one."""

    level: str
    port: int
    sent_bytes: float
    busy_s: float


@dataclass(frozen=True, repr=False)
class ClusterReplay(Value):
    """What the programs of all ranks did, from their operations alone.

    `counts` is by kind of call over all ranks, `sent_bytes` by level of links, `peak_bytes` by rank: of device tensors,
    in the order of calls, as a caching allocator counts them. `makespan_s` is inf where the program hangs.
    """

    DERIVED = ("finished",)
    OMITTED = ("programs", "engine", "real")

    ranks: int
    operations: int
    makespan_s: float
    hang: Hang | None
    counts: Mapping[str, int]
    sent_bytes: Mapping[str, float]
    links: tuple[LinkUse, ...]
    peak_bytes: tuple[int, ...]
    compute_s: tuple[float, ...]
    algorithms: Mapping[str, int]
    programs: ClusterProgram = field(default_factory=list, repr=False, compare=False)
    engine: Any = field(default=None, repr=False, compare=False)
    real: RealRun | None = field(default=None, repr=False, compare=False)

    @property
    def finished(self) -> bool:
        """Whether every rank reaches the end of its program."""
        return self.hang is None

    def require_finished(self) -> ClusterReplay:
        """The replay itself; VirtualClusterError with who waits for whom where the program hangs."""
        if self.hang is None:
            return self
        raise VirtualClusterError(self.hang.what, why=self.hang.why, next=self.hang.next)

    @cached_property
    def timeline(self) -> ClusterTimeline:
        """The timeline of every rank, until the end or the hang."""
        return cluster_timeline(self.engine)

    @cached_property
    def races(self) -> tuple[ClusterRace, ...]:
        """Pairs of operations of a rank that touch the same elements, one writing, without an order between them."""
        sides = self.engine.graph.sides
        found = (rank_races(side.rank, self.programs[side.rank], side.tensors) for side in sides)
        return tuple(race for races in found for race in races)

    @cached_property
    def _contents(self) -> ClusterContents:
        return ClusterContents(self.engine)

    def contents(self, rank: int, tensor: int | str) -> tuple[ClusterPart, ...]:
        """What a tensor of a rank holds in the end: which rank's data, from which element, how often.

        Operations are followed in the order in which they happened, which is sure where there are no races.
        """
        return self._contents.of(rank, tensor)

    def __str__(self) -> str:
        if self.hang is not None:
            return str(self.hang)
        sent = ", ".join(f"{byte_count(size)} over {level}" for level, size in self.sent_bytes.items() if size)
        peak = byte_count(max(self.peak_bytes))
        return f"{self.ranks} ranks: {seconds(self.makespan_s)}, {sent or 'no data'} sent, peak memory of a rank {peak}"


def replay_cluster(
    programs: object,
    machine: str | ClusterMachine | Mapping[str, Any],
    *,
    faults: Faults | None = None,
    max_operations: int = MAX_CLUSTER_REPLAYED,
) -> ClusterReplay:
    """Play the recorded programs of all ranks on a cluster.

    A program that hangs gives a replay whose `hang` says who waits for whom. ReplayError where `programs` is not a
    list of one program a rank, or does what no rank can: never anything else, whatever it is.
    """
    built = cluster_machine(machine)
    if type(programs) is not list or len(programs) != built.ranks:
        found = f"{len(programs)} programs" if type(programs) is list else shown(programs)
        raise ReplayError(
            f"got {found} for a cluster of {built.ranks} ranks",
            why="each rank needs one program, which is the list of its operations",
            next="return what cluster.record(program) returned",
        )
    wrong = faults or Faults()
    _require_ranks(wrong, built.ranks)
    with _collector_paused():
        graph = ClusterGraph(built)
        graph.read(programs, skipped=wrong.skipped, max_operations=max_operations)
        engine = ClusterEngine(graph, wrong)
        try:
            engine.run()
        except VirtualClusterError as error:
            raise ReplayError(error.what, why=error.why, next=error.next) from None
        return _result(engine, programs, wrong)


def _require_ranks(faults: Faults, ranks: int) -> None:
    named = {
        *faults.slow_ranks,
        *faults.lost,
        *(rank for _, rank in faults.slow_links),
        *(at for at, _ in faults.skipped),
    }
    strange = sorted(rank for rank in named if not 0 <= rank < ranks)
    if strange:
        raise VirtualClusterError(
            f"the faults name rank {strange[0]}",
            why=f"this cluster has ranks 0 to {ranks - 1}",
            next="use one of these ranks",
        )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing that is built here dies before the end: looking for garbage meanwhile would take a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _result(engine: ClusterEngine, programs: ClusterProgram, faults: Faults) -> ClusterReplay:
    machine, graph = engine.machine, engine.graph
    hang = find_hang(engine, faults)
    sent = {level.name: 0.0 for level in machine.levels}
    uses = []
    for (number, port), size in sorted(engine.sent.items()):
        name = machine.levels[number].name
        sent[name] += size
        uses.append(LinkUse(name, port, size, engine.busy[number, port] / ATTOSECONDS))
    end = max([engine.end, *(side.host + ((side.gate.done or 0) if side.gate else 0) for side in graph.sides)])
    compute = [0] * machine.ranks
    counts: Counter[str] = Counter()
    for node in engine.order:
        if node.meeting is None and node.done is not None:
            compute[node.rank] += node.done - node.start
    for program in programs:
        counts.update(map(itemgetter("op"), program))
    chosen = Counter(f"{node.entry['op']} by {how.algorithm}" for node, how in engine.carried.items() if how.algorithm)
    return ClusterReplay(
        ranks=machine.ranks,
        operations=graph.operations,
        makespan_s=math.inf if hang else end / ATTOSECONDS,
        hang=hang,
        counts=dict(counts),
        sent_bytes=sent,
        links=tuple(uses),
        peak_bytes=tuple(side.peak for side in graph.sides),
        compute_s=tuple(busy / ATTOSECONDS for busy in compute),
        algorithms=dict(chosen),
        programs=programs,
        engine=engine,
    )


__all__ = ["ClusterReplay", "LinkUse", "replay_cluster"]
