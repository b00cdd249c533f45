"""What runs beneath a VirtualWorkers: the main process, its workers with their queues, disks, cache and device."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from edl_labs.virtual.errors import VirtualWorkersError
from edl_labs.virtual.loader.discrete_events import (
    CachedPages,
    Cores,
    DiskQueue,
    Events,
    Process,
    Resume,
    Run,
    StorageCounts,
)
from edl_labs.virtual.loader.machine import LoaderMachine
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Span, Timeline

MAIN, DEVICE_ROW = "main", "device"


@dataclass(frozen=True)
class FileFacts:
    """A file of the virtual machine: its size and the number of its disk."""

    name: str
    nbytes: int
    disk: int


class LoaderEngine:
    """All state of one VirtualWorkers. Every method of the main process lets virtual time go on until it is done."""

    def __init__(self, machine: LoaderMachine, *, traced: bool) -> None:
        self.machine, self.traced = machine, traced
        self.events = Events()
        self.cores = Cores(self.events, machine.cores, machine.contention)
        self.counts = StorageCounts()
        self.disks = [DiskQueue(disk, self.events, self.counts, self.note) for disk in machine.disks]
        self.cache = CachedPages(machine.page_bytes, machine.cache_bytes // machine.page_bytes)
        self.files: list[FileFacts] = []
        self.loaders: list[Loader] = []
        self.spans: list[Span] = []
        self.stage_ps: dict[str, int] = {}
        self.device_free = 0
        self.waited = 0

    def note(self, row: str, kind: str, name: str, start: int, end: int) -> None:
        """Store a time span for the timeline."""
        if self.traced and end > start:
            self.spans.append(Span(row, kind, name, start / PER_SECOND, end / PER_SECOND))

    def timeline(self) -> Timeline:
        """What ran when: the main process, the device, each worker, each disk."""
        return Timeline(tuple(sorted(self.spans, key=lambda s: (_row_order(s.row), s.start_s, s.end_s))))

    def run(self, process: Process) -> Any:
        """Run a process in the main process to its end, everything else meanwhile."""
        done: list[Any] = []
        self.events.start(process, done.append)
        while not done:
            if not self.events.step():
                raise VirtualWorkersError(
                    "the main process waits for a batch that never arrives",
                    why="no worker, disk or device has any work left",
                    next="do not ask a loader for more batches than it has",
                )
        return done[0]

    def finish(self) -> None:
        """Let everything that is under way come to its end."""
        while self.events.step():
            pass

    def cpu(self, row: str, stage: str, ps: int) -> Process:
        """Run work on a core."""
        start = self.events.now
        yield lambda resume: self.cores.run(ps, resume)
        self.stage_ps[stage] = self.stage_ps.get(stage, 0) + ps
        self.note(row, "cpu", stage, start, self.events.now)

    def sleep(self, row: str, stage: str, ps: int) -> Process:
        """Wait for something outside the machine, such as a network or another machine."""
        start = self.events.now
        yield lambda resume: self.events.after(ps, resume)
        self.note(row, "wait", stage, start, self.events.now)

    def open(self, row: str, file: int) -> Process:
        """Open a file."""
        self.counts.opens += 1
        return self.cpu(row, f"open {self.files[file].name}", round(self.machine.open_s * PER_SECOND))

    def read(self, row: str, file: int, offset: int, nbytes: int) -> Process:
        """Read bytes of a file: pages that are not in memory come from its disk, one run after the other."""
        facts, page = self.files[file], self.machine.page_bytes
        start, fetched = self.events.now, 0
        self.counts.asked_bytes += nbytes
        for first, last in self.cache.missing(file, offset, offset + nbytes):
            run: Run = (file, first * page, min(last * page, facts.nbytes))
            yield lambda resume, run=run: self.disks[facts.disk].submit(run, resume)  # type: ignore[misc]
            self.cache.add(file, range(first, last))
            fetched += min(run[2], offset + nbytes) - max(run[1], offset)
        self.counts.cached_bytes += nbytes - fetched
        self.note(row, "wait", f"read {facts.name}", start, self.events.now)
        ps = round(nbytes * PER_SECOND / self.machine.memory_byte_per_s)
        yield lambda resume: self.cores.run(ps, resume)

    def action(self, row: str, action: list[Any]) -> Process:
        """One action of a batch, in whichever process has it to do."""
        kind = action[0]
        if kind == "cpu":
            return self.cpu(row, action[1], round(action[2] * PER_SECOND))
        if kind == "sleep":
            return self.sleep(row, action[1], round(action[2] * PER_SECOND))
        if kind == "open":
            return self.open(row, action[1])
        return self.read(row, action[1], action[2], action[3])

    def step(self, ps: int, *, threads: int, blocking: bool) -> Process:
        """A training step: on the device after the steps before it, or on `threads` cores of this machine."""
        start = self.events.now
        if threads:
            ended: list[int] = []
            pending: list[Resume] = []

            def one_ends() -> None:
                ended.append(1)
                if len(ended) == threads and pending:
                    pending[0]()

            for _ in range(threads):
                self.cores.run(ps, one_ends)
            if len(ended) < threads:
                yield pending.append
            self.note(MAIN, "step", "step", start, self.events.now)
            return
        begin = max(start, self.device_free)
        self.device_free = begin + ps
        self.note(DEVICE_ROW, "step", "step", begin, self.device_free)
        if blocking:
            yield from self.drain()

    def drain(self) -> Process:
        """Wait until the device has done every step issued."""
        start = self.events.now
        if self.device_free > start:
            yield lambda resume: self.events.after(self.device_free - start, resume)
            self.note(MAIN, "wait", "device", start, self.events.now)


@dataclass
class Loader:
    """The bookkeeping of one loader: batches go out in order, at most `prefetch` for each worker at a time."""

    engine: LoaderEngine
    batches: list[list[list[Any]]]
    workers: int
    prefetch: int
    in_order: bool
    sent: int = 0
    taken: int = 0
    ready: dict[int, int] = field(default_factory=dict)
    waits: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queues: list[deque[int]] = [deque() for _ in range(self.workers)]
        self.tasks = [0] * self.workers
        self.idle: list[Resume | None] = [None] * self.workers
        self.turn = cycle(range(self.workers)) if self.workers else iter(())
        self.main_waits: Resume | None = None

    def start(self) -> Process:
        """Start the workers one after the other, as a DataLoader does, then fill their queues."""
        for worker in range(self.workers):
            yield from self.engine.cpu(MAIN, "start a worker", round(self.engine.machine.worker_start_s * PER_SECOND))
            self.engine.events.start(self._work(worker))
        for _ in range(self.prefetch * self.workers):
            self._send()

    def next(self) -> Process:
        """The number of the next batch, when it is there; None after the last."""
        if self.taken == len(self.batches):
            return None
        engine, start = self.engine, self.engine.events.now
        if not self.workers:
            number = self.taken
            for action in self.batches[number]:
                yield from engine.action(MAIN, action)
        else:
            while self._next_ready() is None:
                yield self._wait
            number = self._next_ready()  # type: ignore[assignment]
            self.tasks[self.ready.pop(number)] -= 1
            engine.note(MAIN, "wait", "data", start, engine.events.now)
        self.waits.append(engine.events.now - start)
        yield from engine.cpu(MAIN, "collect", round(engine.machine.collect_s * PER_SECOND))
        self.taken += 1
        self._send()
        return number

    def _wait(self, resume: Resume) -> None:
        self.main_waits = resume

    def _next_ready(self) -> int | None:
        if self.in_order:
            return self.taken if self.taken in self.ready else None
        return next(iter(self.ready), None)

    def _send(self) -> None:
        if self.sent == len(self.batches) or not self.workers:
            return
        worker = next(self.turn)
        if not self.in_order:
            # A worker whose queue is full is passed over; one always has room, since a batch was just taken.
            for _ in range(self.workers):
                if self.tasks[worker] < self.prefetch:
                    break
                worker = next(self.turn)
        self.queues[worker].append(self.sent)
        self.tasks[worker] += 1
        self.sent += 1
        resume, self.idle[worker] = self.idle[worker], None
        if resume is not None:
            resume()

    def _work(self, worker: int) -> Process:
        row, queue = f"worker {worker}", self.queues[worker]

        def sleep_until_fed(resume: Resume) -> None:
            self.idle[worker] = resume

        while True:
            while not queue:
                yield sleep_until_fed
            number = queue.popleft()
            for action in self.batches[number]:
                yield from self.engine.action(row, action)
            self.ready[number] = worker
            resume, self.main_waits = self.main_waits, None
            if resume is not None:
                resume()


def _row_order(row: str) -> tuple[int, int, str]:
    if row.startswith("worker "):
        return 2, int(row.removeprefix("worker ")), ""
    return {"main": (0, 0, ""), "device": (1, 0, "")}.get(row, (3, 0, row))
