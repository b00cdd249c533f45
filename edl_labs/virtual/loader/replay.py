"""Replaying what a VirtualWorkers recorded: it is computed again on a fresh one, and its readings are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edl_labs.values import Value
from edl_labs.virtual.loader.engine import LoaderEngine
from edl_labs.virtual.loader.machine import LoaderMachine, loader_machine
from edl_labs.virtual.loader.program import PROGRAM
from edl_labs.virtual.loader.virtual_workers import VirtualWorkers
from edl_labs.virtual.program import MAX_REPLAYED, Entry, Reading
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Timeline


@dataclass(frozen=True, repr=False)
class WorkersReplay(Value):
    """What a loading program did, from its operations alone.

    `counts` is by kind of operation. `disk_bytes` came from disks in `requests` requests, of which `seeks` jumped;
    `asked_bytes` were read by the program, `cached_bytes` of them found in the page cache. `waited_s` is the main
    process's time in `next`, by batch; `stage_s` the time on cores by stage, at full speed.
    """

    OMITTED = ("readings", "program", "engine")

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

    @property
    def timeline(self) -> Timeline:
        """What ran when: the main process, the device, each worker, each disk."""
        return self.engine.timeline()


def replay_workers(
    program: object, model: LoaderMachine | Mapping[str, Any], *, max_operations: int = MAX_REPLAYED
) -> WorkersReplay:
    """Run a recorded program again on a fresh VirtualWorkers of the same machine.

    Raises ReplayDisagreement where a recorded reading is not the replayed one, and ReplayError where `program` is
    not one: never anything else, whatever it is.

    >>> vw = VirtualWorkers(cores=2)
    >>> vw.read(vw.file(10_000), nbytes=5_000)
    >>> replay_workers(vw.program, vw.machine).disk_bytes
    8192
    """
    vw = VirtualWorkers(loader_machine(model))
    vw.engine.traced = True
    counts: Counter[str] = Counter()
    readings: list[Reading] = []
    for index, entry, value in PROGRAM.replayed(vw, program, at_most=max_operations):
        counts[entry["op"]] += 1
        if "value" in entry:
            now, idle_from = vw.engine.events.now, vw.engine.device_free
            readings.append(Reading(index, entry["op"], value, now / PER_SECOND, idle_from <= now, 0))
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
