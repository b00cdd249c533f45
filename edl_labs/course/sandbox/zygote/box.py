"""Where a kernel lives: namespaces that bubblewrap makes and a forked child enters, its folders, and a user."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from edl_labs.course.sandbox import syscalls
from edl_labs.course.sandbox.level import PROGRAM_S
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.view import ETC, HOME, TOPOLOGY, View

INSIDE_ID = 1000  # the first person's number on most systems; it means nothing outside the sandbox
HOST_NAME = "lab"
NEVER_SHOWN = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
MADE_ETC = {
    "passwd": f"student:x:{INSIDE_ID}:{INSIDE_ID}:student:{HOME}:/bin/sh\n",
    "group": f"student:x:{INSIDE_ID}:\n",
    "hosts": f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def bubblewrap_arguments(view: View, limits: Limits, *, etc: str) -> list[str]:
    """bubblewrap's arguments for one kernel that sees `view`; `etc` is a folder that `write_etc` filled.

    The order matters: later mounts lie over earlier ones, and the last two close what bubblewrap made writable.
    """
    made = [*NEVER_SHOWN, "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"]
    made += ["--cap-drop", "ALL", "--uid", str(INSIDE_ID), "--gid", str(INSIDE_ID), "--hostname", HOST_NAME]
    if "--disable-userns" in help_text():
        made += ["--disable-userns"]
    made += _system(etc)
    for path, size in _writable(limits).items():
        made += ["--size", str(size), "--tmpfs", path]
    for path in view.shown:  # after /tmp and the home: the interpreter may lie below either
        made += ["--ro-bind", path, path]
    for path in view.covered:
        made += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for node in view.devices:
        made += ["--dev-bind", node, node]
    return [*made, "--chmod", "1777", "/tmp", "--chdir", HOME, "--remount-ro", "/dev", "--remount-ro", "/"]


def _system(etc: str) -> list[str]:
    made = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        root = Path("/", name)
        if root.is_symlink():
            made += ["--symlink", f"usr/{name}", str(root)]
        elif root.is_dir():
            made += ["--ro-bind", str(root), str(root)]
    for path in (*ETC, *TOPOLOGY):
        made += ["--ro-bind-try", path, path]
    for name in MADE_ETC:
        made += ["--ro-bind", f"{etc}/{name}", f"/etc/{name}"]
    return [*made, "--proc", "/proc", "--dev", "/dev"]


def _writable(limits: Limits) -> dict[str, int]:
    return {"/dev/shm": limits.shm_bytes, "/tmp": limits.tmp_bytes, HOME: limits.home_bytes}


def write_etc(folder: str) -> None:
    """Fill `folder` with the few files of /etc that a sandbox needs: one user, one host."""
    for name, text in MADE_ETC.items():
        Path(folder, name).write_text(text)


@cache
def help_text() -> str:
    """bubblewrap's own list of options: older ones lack some."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, timeout=PROGRAM_S, check=False).stdout


_NUMBERS = count()
_KERNELS_AT_ONCE = 256  # far above the workers of one machine
_ALL_IDS = 1 << 31  # half of all numbers: who maps as many has the machine's own
# Above people and the ranges of systemd; the others lie within the 65,536 of a container.
_WIDE_BASE, _NARROW_BASE, _NARROW_IDS = 1_000_000_000, 20_000, 40_000


@dataclass(frozen=True)
class Place:
    """A kernel's folders; `folder` holds them where they lie on the host, and `uid` is a user of the kernel's own."""

    home: str
    tmp: str
    folder: str = ""
    uid: int | None = None

    @staticmethod
    def in_sandbox() -> Place:
        """The sandbox's own folders."""
        return Place(HOME, "/tmp")

    @staticmethod
    def on_host(scratch: str, *, own_user: bool) -> Place:
        """New folders below `scratch`, for this process's user or for one that no other process has."""
        folder = tempfile.mkdtemp(dir=scratch)
        place = Place(f"{folder}/home", f"{folder}/tmp", folder, _unused_uid() if own_user else None)
        for path in (place.home, place.tmp):
            os.mkdir(path, 0o700)
        if place.uid is not None:
            for path in (folder, place.home, place.tmp):
                os.chown(path, place.uid, place.uid)
        return place

    def remove(self) -> None:
        """Delete the folders, and what the kernel's user left in shared memory."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.uid is not None:
            for path in Path("/dev/shm").iterdir():
                with contextlib.suppress(OSError):
                    if path.lstat().st_uid == self.uid:
                        path.unlink()


def _unused_uid() -> int:
    """A number that no account and no other kernel has: from this process's own number where ids are plenty."""
    number = os.getpid() * _KERNELS_AT_ONCE + next(_NUMBERS) % _KERNELS_AT_ONCE
    mapped = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return _WIDE_BASE + number if mapped > _ALL_IDS else _NARROW_BASE + number % _NARROW_IDS


