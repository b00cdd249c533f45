"""Many probes that begin with the same cells: these run once, in one process, and each probe is a fork of it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from edl_labs.checks.probe_process import ProbeDied, Worker

_START_S = 60.0  # a fork takes milliseconds; so long only where the machine has stopped


class Forker:
    """A process in which `sources` (label, code) ran; `fork` gives workers that go on from there, each on its own.

    Threads may share it. Use it as a context manager, and its workers within.
    """

    def __init__(self, sources: Iterable[tuple[str, str]], *, exercises_folder: Path | None = None) -> None:
        self._origin = Worker(sources, exercises_folder=exercises_folder)
        self._lock = threading.Lock()

    def __enter__(self) -> Forker:
        self._folder = tempfile.mkdtemp(prefix="edl-")
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(os.path.join(self._folder, "forks"))
            self._socket.listen()
            self._socket.settimeout(_START_S)
            self._origin.__enter__()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._origin.__exit__()
        self._close()

    def _close(self) -> None:
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def fork(self, sources: Iterable[tuple[str, str]], *, timeout_s: float = 120.0) -> Worker:
        """A worker that has run the shared cells and then `sources`; its `error` is of the first that failed.

        ProbeDied where they take longer than `timeout_s`.
        """
        return _Forked(self, sources, timeout_s)

    @property
    def error(self) -> str | None:
        """Which of the shared cells failed first, as text."""
        return self._origin.error

    def _forked(self) -> _Process:
        with self._lock:
            pid = self._origin._ask({"fork": self._socket.getsockname()}, _START_S)["pid"]
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                raise ProbeDied("a fork of the process that runs the code did not start") from None
        return _Process(self, pid, connection)

    def _end(self, pid: int) -> None:
        with self._lock, suppress(ProbeDied):
            self._origin._ask({"end": pid}, _START_S)


class _Process:
    """A fork, as a worker uses its process: two pipes, and ways to end it."""

    def __init__(self, forker: Forker, pid: int, connection: socket.socket) -> None:
        self._forker, self._pid = forker, pid
        self.stdin: IO[bytes] = connection.makefile("wb")
        self.stdout: IO[bytes] = connection.makefile("rb")
        connection.close()  # it stays open while its two files are

    def kill(self) -> None:
        """End it; its number stays taken until `wait`."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> None:
        """Return when it has ended."""
        self._forker._end(self._pid)


class _Forked(Worker):
    def __init__(self, forker: Forker, sources: Iterable[tuple[str, str]], timeout_s: float) -> None:
        super().__init__(sources, timeout_s=timeout_s)
        self._forker = forker

    def _started(self) -> _Process:
        return self._forker._forked()

    def __enter__(self) -> Worker:
        super().__enter__()
        self.error = self._forker.error or self.error
        return self
