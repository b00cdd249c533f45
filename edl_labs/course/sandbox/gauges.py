"""How much memory and CPU time the processes of one kernel take together, read from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.syscall_filter import MOST_BACKLOG
from edl_labs.course.sandbox.view import HOME

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FORK_BOMB_SHARE = 4
"""A kernel whose processes exceed this fraction of its limit is treated as a fork bomb."""
_READ_BYTES = 1 << 20  # of one file of /proc: 20,000 locks
_LISTENS = 1 << 16  # __SO_ACCEPTCON of linux/net.h
_WRITABLE = (HOME.lstrip("/"), "tmp", "dev/shm")


@dataclass(frozen=True)
class GaugeReading:
    """What a kernel takes now. Its memory lies between `least_bytes` and `most_bytes`."""

    least_bytes: int
    most_bytes: int
    cpu_s: float
    processes: int
    inodes: int
    sockets: int = 0
    locks: int = 0

    def over(self, limits: Limits) -> str:
        """Which limit this is surely above, in a word; an empty text when none."""
        if FORK_BOMB_SHARE * self.processes > limits.processes:
            return "processes"
        if self.least_bytes > limits.memory_bytes:
            return "memory"
        counted = {"files": (self.inodes, limits.inodes), "sockets": (self.sockets, limits.sockets)}
        counted["locks"] = (self.locks, limits.locks)
        return next((name for name, (number, most) in counted.items() if number > most), "")


class Gauge:
    """Reads the usage of all processes that one /proc lists; subclasses say which /proc, and which processes.

    `shared_bytes` is what the first process shares with the zygote it was forked from.
    """

    def __init__(self, proc: int, *, shared_bytes: int = 0) -> None:
        self._proc, self._shared_bytes = proc, shared_bytes

    def close(self) -> None:
        """Let go of what the gauge holds open."""
        os.close(self._proc)

    def pids(self) -> list[int]:
        """The processes that count."""
        return [int(name) for name in _names(self._proc) if name.isdigit()]

    def files(self) -> tuple[int, int]:
        """Bytes and inodes of the sandbox's own file systems, which lie in memory."""
        return 0, 0

    def sockets(self, pids: list[int]) -> int:
        """Sockets that may hold data in the system's memory."""
        raise NotImplementedError

    def locks(self, pids: list[int]) -> int:
        """Locked ranges of files. The list of a sandbox's /proc holds its own alone."""
        owners = {str(pid) for pid in pids}
        return sum(not owners.isdisjoint(line.split()[4:6]) for line in self._text("locks").splitlines())

    def read(self) -> GaugeReading:
        """GaugeReading now, from counters that no process can keep the reader waiting for.

        Forked processes share pages: the sum of all counts them too often, the largest alone too seldom.
        """
        pids = self.pids()
        stored_bytes, inodes = self.files()
        held_bytes = [self._held_bytes(pid) for pid in pids]
        return GaugeReading(
            least_bytes=stored_bytes + max(0, max(held_bytes, default=0) - self._shared_bytes),
            most_bytes=stored_bytes + max(0, sum(held_bytes) - self._shared_bytes),
            cpu_s=sum(self._cpu_s(pid) for pid in pids),
            processes=len(pids),
            inodes=inodes,
            sockets=self.sockets(pids),
            locks=self.locks(pids),
        )

    def waited_s(self) -> float:
        """Seconds that the threads there now have waited for a core while they could have run, together.

        Linux counts them for each thread in /proc/PID/task/TID/schedstat; 0 where the kernel keeps no such account.
        """
        return sum(self._waited_ns(pid) for pid in self.pids()) / 1e9

    def measure_pss(self) -> int:
        """Memory, with shared pages shared out. May wait as long as a process that forks or maps memory likes."""
        return self.files()[0] + sum(self._proportional_bytes(pid) for pid in self.pids())

    def _text(self, name: str) -> str:
        """A file of /proc, as far as `_READ_BYTES`; empty when its process is gone."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return ""
        with open(fd, "rb") as file, contextlib.suppress(OSError):
            return file.read(_READ_BYTES).decode("ascii", "replace")
        return ""

    def _stat(self, pid: int) -> list[str]:
        """Fields of /proc/PID/stat from the third on. The name in parentheses before may hold anything."""
        return _stat_fields(self._text(f"{pid}/stat"))

    def _waited_ns(self, pid: int) -> int:
        try:
            fields = [self._text(f"{pid}/task/{name}/schedstat").split() for name in _names(self._proc, f"{pid}/task")]
        except OSError:
            return 0
        return sum(int(field[1]) for field in fields if len(field) > 1)

    def _held_bytes(self, pid: int) -> int:
        return _kilobytes(self._text(f"{pid}/status"), "RssAnon", "RssShmem", "VmSwap", "VmPTE")

    def _proportional_bytes(self, pid: int) -> int:
        tables_bytes = _kilobytes(self._text(f"{pid}/status"), "VmPTE")
        return tables_bytes + _kilobytes(self._text(f"{pid}/smaps_rollup"), "Pss_Anon", "Pss_Shmem", "SwapPss")

    def _cpu_s(self, pid: int) -> float:
        return _cpu_s(self._stat(pid))


class SandboxGauge(Gauge):
    """A pid namespace, seen through the sandbox's own /proc.

    That lists its processes alone, and is held open: a process number used again cannot mislead the gauge.
    """

    def __init__(self, first_pid: int, *, shared_bytes: int = 0) -> None:
        flags = os.O_DIRECTORY | os.O_CLOEXEC
        self._root = os.open(f"/proc/{first_pid}/root", os.O_PATH | flags)
        super().__init__(os.open("proc", os.O_RDONLY | flags, dir_fd=self._root), shared_bytes=shared_bytes)
        self._file_systems = [os.open(path, os.O_RDONLY | flags, dir_fd=self._root) for path in _WRITABLE]

    def close(self) -> None:
        """Let go of the sandbox's file systems."""
        super().close()
        for fd in (self._root, *self._file_systems):
            os.close(fd)

    def files(self) -> tuple[int, int]:
        """Bytes and inodes of home, tmp and shm."""
        states = [os.fstatvfs(fd) for fd in self._file_systems]
        stored_bytes = sum((state.f_blocks - state.f_bfree) * state.f_frsize for state in states)
        return stored_bytes, sum(state.f_files - state.f_ffree for state in states)

    def sockets(self, pids: list[int]) -> int:
        """All of the network namespace: open, sent in a message, waiting to be accepted, closed with data unread."""
        return _sockets_used(self._text("1/net/sockstat"))


