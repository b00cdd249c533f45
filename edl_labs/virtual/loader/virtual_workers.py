"""VirtualWorkers: a deterministic model of a data loader, its disks, its page cache and the step it feeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from edl_labs.virtual.errors import VirtualWorkersError, shown
from edl_labs.virtual.host_clock import VirtualClock
from edl_labs.virtual.loader.engine import MAIN, FileFacts, Loader, LoaderEngine
from edl_labs.virtual.loader.machine import LoaderMachine, loader_machine
from edl_labs.virtual.loader.program import PROGRAM
from edl_labs.virtual.quantities import MAX_BYTES, MAX_NAME, PER_SECOND, picoseconds
from edl_labs.virtual.timeline import Timeline

# Beyond any real machine, and small enough that a replay ends in seconds.
MAX_WORKERS, MAX_PREFETCH, MAX_FILES, MAX_LOADERS, MAX_THREADS = 256, 1024, 100_000, 1000, 4096
MAX_ACTIONS = 300_000  # of one loader: what a replay also takes
# The most pages one read may touch: 4 GiB of pages of 4 KiB.
MAX_PAGES = 1 << 20
_ACTIONS = {"cpu": 3, "sleep": 3, "open": 2, "read": 4}


@dataclass(frozen=True)
class VirtualFile:
    """A file on a virtual disk; `index` is what a recorded program calls it."""

    index: int
    name: str
    nbytes: int


class VirtualLoader:
    """Batches that virtual workers make: iterate over it, or call `next_batch`, which gives None after the last."""

    def __init__(self, owner: VirtualWorkers, index: int) -> None:
        self._owner, self.index = owner, index

    def next_batch(self) -> int | None:
        """Wait for the next batch and take it over: its number in the list that the loader was made from."""
        return self._owner._next(self.index)

    def __iter__(self) -> Iterator[int]:
        while (number := self.next_batch()) is not None:
            yield number

    def __len__(self) -> int:
        return len(self._owner.engine.loaders[self.index].batches)


class VirtualWorkers:
    """A machine that loads data, on virtual time: exact, the same on every run and every computer.

    The main process reads, works, takes batches from loaders and makes steps; each call takes as long as on a machine
    with these disks, this page cache and these cores. Everything issued and every reading is kept in `program`.

    >>> vw = VirtualWorkers(cores=4)
    >>> loader = vw.loader([[("cpu", "decode", 3e-3)]] * 4, workers=2)
    >>> for batch in loader:
    ...     vw.step(1e-3)
    >>> vw.now_s()
    0.008
    """

    def __init__(self, model: LoaderMachine | dict[str, Any] | None = None, **parameters: Any) -> None:
        self.machine = loader_machine(model, **parameters)
        self.clock = VirtualClock(self)
        self.engine = LoaderEngine(self.machine, traced=False)
        self._recorded: list[dict[str, Any]] = []

    def file(self, nbytes: int, *, name: str = "", disk: int | str = 0) -> VirtualFile:
        """A file of `nbytes` on a disk, named or counted from 0; making it takes no time and leaves the cache cold."""
        index = len(self.engine.files)
        _whole(nbytes, "nbytes", lowest=1, highest=MAX_BYTES)
        _whole(index, "the number of files", highest=MAX_FILES)
        place = self._disk(disk)
        name = name or f"file {index}"
        _name(name)
        self._keep({"op": "file", "name": name, "bytes": nbytes, "disk": place})
        self.engine.files.append(FileFacts(name, nbytes, place))
        return VirtualFile(index, name, nbytes)

    def open(self, file: VirtualFile | int) -> None:
        """Open a file in the main process."""
        index = self._file(file)
        self._keep({"op": "open", "file": index})
        self.engine.run(self.engine.open(MAIN, index))

    def read(self, file: VirtualFile | int, *, offset: int = 0, nbytes: int | None = None) -> None:
        """Read bytes of a file (to its end unless given) in the main process: pages in memory cost no disk."""
        index = self._file(file)
        nbytes = self._checked_read(index, offset, nbytes)
        self._keep({"op": "read", "file": index, "offset": offset, "bytes": nbytes})
        self.engine.run(self.engine.read(MAIN, index, offset, nbytes))

    def work(self, stage: str, duration_s: float) -> None:
        """Keep the main process busy on a core for `duration_s`, longer where workers share its core."""
        _name(stage)
        ps = _seconds(duration_s)
        self._keep({"op": "work", "stage": stage, "duration_s": duration_s})
        self.engine.run(self.engine.cpu(MAIN, stage, ps))

    def loader(self, batches: Any, *, workers: int = 0, prefetch: int = 2, in_order: bool = True) -> VirtualLoader:
        """A loader over `batches`, each a list of actions that one worker does in turn.

        Actions: ("cpu", stage, seconds), ("sleep", stage, seconds), ("open", file), ("read", file, offset, bytes). As
        torch's DataLoader does: workers start one after the other, each has at most `prefetch` batches out, one more is
        requested when one is taken, and without workers the main process does it all itself. `in_order=False` gives
        batches as they come, and to whichever worker has room.
        """
        _whole(workers, "workers", highest=MAX_WORKERS)
        _whole(prefetch, "prefetch", lowest=1, highest=MAX_PREFETCH)
        _whole(len(self.engine.loaders), "the number of loaders", highest=MAX_LOADERS)
        plain = self._batches(batches)
        entry = {"op": "loader", "workers": workers, "prefetch": prefetch, "in_order": bool(in_order), "batches": plain}
        self._keep(entry)
        loader = Loader(self.engine, plain, workers, prefetch, bool(in_order))
        self.engine.loaders.append(loader)
        self.engine.run(loader.start())
        return VirtualLoader(self, len(self.engine.loaders) - 1)

    def step(self, duration_s: float, *, threads: int = 0, blocking: bool = True) -> None:
        """A training step: on a device that takes no core, or, with `threads`, on that many cores of this machine.

        A device runs its steps one after the other; `blocking=False` lets the main process go on at once.
        """
        ps = _seconds(duration_s)
        _whole(threads, "threads", highest=MAX_THREADS)
        self._keep({"op": "step", "duration_s": duration_s, "threads": threads, "blocking": bool(blocking)})
        self.engine.run(self.engine.step(ps, threads=threads, blocking=bool(blocking)))

    def synchronize(self) -> None:
        """Wait until the device has finished every step that was issued."""
        self._keep({"op": "synchronize"})
        self.engine.run(self.engine.drain())

    def drop_cache(self) -> None:
        """Remove every page from the page cache."""
        self._keep({"op": "drop_cache"})
        self.engine.cache.drop()

    def resident_bytes(self, file: VirtualFile | int) -> int:
        """How many bytes of a file are in the page cache, as mincore tells on Linux."""
        index = self._file(file)
        value = self._resident(index)
        self._keep({"op": "resident", "file": index, "value": value})
        return value

    def now_s(self) -> float:
        """A reading of the main process's clock, rounded down to its resolution."""
        self.engine.run(self.engine.cpu(MAIN, "read the clock", round(self.machine.clock_read_cost_s * PER_SECOND)))
        step = max(1, round(self.machine.clock_resolution_s * PER_SECOND))
        value = self.engine.events.now // step * step / PER_SECOND
        self._keep({"op": "now", "value": value})
        return value

    @property
    def program(self) -> list[dict[str, Any]]:
        """Everything issued and every reading, in order, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._recorded]

    @property
    def timeline(self) -> Timeline:
        """What runs when, from a replay of the program so far to its end."""
        again = VirtualWorkers(self.machine)
        again.engine.traced = True
        deque(PROGRAM.replayed(again, self.program), maxlen=0)
        return again.engine.timeline()

    def _keep(self, entry: dict[str, Any]) -> None:
        self._recorded.append(entry)

    def _next(self, index: int) -> int | None:
        value = self.engine.run(self.engine.loaders[index].next())
        self._keep({"op": "next", "loader": index, "value": value})
        return cast("int | None", value)

    def _resident(self, index: int) -> int:
        facts, page = self.engine.files[index], self.machine.page_bytes
        pages = -(-facts.nbytes // page)
        _whole(pages, "the number of pages of the file", highest=MAX_PAGES)
        return min(self.engine.cache.resident(index, pages) * page, facts.nbytes)

    def _disk(self, disk: object) -> int:
        names = [known.name for known in self.machine.disks]
        if type(disk) is int and 0 <= disk < len(names):
            return disk
        if type(disk) is str and disk in names:
            return names.index(disk)
        raise VirtualWorkersError(
            f"there is no disk {shown(disk)}",
            why=f"the disks of this machine are {', '.join(names)}",
            next="use one of these",
        )

    def _file(self, file: object) -> int:
        index = file.index if isinstance(file, VirtualFile) else file
        if type(index) is int and 0 <= index < len(self.engine.files):
            return index
        raise VirtualWorkersError(
            f"{shown(file)} is not a file of this machine",
            why=f"this machine has {len(self.engine.files)} files",
            next="create a file with file(nbytes), and pass the value that file() returned",
        )

    def _checked_read(self, index: int, offset: object, nbytes: object) -> int:
        facts = self.engine.files[index]
        if nbytes is None and type(offset) is int:
            nbytes = facts.nbytes - offset
        fits = type(offset) is int and type(nbytes) is int and offset >= 0 and 0 < nbytes <= facts.nbytes - offset
        if not fits:
            raise VirtualWorkersError(
                f"cannot read {shown(nbytes)} bytes at offset {shown(offset)} of {facts.name}",
                why=f"a read must stay inside the file, which has {facts.nbytes:,} bytes",
                next="check the offset and the size",
            )
        assert type(nbytes) is int
        _whole(nbytes // self.machine.page_bytes, "the number of pages of a read", highest=MAX_PAGES)
        return nbytes

    def _batches(self, batches: Any) -> list[list[list[Any]]]:
        if not isinstance(batches, (list, tuple)):
            raise VirtualWorkersError(
                f"expected a list of batches, got {shown(batches)}",
                why="a loader runs through a list of batches",
                next="pass list(batches)",
            )
        plain, count = [], 0
        for number, batch in enumerate(batches):
            if not isinstance(batch, (list, tuple)):
                raise _bad_action(number, batch, "a batch must be a list of actions")
            count += len(batch) + 1
            _whole(count, "the number of actions of a loader", highest=MAX_ACTIONS)
            plain.append([self._action(number, action) for action in batch])
        return plain

    def _action(self, number: int, action: Any) -> list[Any]:
        if not isinstance(action, (list, tuple)) or not action or type(action[0]) is not str:
            raise _bad_action(number, action, 'an action is a tuple such as ("cpu", "decode", 1e-3)')
        kind = action[0]
        if _ACTIONS.get(kind) != len(action):
            raise _bad_action(
                number,
                kind,
                'the actions are ("cpu" or "sleep", stage, seconds), ("open", file) and ("read", file, offset, bytes)',
            )
        if kind in ("cpu", "sleep"):
            _name(action[1])
            _seconds(action[2])
            return [kind, action[1], action[2]]
        index = self._file(action[1])
        if kind == "open":
            return [kind, index]
        return [kind, index, action[2], self._checked_read(index, action[2], action[3])]


def _bad_action(number: int, value: object, why: str) -> VirtualWorkersError:
    return VirtualWorkersError(f"batch {number} contains {shown(value)}", why=why, next="correct this batch")


def _seconds(value: object) -> int:
    try:
        return picoseconds(value, "duration_s")
    except Exception as error:
        raise VirtualWorkersError(error.what, why=error.why, next=error.next) from None  # type: ignore[attr-defined]


def _whole(value: object, what: str, *, highest: int, lowest: int = 0) -> int:
    if type(value) is int and lowest <= value <= highest:
        return value
    raise VirtualWorkersError(
        f"{what} is {shown(value)}",
        why=f"it must be a whole number from {lowest} to {highest:,}",
        next="pass a number in this range",
    )


def _name(value: object) -> None:
    if type(value) is not str or not 0 < len(value) <= MAX_NAME:
        raise VirtualWorkersError(
            f"{shown(value)} is not a name",
            why=f"a name must be text of 1 to {MAX_NAME} characters",
            next='use a name such as "decode"',
        )
