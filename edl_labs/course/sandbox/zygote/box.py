"""A sandbox's namespaces: made by bubblewrap, entered by a forked child."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from dataclasses import dataclass

from edl_labs.course.sandbox import syscalls

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
                raise RuntimeError("bubblewrap ended before the sandbox was made")
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
        syscalls.setns(box.pidfd, syscalls.SANDBOX_NAMESPACES)
        pid = os.fork()
    except BaseException as error:
        os.write(writing, str(error).encode() or b"unknown")
        os._exit(_EXIT_FAILED)
    if pid:
        os.write(writing, str(pid).encode())
        os._exit(0)
    return 0


def _child_pid(fd: int, deadline: float) -> int:
    """The number in bubblewrap's --info-fd, which may come in pieces."""
    text = b""
    while b"}" not in text:
        piece = _read(fd, deadline)
        if not piece:
            raise RuntimeError("bubblewrap ended before it made namespaces")
        text += piece
    return int(json.loads(text)["child-pid"])


def _read(fd: int, deadline: float) -> bytes:
    readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
    return os.read(fd, 4096) if readable else b""
