"""Replaying what a VirtualWorkers recorded: it is computed again on a fresh one, and its readings are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edl_labs.errors import EdlError
from edl_labs.virtual.engine import PER_SECOND
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, shown
from edl_labs.virtual.loader_engine import LoaderEngine
from edl_labs.virtual.loader_machine import LoaderMachine, loader_machine
from edl_labs.virtual.replay import Reading
from edl_labs.virtual.timeline import Timeline
from edl_labs.virtual.workers import VirtualLoader, VirtualWorkers

MAX_OPERATIONS = 300_000
Entry = dict[str, Any]


@dataclass(frozen=True)
class WorkersReplay:
    """What a loading program did, from its operations alone.

    `counts` is by kind of operation. `disk_bytes` came from disks in `requests` requests, of which `seeks` jumped;
    `asked_bytes` were read by the program, `cached_bytes` of them found in the page cache. `waited_s` is the main
    process's time in `next`, by batch; `stage_s` the time on cores by stage, at full speed.
    """

    machine: LoaderMachine
    operations: int
    counts: Mapping[str, int]
    batches: int
    requests: int
    seeks: int
    opens: int
    disk_bytes: int
    asked_bytes: int
    cached_bytes: int
    waited_s: tuple[float, ...]
    stage_s: Mapping[str, float]
    host_s: float
    device_s: float
    readings: tuple[Reading, ...]
    program: tuple[Entry, ...] = field(repr=False)
    engine: LoaderEngine = field(repr=False, compare=False)

    @property
    def makespan_s(self) -> float:
        """From time 0 until the main process and the device are both done."""
        return max(self.host_s, self.device_s)

    @property
    def batch_per_s(self) -> float:
        """Batches taken over the makespan; 0 for a program without any."""
        return self.batches / self.makespan_s if self.makespan_s else 0.0

    @cached_property
    def timeline(self) -> Timeline:
        """What ran when: the main process, the device, each worker, each disk."""
        return Timeline(tuple(sorted(self.engine.spans, key=lambda s: (_row_order(s.row), s.start_s, s.end_s))))

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data with a schema number, without program and readings."""
        left_out = ("machine", "readings", "program", "engine", "counts", "stage_s", "waited_s")
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in left_out}
        more = {"counts": dict(self.counts), "stage_s": dict(self.stage_s), "waited_s": list(self.waited_s)}
        return {"kind": "workers_replay", "schema": 1, "machine": self.machine.to_dict(), **plain, **more}


def replay_workers(
    program: object, model: LoaderMachine | Mapping[str, Any], *, max_operations: int = MAX_OPERATIONS
) -> WorkersReplay:
    """Run a recorded program again on a fresh VirtualWorkers of the same machine.

    Raises ReplayDisagreement where a recorded reading is not the replayed one, and ReplayError where the program is
    none: never anything else, whatever `program` is.

    >>> vw = VirtualWorkers(cores=2)
    >>> vw.read(vw.file(10_000), nbytes=5_000)
    >>> replay_workers(vw.program, vw.machine).disk_bytes
    8192
    """
    vw = VirtualWorkers(loader_machine(model))
    vw.engine.traced = True
    if type(program) is not list:
        raise ReplayError(
            f"a program is a list of operations, not a {type(program).__name__}",
            why="it was not recorded by a VirtualWorkers",
            next="return vw.program",
        )
    counts: Counter[str] = Counter()
    readings: list[Reading] = []
    left = max_operations
    for index, raw in enumerate(program):
        entry = _checked(index, raw)
        left -= _charge(entry, vw.machine)
        if left < 0:
            raise ReplayError(
                f"the program has more than {max_operations:,} operations",
                why="a replay has a limit, and reading a thousand pages counts as one operation",
                next="measure with fewer calls",
            )
        value = _play(vw, index, entry)
        counts[entry["op"]] += 1
        if "value" in entry:
            readings.append(_compared(vw, index, entry, value))
    return _result(vw, counts, readings)


def _result(vw: VirtualWorkers, counts: Counter[str], readings: list[Reading]) -> WorkersReplay:
    engine = vw.engine
    host_s, device_s, done = engine.events.now / PER_SECOND, engine.device_free / PER_SECOND, engine.counts
    figures = {"disk_bytes": done.disk_bytes, "asked_bytes": done.asked_bytes, "cached_bytes": done.cached_bytes}
    return WorkersReplay(
        machine=vw.machine,
        operations=len(vw.program),
        counts=dict(counts),
        batches=sum(loader.taken for loader in engine.loaders),
        requests=done.requests,
        seeks=done.seeks,
        opens=done.opens,
        **figures,
        waited_s=tuple(ps / PER_SECOND for loader in engine.loaders for ps in loader.waits),
        stage_s={stage: ps / PER_SECOND for stage, ps in engine.stage_ps.items()},
        host_s=host_s,
        device_s=device_s,
        readings=tuple(readings),
        program=tuple(vw.program),
        engine=engine,
    )


