"""What runs in a worker's process: it imports a server, and answers until the other end hangs up.

A request is a kind (`ASK`, `FORK` with a socket, `END` of a fork) and its framed parts in one frame; an answer is one
frame. A frame is its length, in eight bytes, little endian, and that many bytes.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Server = Callable[[list[bytes]], bytes]
ASK, FORK, END = b"a", b"f", b"e"
HEAD = 8  # bytes of a length
PIECE = 1 << 20  # bytes read at a time
NO_MEMORY = 77  # the exit code that says so; Python's own are 0 to 2 and 120
_LOOK_S = 0.05  # between two looks at a fork that is about to end
_PR_SET_PDEATHSIG = 1  # Linux's prctl.h


def framed(data: bytes) -> bytes:
    """The data with its length before it."""
    return len(data).to_bytes(HEAD, "little") + data


def serve() -> None:
    """The process: its line is a socket, so that what runs here finds nothing at descriptors 0, 1 and 2."""
    handle, server, *arguments = sys.argv[1:]
    module, _, name = server.partition(":")
    gc.disable()  # what is imported stays, and looking for garbage takes a sixth of the time
    answer: Server = getattr(importlib.import_module(module), name)(*arguments)
    gc.freeze()
    gc.enable()
    line = socket.socket(fileno=int(handle))
    line.sendall(framed(b""))
    _answer_all(line, answer)
    os._exit(0)  # threads may still run


def _answer_all(line: socket.socket, answer: Server) -> None:
    """Answer until the other end hangs up. What is started here does not hold the line."""
    line.set_inheritable(False)
    os.register_at_fork(after_in_child=line.close)
    while (asked := socket.recv_fds(line, 1, 1))[0]:
        parts = _parts(_exactly(line, int.from_bytes(_exactly(line, HEAD), "little")))
        try:
            if asked[0] == FORK:
                told = str(_fork(asked[1][0], json.loads(parts[0]), answer)).encode()
            elif asked[0] == END:
                told = _end_child(*json.loads(parts[0]))
            else:
                told = answer(parts)
            line.sendall(framed(told))
        except MemoryError:
            os._exit(NO_MEMORY)


def _exactly(line: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        parts.append(line.recv(min(size, PIECE)))
        if not parts[-1]:
            os._exit(0)  # nobody is there to answer
        size -= len(parts[-1])
    return b"".join(parts)


def _parts(body: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(body):
        end = at + HEAD + int.from_bytes(body[at : at + HEAD], "little")
        parts.append(body[at + HEAD : end])
        at = end
    return parts


def _fork(handle: int, limits: dict[str, float], answer: Server) -> int:
    """The number of a fork that answers at the other end of the socket `handle`."""
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(handle)
        return child
    try:
        _tie(parent)
        _limit(**limits)
        _answer_all(socket.socket(fileno=handle), answer)
    finally:
        os._exit(0)


def _tie(parent: int) -> None:
    """In a fork: a group of its own, the end with its parent, and no more threads than it has."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before it could be tied to this process
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # a fork has none of the threads that its parent's pool had


def _limit(*, cpu_s: float, memory_bytes: float) -> None:
    import resource  # of POSIX alone, as is this process; who starts it may be elsewhere

    if cpu_s:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(cpu_s), math.ceil(cpu_s)))
    if memory_bytes:
        limit_memory(int(memory_bytes))


def limit_memory(memory_bytes: int, *, more: bool = False) -> None:
    """Let this process, and what it starts, have no more than so many bytes of memory, or so many `more` than now."""
    import resource

    held = 0
    if more:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        held = 1024 * int(status.partition("VmData:")[2].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (held + memory_bytes, held + memory_bytes))


def _end_child(pid: int, grace_s: float) -> bytes:
    """End a fork and what it started; the exit code of one that ended by itself within the grace, else nothing."""
    end_s = time.monotonic() + grace_s
    while not (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
    for kill in (os.killpg, os.kill):  # the fork itself too, which may not lead its group yet
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return str(code).encode() if ended else b""