class FamilyGauge(Gauge):
    """A process with its descendants and its session, where there is no pid namespace to go by.

    `uid`: all processes of that user belong to it too. `folder`: what it stores there is counted.
    """

    def __init__(self, pid: int, *, shared_bytes: int = 0, uid: int | None = None, folder: str = "") -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        super().__init__(os.open("/proc", flags), shared_bytes=shared_bytes)
        self._pid, self._uid, self._folder = pid, uid, folder

    def pids(self) -> list[int]:
        """The process, its descendants, and those that share its SID (from `setsid`) or user."""
        parents, members = {}, {self._pid}
        for pid in super().pids():
            fields = self._stat(pid)
            if len(fields) > 3:
                parents[pid] = int(fields[1])
                if int(fields[3]) == self._pid or self._is_user(pid):
                    members.add(pid)
        return [pid for pid in parents if _descends(pid, parents, members)]

    def files(self) -> tuple[int, int]:
        """Bytes and inodes below the kernel's folder, as if they lay in memory."""
        return _stored(self._folder) if self._folder else (0, 0)

    def sockets(self, pids: list[int]) -> int:
        """Those open in its processes, and as many as may wait at those that listen."""
        opened = {inode for pid in pids for inode in self._socket_inodes(pid)}
        lines = (line.split() for line in self._text("self/net/unix").splitlines()[1:]) if opened else ()
        listening = sum(int(fields[3], 16) & _LISTENS > 0 for fields in lines if fields[6] in opened)
        return len(opened) + MOST_BACKLOG * listening

    def _socket_inodes(self, pid: int) -> Iterator[str]:
        with contextlib.suppress(OSError):
            for name in _names(self._proc, f"{pid}/fd"):
                with contextlib.suppress(OSError):
                    kind, _, rest = os.readlink(f"{pid}/fd/{name}", dir_fd=self._proc).partition(":[")
                    if kind == "socket":
                        yield rest.rstrip("]")

    def _is_user(self, pid: int) -> bool:
        return self._uid is not None and f"\nUid:\t{self._uid}\t" in self._text(f"{pid}/status")


def _descends(pid: int, parents: dict[int, int], members: set[int]) -> bool:
    chain = []
    while pid not in members:
        chain.append(pid)
        pid = parents.get(pid, 0)
        if pid == 0:
            return False
    members.update(chain)
    return True


def _stored(folder: str) -> tuple[int, int]:
    stored_bytes = inodes = 0
    for place, folders, files in os.walk(folder):
        for name in files:
            try:
                stored_bytes += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
        inodes += len(folders) + len(files)
    return stored_bytes, inodes


def _names(folder: int, path: str = ".") -> list[str]:
    """What is listed in `path` of an open folder, by a position of its own: a weighing, which is a fork, lists too."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(opened)
    finally:
        os.close(opened)


def process_cpu_s(pid: int) -> float:
    """CPU seconds of one process of ours, so far; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return _cpu_s(_stat_fields(stat.read()))
    except OSError:
        return 0.0


def _sockets_used(text: str) -> int:
    """The number in the first line of /proc/net/sockstat.

    >>> _sockets_used("sockets: used 12\\nTCP: inuse 4")
    12
    """
    return int(text.split()[2]) if text else 0


def _stat_fields(text: str) -> list[str]:
    return text.rpartition(")")[2].split()


def _cpu_s(fields: list[str]) -> float:
    """User and system time, of the process and of the children that it waited for."""
    return sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S if len(fields) > 15 else 0.0


def own_bytes() -> int:
    """Anonymous memory of this process: what a child shares with it at the fork."""
    with open("/proc/self/status") as status:
        return _kilobytes(status.read(), "RssAnon")


def _kilobytes(text: str, *names: str) -> int:
    """Bytes in the lines of `text` that start with one of `names`.

    >>> _kilobytes("RssAnon:  2 kB\\nRssFile:  9 kB\\nRssShmem: 1 kB", "RssAnon", "RssShmem")
    3072
    """
    lines = (line.partition(":") for line in text.splitlines())
    return sum(int(rest.split()[0]) * 1024 for name, _, rest in lines if name in names)
