"""A process of its own that answers requests: the one program of judges, references, probes and searches.

It imports a function `module:name`, calls it with arguments, and gives the parts of each request to what that returned.
A fork goes on from what its origin has run so far. Parts and answers are bytes; what they mean is the server's matter.
`worker_process` is the program that runs there.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from edl_labs.checks.plain_data import MAX_BYTES
from edl_labs.checks.worker_process import ASK, END, FORK, HEAD, NO_MEMORY, PIECE, framed
from edl_labs.errors import UsageError

TimeLeft = Callable[[], float]
_PROGRAM = "from edl_labs.checks.worker_process import serve; serve()"
_MOST = MAX_BYTES + 64  # a plain-data message with its head
_LOOK_S, _LOOK_AGAIN_S = 0.05, 1.0  # the shortest and longest wait between two looks at the time left
_FORK_S = 60.0  # a fork takes milliseconds; so long only where the machine has stopped
_GONE_S = 5.0  # from the end of its line to the end of a process


class WorkerGone(Exception):
    """A process gave no answer, and has been ended. `reason` completes "it …"; `late`: its time was over."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.late = reason, late


def wall_clock(limit_s: float) -> TimeLeft:
    """The seconds left of `limit_s` from now on."""
    end_s = time.monotonic() + limit_s
    return lambda: end_s - time.monotonic()


@dataclass
class Worker:
    """A process that answers one request at a time; `start` or `fork` makes one, `close` ends it."""

    pid: int
    _line: socket.socket
    _end: Callable[[float], int | None]
    """Ends the process, giving it some seconds to finish; its exit code, None if it had to be killed."""
    is_ready: bool = False
    is_open: bool = True
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def start(
        cls, server: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: str | Path | None = None
    ) -> Worker:
        """A new process, which imports `server` while the caller goes on; `wait` for it, or ask."""
        if not hasattr(os, "fork"):
            why = "building and grading fork processes, which this system cannot do"
            raise UsageError(
                "labs are built and graded on Linux",
                why=why,
                next="use WSL 2, or the container of the repository's Dockerfile",
            )
        # One thread, as kernels have: with more, OpenMP waits in a fork for threads that only its origin has.
        env = {**(os.environ if env is None else env), "OMP_NUM_THREADS": "1"}
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), server, *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=env,
                cwd=cwd,
            )
        return cls(process.pid, ours, partial(_end_process, process))

    @property
    def lives(self) -> bool:
        """Whether it is there to be asked: the pipe of one that ended between requests is closed."""
        ready = select.poll()
        if self.is_open:
            ready.register(self._line, select.POLLIN)
        return self.is_open and not (self.is_ready and ready.poll(0))

    def wait(self, left_s: TimeLeft) -> None:
        """Return when it has imported its server; WorkerGone where it does not."""
        if not self.is_ready:
            self._spoken(lambda: self._received(left_s))
            self.is_ready = True

    def ask(self, *parts: bytes, left_s: TimeLeft) -> bytes:
        """The answer to a request, while `left_s` says that there is time; else, or where it ended, WorkerGone."""
        return self._exchanged(ASK, parts, left_s)

    def fork(self, *, cpu_s: float = 0.0, memory_bytes: int = 0) -> Worker:
        """A copy of the process that goes on independently, within any limits given; it ends with its origin."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        limits = json.dumps({"cpu_s": cpu_s, "memory_bytes": memory_bytes}).encode()
        with theirs:
            pid = int(self._exchanged(FORK, [limits], wall_clock(_FORK_S), theirs.fileno()))
        return Worker(pid, ours, partial(self._end_fork, pid), is_ready=True)

    def close(self) -> None:
        """End the process."""
        self._finish(0.0)

    def _end_fork(self, pid: int, grace_s: float) -> int | None:
        with suppress(WorkerGone):  # a fork ends with its origin
            answer = self._exchanged(END, [json.dumps([pid, grace_s]).encode()], wall_clock(_FORK_S))
            return None if answer == b"" else int(answer)
        return None

    def _finish(self, grace_s: float) -> int | None:
        if not self.is_open:
            return None
        self.is_open = False
        code = self._end(grace_s)
        with self._lock:  # of whoever waits for an answer that will not come now
            self._line.close()
        return code

    def _exchanged(self, kind: bytes, parts: Sequence[bytes], left_s: TimeLeft, *handles: int) -> bytes:
        request = framed(b"".join(map(framed, parts)))
        if not self.is_open:
            raise WorkerGone("had already ended")

        def exchange() -> bytes:
            self.wait(left_s)
            if handles:
                socket.send_fds(self._line, [kind], handles)
            self._send(request if handles else kind + request, left_s)
            return self._received(left_s)

        return self._spoken(exchange)

    def _spoken(self, exchange: Callable[[], bytes]) -> bytes:
        """What an exchange gives; WorkerGone where it does not come to an end."""
        with self._lock:
            try:
                return exchange()
            except TimeoutError:
                self._finish(0.0)
                raise WorkerGone("took too long", late=True) from None
            except (OSError, EOFError):
                raise WorkerGone(_ending(self._finish(_GONE_S))) from None

    def _send(self, data: bytes, left_s: TimeLeft) -> None:
        left = memoryview(data)
        while left:
            self._await(select.POLLOUT, left_s)
            with suppress(BlockingIOError):
                left = left[self._line.send(left) :]

    def _received(self, left_s: TimeLeft) -> bytes:
        size = int.from_bytes(self._exactly(HEAD, left_s), "little")
        if size > _MOST:
            raise EOFError(f"an answer of {size:,} bytes")
        return self._exactly(size, left_s)

    def _exactly(self, size: int, left_s: TimeLeft) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            self._await(select.POLLIN, left_s)
            parts.append(self._line.recv(min(size, PIECE)))
            if not parts[-1]:
                raise EOFError("the process has ended")
            size -= len(parts[-1])
        return b"".join(parts)

    def _await(self, event: int, left_s: TimeLeft) -> None:
        ready = select.poll()
        ready.register(self._line, event)
        while not ready.poll(1000 * min(_LOOK_AGAIN_S, max(_LOOK_S, left_s()))):
            if left_s() <= 0:
                raise TimeoutError


def _end_process(process: subprocess.Popen[bytes], grace_s: float) -> int | None:
    try:
        return process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _ending(code: int | None) -> str:
    """How a process ended, from its exit code; None where it had not."""
    if code is None:
        return "closed its connection"
    if code == NO_MEMORY:
        return "took too much memory"
    if code == -signal.SIGKILL:
        return "was killed (SIGKILL), as happens when a machine runs out of memory"
    if code < 0:
        return f"was ended by {_signal_name(-code)}"
    return f"ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
