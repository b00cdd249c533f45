"""Disks with a seek and a rate, and a page cache in front of them, on virtual time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from edl_labs.virtual.loader.discrete_events import Events
from edl_labs.virtual.loader.loader_machine import Disk
from edl_labs.virtual.quantities import PER_SECOND

Resume = Callable[[], None]
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
class PageCache:
    """The pages of files that are in memory, the least recently used leaving first; `capacity` in pages."""

    page_bytes: int
    capacity: int
    _pages: OrderedDict[tuple[int, int], None] = field(default_factory=OrderedDict)

    def missing(self, file: int, start: int, stop: int) -> list[tuple[int, int]]:
        """Runs of pages (first, beyond the last) that a read of bytes start..stop has to fetch; hits become recent."""
        runs: list[tuple[int, int]] = []
        for page in range(start // self.page_bytes, -(-stop // self.page_bytes)):
            if (file, page) in self._pages:
                self._pages.move_to_end((file, page))
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
