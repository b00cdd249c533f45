"""Discrete events in whole picoseconds, cores that processes share evenly, and processes written as generators."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import Any

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
        """Let the next thing happen; False where nothing is left."""
        if not self._heap:
            return False
        self.now, _, callback = heapq.heappop(self._heap)
        callback()
        return True

    def start(self, process: Process, then: Callable[[Any], None] | None = None) -> None:
        """Run a process until it ends; `then` gets what it returns."""

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
