"""Replaying a recorded program on a fresh VirtualGPU: what it does is computed again, its readings are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.hardware import Accelerator
from edl_labs.virtual.buffers import Region
from edl_labs.virtual.core import Core
from edl_labs.virtual.dataflow import Piece, contents
from edl_labs.virtual.engine import PER_SECOND
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError
from edl_labs.virtual.gpu import VirtualGPU
from edl_labs.virtual.machine import VirtualMachine, machine
from edl_labs.virtual.pricing import copy_kind
from edl_labs.virtual.program import Entry, check_entry, malformed
from edl_labs.virtual.races import Race, find_races
from edl_labs.virtual.timeline import Timeline, timeline

MAX_OPERATIONS = 300_000


@dataclass(frozen=True)
class Reading:
    """One reading of a program: what it returned, and what was true of the machine at that moment.

    `host_s` is the exact virtual time; `drained` says that the device had finished all that was issued; `launches` is
    the number of kernels issued before.
    """

    index: int
    op: str
    value: Any
    host_s: float
    drained: bool
    launches: int


@dataclass(frozen=True)
class Replay:
    """What a program did, from its operations alone.

    `counts` is by kind of operation, copies by direction ('copy H2D', 'copy D2H', 'copy D2D', 'copy H2H'); `blocking`
    counts the calls that make the host wait for the device by their nature: synchronisations, items, blocking copies.
    """

    machine: VirtualMachine
    operations: int
    counts: Mapping[str, int]
    launches: Mapping[str, int]
    copied_bytes: Mapping[str, int]
    blocking: int
    host_s: float
    device_s: float
    readings: tuple[Reading, ...]
    program: tuple[Entry, ...] = field(repr=False)
    core: Core = field(repr=False, compare=False)

    @property
    def makespan_s(self) -> float:
        """From time 0 until the host and the device are both done."""
        return max(self.host_s, self.device_s)

    @cached_property
    def timeline(self) -> Timeline:
        """What ran when."""
        return timeline(self.core)

    @cached_property
    def races(self) -> tuple[Race, ...]:
        """Pairs of operations that touch the same bytes, one writing, without an order between them."""
        return find_races(self.program)

    def contents(self, buffer: int) -> tuple[Piece, ...]:
        """Where the bytes of a buffer come from in the end: from which inputs, through which kernels.

        Operations are followed in the order of issue, which is what happens when there are no races.
        """
        return contents(self.program, buffer)


def replay(
    program: object,
    model: str | Accelerator | VirtualMachine | Mapping[str, Any],
    *,
    max_operations: int = MAX_OPERATIONS,
) -> Replay:
    """Run a recorded program again on a fresh VirtualGPU of the same machine.

    Raises ReplayDisagreement where a recorded reading is not the replayed one, and ReplayError where the program is
    none: never anything else, whatever `program` is.

    >>> gpu = VirtualGPU("H200")
    >>> gpu.launch("relu", duration_s=1e-3); gpu.synchronize(); _ = gpu.now_s()
    >>> replay(gpu.program, "H200").counts
    {'launch': 1, 'synchronize': 1, 'now': 1}
    """
    gpu = VirtualGPU(machine(model))
    gpu.core.traced = True
    player = _Player(gpu)
    if type(program) is not list:
        raise ReplayError(
            f"a program is a list of operations, not a {type(program).__name__}",
            why="it was not recorded by a VirtualGPU",
            next="return gpu.program",
        )
    left = max_operations
    for index, raw in enumerate(program):
        entry = check_entry(index, raw)
        left -= _charge(entry)
        if left < 0:
            raise ReplayError(
                f"the program has more than {max_operations:,} operations",
                why="a replay has a limit",
                next="measure with fewer calls",
            )
        player.play(index, entry)
    gpu.core.engines.run_all()
    return player.result(len(program))


def _charge(entry: Entry) -> int:
    # Operations on many regions count for several: each region of each of them is kept.
    touched = len(entry.get("reads", ())) + len(entry.get("writes", ()))
    return int(entry.get("times", 1)) * max(1, touched // 4)


class _Player:
    """Issues checked operations to a VirtualGPU, and keeps count."""

    def __init__(self, gpu: VirtualGPU) -> None:
        self.gpu = gpu
        self.counts: Counter[str] = Counter()
        self.launches: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()
        self.readings: list[Reading] = []
        self.blocking = 0

    def play(self, index: int, entry: Entry) -> None:
        """Issue one operation; where it returned a reading, compare."""
        name = entry["op"]
        try:
            value = _PLAYS[name](self, entry)
        except ReplayError:
            raise
        except EdlError as error:
            raise ReplayError(
                f"operation {index} of the program cannot be: {error.what}", why=error.why, next=error.next
            ) from error
        except LookupError:
            raise malformed(index, f"is a {name} of something that the program did not make") from None
        self.counts[self.kind(entry)] += entry.get("times", 1)
        if "value" in entry:
            self._compare(index, entry, value)

    def kind(self, entry: Entry) -> str:
        """The name under which an operation is counted."""
        if entry["op"] != "copy":
            return str(entry["op"])
        return copy_kind(*(self.gpu.buffers[entry[side][0]] for side in ("dst", "src")))

    def _compare(self, index: int, entry: Entry, value: Any) -> None:
        recorded = entry["value"]
        if type(recorded) is not type(value) or recorded != value:
            raise ReplayDisagreement(index=index, operation=entry["op"], recorded=recorded, replayed=value)
        core = self.gpu.core
        drained = core.engines.idle_at(core.host_ps)
        moment_s, launches = core.host_ps / PER_SECOND, self.counts["launch"]
        self.readings.append(Reading(index, entry["op"], value, moment_s, drained, launches))

    def region(self, plain: list[int]) -> Region:
        """A region from its plain form; LookupError where its buffer does not exist."""
        index, start, stop = plain
        return self.gpu.buffers[index][start:stop]

    def regions(self, entry: Entry, role: str) -> Any:
        """The regions that an operation declares."""
        return tuple(map(self.region, entry[role])) if role in entry else ()

    def result(self, operations: int) -> Replay:
        """What came out, at the end of the program."""
        core = self.gpu.core
        return Replay(
            machine=self.gpu.machine,
            operations=operations,
            counts=dict(self.counts),
            launches=dict(self.launches),
            copied_bytes=dict(self.copied),
            blocking=self.blocking,
            host_s=core.host_ps / PER_SECOND,
            device_s=core.engines.last_done / PER_SECOND,
            readings=tuple(self.readings),
            program=tuple(core.recorded),
            core=core,
        )

    def launch(self, entry: Entry) -> None:
        """Issue a kernel, as many times as its entry says."""
        work = {name: entry[name] for name in ("duration_s", "flops", "moved_bytes", "dtype") if name in entry}
        reads, writes = self.regions(entry, "reads"), self.regions(entry, "writes")
        stream, elementwise = self.gpu.streams[entry["stream"]], entry.get("elementwise", False)
        times = entry.get("times", 1)
        self.launches[entry["name"]] += times
        for _ in range(times):
            self.gpu.launch(entry["name"], **work, reads=reads, writes=writes, elementwise=elementwise, stream=stream)

    def copy(self, entry: Entry) -> None:
        """Issue a copy."""
        dst, src = self.region(entry["dst"]), self.region(entry["src"])
        kind, non_blocking = copy_kind(dst.buffer, src.buffer), entry["non_blocking"]
        self.gpu.copy(dst, src, non_blocking=non_blocking, stream=self.gpu.streams[entry["stream"]])
        self.copied[kind] += src.nbytes
        both_pinned = dst.buffer.where != "pageable" != src.buffer.where
        self.blocking += kind in ("copy H2D", "copy D2H") and not (non_blocking and both_pinned)

    def wait_for(self, call: Callable[[], Any]) -> Any:
        """Make a call that keeps the host, and count it."""
        self.blocking += 1
        return call()

    def expect(self, made: Any, number: int) -> None:
        """LookupError unless what was made has the number that the program gives it."""
        if made.index != number:
            raise LookupError(number)


_PLAYS: dict[str, Callable[[_Player, Entry], Any]] = {
    "alloc": lambda to, entry: to.expect(_alloc(to.gpu, entry), entry["buffer"]),
    "free": lambda to, entry: to.gpu.free(to.gpu.buffers[entry["buffer"]]),
    "stream": lambda to, entry: to.expect(to.gpu.Stream(), entry["stream"]),
    "event": lambda to, entry: to.expect(to.gpu.Event(enable_timing=entry["timing"]), entry["event"]),
    "launch": _Player.launch,
    "copy": _Player.copy,
    "item": lambda to, entry: to.wait_for(
        lambda: to.gpu.item(to.region(entry["src"]), stream=to.gpu.streams[entry["stream"]])
    ),
    "host_work": lambda to, entry: to.gpu.host_work(
        entry["duration_s"], reads=to.regions(entry, "reads"), writes=to.regions(entry, "writes")
    ),
    "record": lambda to, entry: to.gpu.events[entry["event"]].record(to.gpu.streams[entry["stream"]]),
    "wait": lambda to, entry: to.gpu.streams[entry["stream"]].wait_event(to.gpu.events[entry["event"]]),
    "synchronize": lambda to, entry: to.wait_for(to.gpu.synchronize),
    "sync_stream": lambda to, entry: to.wait_for(to.gpu.streams[entry["stream"]].synchronize),
    "sync_event": lambda to, entry: to.wait_for(to.gpu.events[entry["event"]].synchronize),
    "query_stream": lambda to, entry: to.gpu.streams[entry["stream"]].query(),
    "query_event": lambda to, entry: to.gpu.events[entry["event"]].query(),
    "elapsed_time": lambda to, entry: to.gpu.events[entry["start"]].elapsed_time(to.gpu.events[entry["end"]]),
    "now": lambda to, entry: to.gpu.now_s(),
}


def _alloc(gpu: VirtualGPU, entry: Entry) -> Any:
    if entry["where"] == "device":
        return gpu.empty(entry["bytes"], name=entry["name"])
    return gpu.host_empty(entry["bytes"], pin_memory=entry["where"] == "pinned", name=entry["name"])