def _play(vw: VirtualWorkers, index: int, entry: Entry) -> Any:
    try:
        return _PLAYS[entry["op"]](vw, entry)
    except EdlError as error:
        raise ReplayError(
            f"operation {index} of the program cannot be: {error.what}", why=error.why, next=error.next
        ) from error
    except LookupError:
        raise _malformed(index, f"is a {entry['op']} of something that the program did not make") from None


def _compared(vw: VirtualWorkers, index: int, entry: Entry, value: Any) -> Reading:
    recorded = entry["value"]
    if type(recorded) is not type(value) or recorded != value:
        raise ReplayDisagreement(index=index, operation=entry["op"], recorded=recorded, replayed=value)
    events = vw.engine.events
    return Reading(index, entry["op"], value, events.now / PER_SECOND, vw.engine.device_free <= events.now, 0)


def _next(vw: VirtualWorkers, entry: Entry) -> Any:
    index = entry["loader"]
    if type(index) is not int or index < 0:
        raise LookupError
    vw.engine.loaders[index]
    return VirtualLoader(vw, index).next_batch()


_FIELDS: dict[str, tuple[str, ...]] = {
    "file": ("name", "bytes", "disk"),
    "open": ("file",),
    "read": ("file", "offset", "bytes"),
    "work": ("stage", "duration_s"),
    "loader": ("workers", "prefetch", "in_order", "batches"),
    "next": ("loader", "value"),
    "step": ("duration_s", "threads", "blocking"),
    "synchronize": (),
    "drop_cache": (),
    "resident": ("file", "value"),
    "now": ("value",),
}

_PLAYS: dict[str, Callable[[VirtualWorkers, Entry], Any]] = {
    "file": lambda vw, e: vw.file(e["bytes"], name=e["name"], disk=e["disk"]),
    "open": lambda vw, e: vw.open(e["file"]),
    "read": lambda vw, e: vw.read(e["file"], offset=e["offset"], nbytes=e["bytes"]),
    "work": lambda vw, e: vw.work(e["stage"], e["duration_s"]),
    "loader": lambda vw, e: vw.loader(
        e["batches"], workers=e["workers"], prefetch=e["prefetch"], in_order=e["in_order"]
    ),
    "next": _next,
    "step": lambda vw, e: vw.step(e["duration_s"], threads=e["threads"], blocking=e["blocking"]),
    "synchronize": lambda vw, e: vw.synchronize(),
    "drop_cache": lambda vw, e: vw.drop_cache(),
    "resident": lambda vw, e: vw.resident_bytes(e["file"]),
    "now": lambda vw, e: vw.now_s(),
}


def _checked(index: int, entry: object) -> Entry:
    if type(entry) is not dict:
        raise _malformed(index, f"is {shown(entry)}, not a dict with its fields")
    name = entry.get("op")
    if type(name) is not str or name not in _FIELDS:
        raise _malformed(index, f"has the name {shown(name)}, which no operation has")
    wanted = {"op", *_FIELDS[name]}
    for extra in entry:
        if type(extra) is not str or extra not in wanted:
            raise _malformed(index, f"is a {name} with a field {shown(extra)}, which it does not have")
    for missing in _FIELDS[name]:
        if missing not in entry:
            raise _malformed(index, f"is a {name} without its {missing}")
    for flag in ("in_order", "blocking"):
        if flag in entry and type(entry[flag]) is not bool:
            raise _malformed(index, f"is a {name} whose {flag} cannot be {shown(entry[flag])}")
    return entry


def _charge(entry: Entry, machine: LoaderMachine) -> int:
    if entry["op"] == "read":
        return 1 + _pages(entry["bytes"], machine)
    if entry["op"] == "step" and type(entry["threads"]) is int:
        return 1 + abs(entry["threads"]) // 8
    if entry["op"] != "loader" or type(entry["batches"]) is not list:
        return 1
    total = 1
    for batch in entry["batches"]:
        total += 1 + (len(batch) if type(batch) is list else 0)
        reads = [action for action in batch if _is_read(action)] if type(batch) is list else []
        total += sum(_pages(action[3], machine) for action in reads)
        if total > MAX_OPERATIONS:
            break
    return total


def _is_read(action: object) -> bool:
    return type(action) is list and len(action) == 4


def _pages(nbytes: object, machine: LoaderMachine) -> int:
    return nbytes // machine.page_bytes // 1000 if type(nbytes) is int and 0 < nbytes < 1 << 60 else 0


def _row_order(row: str) -> tuple[int, int, str]:
    if row.startswith("worker "):
        return 2, int(row.removeprefix("worker ")), ""
    return {"main": (0, 0, ""), "device": (1, 0, "")}.get(row, (3, 0, row))


def _malformed(index: int, problem: str) -> ReplayError:
    return ReplayError(
        f"operation {index} of the program {problem}",
        why="only what a VirtualWorkers recorded can be replayed",
        next="return vw.program as it is, without editing it",
    )
