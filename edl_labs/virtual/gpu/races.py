"""Data races of a program: two operations touch the same bytes, one writes, and nothing orders them.

Freeing device memory counts as a write by the stream for which it was made, which may use it again at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.gpu.buffers import DEVICE
from edl_labs.virtual.gpu.program import (
    ALLOCATES,
    AWAITS,
    EVERY,
    FREES,
    KEEPS,
    MARKS,
    OPERATIONS,
    WORKS,
    Entry,
    GPUOperationKind,
)
from edl_labs.virtual.gpu.unrolled import lanes, unrolled
from edl_labs.virtual.intervals import Part, split

MAX_RACES = 100  # far more than anybody reads
_MAX_VISITS = 1_000_000  # parts of buffers looked at: seconds of a judge's time
_DOES = {"write": "writes", "read": "reads", "free": "frees"}
_HOST = 0  # the actor beside streams, which are 1, 2, ...

Access = tuple[int, int, int]  # who (0 the host, 1 + n stream n), the how-manieth step of his, the operation's index
State = tuple[Access | None, dict[int, Access]]  # the last write of a part, and the reads since


@dataclass(frozen=True)
class Race:
    """Operations `first` and `second` of a program touch bytes `start` to `stop` of a buffer in no order.

    `kind` says what they do, in the order of issue: 'write, then read', for example.
    """

    buffer: str
    start: int
    stop: int
    first: int
    second: int
    kind: str

    def __str__(self) -> str:
        place = f"{self.buffer}[{self.start}:{self.stop}]"
        before, after = (_DOES[one] for one in self.kind.split(", then "))
        if self.first == self.second:
            said = f"operation {self.first} {before} {place} and also {after} it"
        elif before == after:
            said = f"operations {self.first} and {self.second} both write {place}"
        else:
            said = f"operation {self.first} {before} {place} and operation {self.second} {after} it"
        return f"{said}, with no event, stream or synchronisation between them"


def find_races(program: Sequence[Entry]) -> tuple[Race, ...]:
    """The races of a checked program, at most 100 of them."""
    finder = _Finder(streams=lanes(program))
    for index, entry in unrolled(program):
        finder.follow(index, entry)
        if len(finder.races) >= MAX_RACES:
            break
    return tuple(finder.races[:MAX_RACES])


class _Memory:
    """One buffer; each part of it knows its last write and the reads since."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.parts: list[Part[State]] = [(0, size, (None, {}))]
        self.kept_for: set[int] = set()

    def cut(self, position: int) -> int:
        """Make a part start at `position`, and give its number."""
        return split(self.parts, position, copied=lambda state: (state[0], dict(state[1])))