_MADE_S = 20.0  # bubblewrap takes some 20 ms, and seconds on a machine that is full
_EXIT_FAILED = 70  # EX_SOFTWARE of sysexits.h


@dataclass(frozen=True)
class Box:
    """Namespaces without a student in them: their first process, and a descriptor of it."""

    first_pid: int
    pidfd: int

    @staticmethod
    def start(arguments: list[str], *, gate: int) -> Box:
        """Namespaces that bubblewrap makes with `arguments`. They end when every writer of the pipe `gate` is gone.

        What runs in them is `cat`, reading `gate`: its end is seen whatever happens to the judge, while bubblewrap's
        own --die-with-parent loses a race with a parent that dies early. The judge has put one byte into the pipe;
        its echo says that all mounts are made, which --info-fd does not.
        """
        info_read, info_write = os.pipe()
        echo_read, echo_write = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, gate, 0), (os.POSIX_SPAWN_DUP2, echo_write, 1)]
        os.set_inheritable(info_write, True)
        command = ["bwrap", "--info-fd", str(info_write), *arguments, "cat"]
        try:
            os.posix_spawnp("bwrap", command, {"PATH": os.defpath}, file_actions=actions, setsid=True)
            os.close(info_write)
            os.close(echo_write)
            deadline = time.monotonic() + _MADE_S
            first_pid = _child_pid(info_read, deadline)
            pidfd = os.pidfd_open(first_pid)
            if not _read(echo_read, deadline):
                os.close(pidfd)
                raise RuntimeError("bubblewrap ended before the sandbox was created")
        finally:
            os.close(info_read)
            os.close(echo_read)
        return Box(first_pid, pidfd)

    def end(self) -> None:
        """Kill the first process, and with it, by the system's hand, all others."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


def enter(box: Box) -> int:
    """Fork a child inside `box`: its process number here, 0 in the child. The child's parent is the caller.

    Two forks: a process that joins a pid namespace stays outside, only its children are in.
    """
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        return _enter_and_fork(box, writing)
    os.close(writing)
    try:
        answer = _read(reading, time.monotonic() + _MADE_S)
    finally:
        os.close(reading)
    # The middle process ends by itself, and its end, slow where much memory is mapped, is not waited for.
    if not answer.isdigit():
        box.end()
        os.close(box.pidfd)
        raise RuntimeError(f"the sandbox could not be entered: {answer.decode(errors='replace') or 'no reason given'}")
    return int(answer)


def _enter_and_fork(box: Box, writing: int) -> int:
    try:
        _enter_narrowed(box)
        pid = os.fork()
    except BaseException as error:
        os.write(writing, str(error).encode() or b"unknown")
        os._exit(_EXIT_FAILED)
    if pid:
        os.write(writing, str(pid).encode())
        os._exit(0)
    return 0


# TCP buffers grow to megabytes each where nothing bounds them: as small as those of other sockets, for each direction.
_NETWORK = {"ipv4/tcp_rmem": "4096 65536 131072", "ipv4/tcp_wmem": "4096 16384 131072", "core/somaxconn": "128"}


def _enter_narrowed(box: Box) -> None:
    """Join the namespaces, and bound the network's buffers on the way.

    That takes the rights of the user namespace that made the network's, which is outside the one that students get.
    """
    network = os.open(f"/proc/{box.first_pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    syscalls.setns(fcntl.ioctl(network, syscalls.NS_GET_USERNS), syscalls.NEWUSER)
    syscalls.setns(network, syscalls.NEWNET)
    for name, value in _NETWORK.items():
        with contextlib.suppress(OSError):  # a container's /proc/sys that is read-only: `doctor --sandbox` tries it
            Path("/proc/sys/net", name).write_text(value)
    syscalls.setns(box.pidfd, syscalls.SANDBOX_NAMESPACES & ~(syscalls.NEWUSER | syscalls.NEWNET))
    try:
        syscalls.setns(box.pidfd, syscalls.NEWUSER)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: it is the same one, since bubblewrap made only one
            raise


def _child_pid(fd: int, deadline: float) -> int:
    """The number in bubblewrap's --info-fd, which may come in pieces."""
    text = b""
    while b"}" not in text:
        piece = _read(fd, deadline)
        if not piece:
            raise RuntimeError("bubblewrap ended before it created namespaces")
        text += piece
    return int(json.loads(text)["child-pid"])


def _read(fd: int, deadline: float) -> bytes:
    readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
    return os.read(fd, 4096) if readable else b""
