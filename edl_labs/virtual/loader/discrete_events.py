"""Discrete events in whole picoseconds: processes as generators, and the cores, disks and page cache they share."""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from edl_labs.virtual.loader.machine import Disk
from edl_labs.virtual.quantities import PER_SECOND

Resume = Callable[[], None]
# A process yields what it waits for: a function that is given the process's way to go on.
Process = Generator[Callable[[Resume], None], None, Any]
_MILLION = 1_000_000  # contention in parts per million: whole numbers, exact everywhere


class Events:
    """What happens when: callbacks in the order of time, and of issue at the same time."""

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, Resume]] = []
        self._issued = 0

    def after(self, ps: int, callback: Resume) -> None:
        """Call `callback` in `ps` picoseconds."""
        self._issued += 1
        heapq.heappush(self._heap, (self.now + ps, self._issued, callback))

    def step(self) -> bool:
        """Run the next event; False if there is none left."""
        if not self._heap:
            return False
        self.now, _, callback = heapq.heappop(self._heap)
        callback()
        return True

    def start(self, process: Process, then: Callable[[Any], None] | None = None) -> None:
        """Run a process until it ends; `then` receives its result."""

        state = {"running": False, "again": False}

        def go_on() -> None:
            if state["running"]:
                state["again"] = True
                return
            # A loop, not a recursion: a process may do a million things that take no time.
            state.update(running=True, again=True)
            while state["again"]:
                state["again"] = False
                try:
                    wait = next(process)
                except StopIteration as end:
                    if then is not None:
                        then(end.value)
                    return
                wait(go_on)
            state["running"] = False

        go_on()


class Cores:
    """Processor sharing: n jobs on c cores run at min(1, c / n), less what contention takes.

    Virtual service V grows at the common rate and a job that needs w ends when V has grown by w (Kleinrock 1976). With
    a core for each job and no contention the times are exact; otherwise each event rounds to a picosecond.
    """

    def __init__(self, events: Events, cores: int, contention: float) -> None:
        self._events, self._cores, self._ppm = events, cores, round(contention * _MILLION)
        self._served = self._at = self._version = self._issued = 0
        self._jobs: list[tuple[int, int, Resume]] = []

    def run(self, ps: int, resume: Resume) -> None:
        """Run a job of `ps` picoseconds on a free core, then `resume`."""
        if ps == 0:
            resume()
            return
        self._advance()
        self._issued += 1
        heapq.heappush(self._jobs, (self._served + ps, self._issued, resume))
        self._plan()

    def _rate(self) -> tuple[int, int]:
        jobs = len(self._jobs)
        busy = min(jobs, self._cores)
        return busy * _MILLION, jobs * (_MILLION + self._ppm * (busy - 1))

    def _advance(self) -> None:
        if self._jobs:
            up, down = self._rate()
            self._served = min(self._served + (self._events.now - self._at) * up // down, self._jobs[0][0])
        self._at = self._events.now

    def _plan(self) -> None:
        self._version += 1
        if self._jobs:
            up, down = self._rate()
            wait = -((self._jobs[0][0] - self._served) * down // -up)
            version = self._version
            self._events.after(wait, lambda: self._finish(version))

    def _finish(self, version: int) -> None:
        if version != self._version:
            return
        self._served, self._at = self._jobs[0][0], self._events.now
        done = []
        while self._jobs and self._jobs[0][0] <= self._served:
            done.append(heapq.heappop(self._jobs))
        self._plan()
        for _, _, resume in sorted(done, key=lambda job: job[1]):
            resume()


# A run of bytes of one file: (file, start, stop).
Run = tuple[int, int, int]


@dataclass
class StorageCounts:
    """What disks and cache did so far, in whole numbers."""

    requests: int = 0
    seeks: int = 0
    disk_bytes: int = 0
    cached_bytes: int = 0
    asked_bytes: int = 0
    opens: int = 0


class DiskQueue:
    """One disk: requests wait in order of arrival for a channel, and each channel remembers where it stopped."""

    def __init__(self, disk: Disk, events: Events, counts: StorageCounts, note: Callable[..., None]) -> None:
        self.disk, self._events, self._counts, self._note = disk, events, counts, note
        self._seek_ps = round(disk.seek_s * PER_SECOND)
        self._free = list(range(disk.channels))
        self._heads: list[tuple[int, int] | None] = [None] * disk.channels
        self._waiting: deque[tuple[Run, Resume]] = deque()

    def submit(self, run: Run, resume: Resume) -> None:
        """Read a run of bytes; `resume` is called when its last byte is there."""
        if self._free:
            self._serve(self._pick(run), run, resume)
        else:
            self._waiting.append((run, resume))

    def _pick(self, run: Run) -> int:
        following = [channel for channel in self._free if self._heads[channel] == run[:2]]
        channel = min(following or self._free)
        self._free.remove(channel)
        return channel

    def _serve(self, channel: int, run: Run, resume: Resume) -> None:
        file, start, stop = run
        far = self._heads[channel] != (file, start)
        nbytes = stop - start
        rate = self.disk.read_byte_per_s / self.disk.channels
        ps = (self._seek_ps if far else 0) + round(nbytes * PER_SECOND / rate)
        counts = self._counts
        counts.requests, counts.seeks, counts.disk_bytes = (
            counts.requests + 1,
            counts.seeks + far,
            counts.disk_bytes + nbytes,
        )
        self._heads[channel] = (file, stop)
        row = self.disk.name if self.disk.channels == 1 else f"{self.disk.name} {channel}"
        self._note(row, "read", "seek and read" if far else "read", self._events.now, self._events.now + ps)

        def done() -> None:
            if self._waiting:
                self._serve(channel, *self._waiting.popleft())
            else:
                self._free.append(channel)
            resume()

        self._events.after(ps, done)


@dataclass
class CachedPages:
    """The pages of files that are in memory, the least recently used leaving first; `capacity` in pages."""

    page_bytes: int
    capacity: int
    _pages: OrderedDict[tuple[int, int], None] = field(default_factory=OrderedDict)

    def missing(self, file: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Runs of pages (first, beyond the last) that a read of bytes start..stop has to fetch; hits become recent."""
        runs: list[tuple[int, int]] = []
        pages, touch = self._pages, self._pages.move_to_end
        for page in range(start // self.page_bytes, -(-stop // self.page_bytes)):
            if (key := (file, page)) in pages:
                touch(key)
            elif runs and runs[-1][1] == page:
                runs[-1] = (runs[-1][0], page + 1)
            else:
                runs.append((page, page + 1))
        return runs

    def add(self, file: int, pages: Iterable[int]) -> None:
        """Put pages in; the oldest leave where there is no room."""
        if not self.capacity:
            return
        for page in pages:
            self._pages[file, page] = None
            self._pages.move_to_end((file, page))
            if len(self._pages) > self.capacity:
                self._pages.popitem(last=False)

    def resident(self, file: int, pages: int) -> int:
        """How many of the first `pages` pages of a file are in memory."""
        return sum((file, page) in self._pages for page in range(pages))

    def drop(self) -> None:
        """Forget every page."""
        self._pages.clear()