class _Finder:
    """Follows a program with vector clocks: what each of the host and the streams knows to be over."""

    def __init__(self, streams: int) -> None:
        self.races: list[Race] = []
        self._clocks = [[0] * (streams + 1) for _ in range(streams + 1)]
        self._joined = [0] * (streams + 1)
        self._host_version = 0
        self._events: dict[int, list[int]] = {}
        self._busy: set[int] = set()
        self._memory: list[_Memory] = []
        self._places: list[str] = []
        self._visits = 0

    def follow(self, index: int, entry: Entry) -> None:
        """Take the next operation."""
        kind = OPERATIONS[entry["op"]]
        if kind.effect == ALLOCATES:
            self._memory.append(_Memory(entry["name"], entry["bytes"]))
            self._places.append(entry["where"])
        elif kind.effect == WORKS:
            self._work(index, entry, kind)
        elif kind.effect == FREES:
            self._free(index, entry)
        elif kind.effect == KEEPS:
            self._memory[entry["buffer"]].kept_for.add(1 + entry["stream"])
        elif kind.effect == MARKS:
            self._events[entry["event"]] = list(self._lane(entry["stream"]))
        elif kind.effect == AWAITS:
            _join(self._lane(entry["stream"]), self._events.get(entry["event"], []))
        for what, number in kind.observes(entry):
            for known in self._known(what, number):
                _join(self._clocks[_HOST], known)
                self._host_version += 1

    def _known(self, what: str, number: int) -> Iterator[list[int]]:
        """The clocks that the host learns from a call that returned: what is over, by now."""
        if what == "event":
            # One that was never recorded has nothing to tell.
            yield self._events.get(number, [])
        elif number == EVERY:
            # Streams that did nothing since the last time have nothing new to tell.
            yield from (self._clocks[1 + stream] for stream in self._busy)
            self._busy = set()
        else:
            yield self._clocks[1 + number]

    def _work(self, index: int, entry: Entry, kind: GPUOperationKind) -> None:
        places = [self._places[entry[side][0]] for side in ("dst", "src") if side in entry]
        on_host = kind.on_host(entry, places)
        actor = _HOST if on_host else 1 + entry["stream"]
        clock = self._clocks[_HOST] if on_host else self._lane(entry["stream"])
        clock[actor] += 1
        read, written = kind.touches(entry)
        for region in read:
            self._touch(region, (actor, clock[actor], index), clock, writes=False)
        for region in written:
            self._touch(region, (actor, clock[actor], index), clock, writes=True)
        if on_host:
            self._host_version += 1
        elif kind.blocks(entry, places):
            _join(self._clocks[_HOST], clock)
            self._host_version += 1

    def _free(self, index: int, entry: Entry) -> None:
        if self._places[entry["buffer"]] != DEVICE:
            # Pinned memory waits for the copies that use it, as torch's cache of it does.
            return
        memory, clock = self._memory[entry["buffer"]], self._lane(entry.get("stream", 0))
        for part in memory.parts:
            write, reads = part[2]
            late = [access for access in (write, *reads.values()) if access and access[1] > clock[access[0]]]
            for access in late:
                if access[0] not in memory.kept_for:
                    kind = "write, then free" if access is write else "read, then free"
                    self._report(memory, part, access, (access[0], access[1], index), kind=kind)

    def _lane(self, stream: int) -> list[int]:
        """A stream's clock, with all that the host knows: an operation comes after what was over when it was issued."""
        clock = self._clocks[1 + stream]
        self._busy.add(stream)
        if self._joined[1 + stream] != self._host_version:
            _join(clock, self._clocks[_HOST])
            self._joined[1 + stream] = self._host_version
        return clock

    def _touch(self, region: list[int], access: Access, clock: list[int], *, writes: bool) -> None:
        number, start, stop = region
        memory = self._memory[number]
        low, high = memory.cut(start), memory.cut(stop)
        self._visits += high - low + len(memory.parts) // 64
        if self._visits > _MAX_VISITS:
            raise ReplayError(
                "the program splits its buffers into too many parts to track",
                why="every part that is read or written separately is tracked",
                next="use larger chunks",
            )
        for part in memory.parts[low:high]:
            self._judge(memory, part, access, clock, writes=writes)
        if writes:
            memory.parts[low:high] = [(start, stop, (access, {}))]

    def _judge(self, memory: _Memory, part: Part[State], access: Access, clock: list[int], *, writes: bool) -> None:
        write, reads = part[2]
        if write is not None and write[1] > clock[write[0]]:
            self._report(memory, part, write, access, kind="write, then write" if writes else "write, then read")
        if writes:
            for read in reads.values():
                if read[1] > clock[read[0]]:
                    self._report(memory, part, read, access, kind="read, then write")
        else:
            reads[access[0]] = access

    def _report(self, memory: _Memory, part: Part[State], before: Access, after: Access, *, kind: str) -> None:
        self.races.append(Race(memory.name, part[0], part[1], before[2], after[2], kind))


def _join(clock: list[int], other: list[int]) -> None:
    for at, step in enumerate(other):
        if step > clock[at]:
            clock[at] = step
