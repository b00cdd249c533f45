"""Kernels for students' code, forked from one zygote."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from edl_labs.course.sandbox.kernel.client import SandboxKernel
from edl_labs.course.sandbox.kernel.exchange import CallLine, KernelDied
from edl_labs.course.sandbox.kernel.spawned import Spawned
from edl_labs.course.sandbox.kernel.zmtp import Wire
from edl_labs.course.sandbox.level import Level, best_level, level_problem
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.view import students_view
from edl_labs.errors import EdlError, UsageError

USUAL_IMPORTS = ("edl_labs", "numpy", "torch", "torchvision", "matplotlib.pyplot", "ipywidgets")
_FILES_AT_MOST = 500  # their names go into one request of 128 KiB

_MESSAGE_BYTES = 1 << 17  # the zygote's own bound, which one message on a Unix socket may have
_WARM_S = 300.0  # importing torch from a cold disk far away takes minutes
_ANSWER_S = 60.0  # a fork takes a tenth of a second; stopping waits 10 s for what does not end
# Not `-I`: the environment is our own, and only through it can the hash seed be fixed, so that grading again repeats.
_ZYGOTE = (
    "import sys; sys.path.append({root!r}); "
    "from edl_labs.course.sandbox.zygote.main import main; main(int(sys.argv[1]))"
)


class KernelPool:
    """A zygote that has `preload` imported, and forks sandboxed kernels from it in about a tenth of a second.

    `level` defaults to the best that works here. `gpu` shows the nodes of one leased GPU to the kernels. Unless it is
    asked to `wait`, the first call that needs the zygote reports why it cannot start. Threads may share a
    pool, but not a kernel.
    """

    def __init__(
        self,
        *,
        level: Level | None = None,
        limits: Limits | None = None,
        preload: Sequence[str] | None = None,
        gpu: int | None = None,
        wait: bool = True,
    ) -> None:
        self.level = level or best_level()
        if problem := level_problem(self.level):
            raise UsageError(
                f"level {self.level.value} does not work here", why=problem, next="run edl-labs doctor --sandbox"
            )
        self.limits = limits or Limits()
        self.preload = tuple(preload) if preload is not None else _installed(USUAL_IMPORTS)
        self._gpu = gpu
        self._open: list[SandboxKernel] = []
        self._link: _ZygoteLink | None = _ZygoteLink(self._config())
        if wait:
            self._link.wait()

    def __enter__(self) -> KernelPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def kernel(self, *, files: Mapping[str, bytes] | None = None, seed: int = 0) -> SandboxKernel:
        """A fresh kernel whose working folder holds `files` (relative name to content), ready to run.

        `seed` sets the random states of random, numpy and torch, so that a notebook which sets none repeats too.
        """
        packed = _packed(files or {}, self.limits)
        session, started = _session(), time.monotonic()
        spawned = self._spawn(packed, session.key.decode(), seed, deadline=started + self.limits.start_s)
        kernel = SandboxKernel(spawned, session=session, limits=self.limits)
        try:
            kernel.greet(started + self.limits.start_s)
        except BaseException:
            kernel.close()
            raise
        self._open = [*(other for other in self._open if other.alive), kernel]
        return kernel

    def add(self, modules: Sequence[str]) -> None:
        """Import more, before the first kernel. UsageError when that cannot be, and the pool is of no use any more."""
        new = [name for name in modules if name not in self.preload]
        if new:
            said = self._running().call({"do": "import", "names": new})[0]
            if said["why"]:
                raise UsageError("the kernels' parent process cannot import a module that it needs", why=said["why"])
            self.preload += tuple(new)

    def close(self) -> None:
        """End the zygote and every kernel of this pool."""
        for kernel in self._open:
            kernel.close()
        if self._link is not None:
            self._link.close()
            self._link = None

    def _config(self) -> dict[str, Any]:
        return {
            "level": self.level.value,
            "limits": asdict(self.limits),
            "view": students_view(gpu=self._gpu).as_dict(),
            "preload": self.preload,
            "cuda": self._gpu is not None,
        }

    def _running(self) -> _ZygoteLink:
        """The link to the zygote, which has started."""
        if self._link is None:
            raise UsageError("this pool is closed", next="create a new KernelPool")
        if self._link.gone:
            self._link = _ZygoteLink(self._config())
        self._link.wait()
        return self._link

    def _spawn(self, packed: _Packed, key: str, seed: int, *, deadline: float) -> Spawned:
        link = self._running()
        gate_read, gate_write = os.pipe()
        start_read, start_write = os.pipe()
        os.write(gate_write, b".")
        (shell, shell_listener), (iopub, iopub_listener) = (_connection(kind) for kind in ("DEALER", "SUB"))
        request = {"do": "spawn", "key": key, "seed": seed, "files": packed.sizes}
        calls, callers_end = socket.socketpair()
        channels = (shell_listener.fileno(), iopub_listener.fileno(), callers_end.fileno())
        given = [gate_read, start_write, *channels, *packed.fds]
        try:
            answer, handles = link.call(request, given)
        except BaseException:
            for fd in (gate_write, start_read):
                os.close(fd)
            for ours in (shell, iopub, calls):
                ours.close()
            raise
        finally:
            for fd in (gate_read, start_write, *packed.fds):
                os.close(fd)
            for theirs in (shell_listener, iopub_listener, callers_end):
                theirs.close()
        line = CallLine(calls)
        spawned = Spawned(int(answer["pid"]), tuple(handles), shell, iopub, line, gate_write, link.call)
        _await_start(spawned, start_read, deadline)
        return spawned


class _ZygoteLink:
    """The zygote process and the socket to it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._lock, self._waiting = threading.Lock(), threading.Lock()
        self.gone = self._awaited = self._ready = False
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _start_zygote(theirs.fileno(), config["view"]["package_root"])
        self._send(config, [])

    def wait(self) -> None:
        """Wait until it has imported what it was asked to; UsageError where it could not."""
        with self._waiting:
            if self._ready:
                return
            self._awaited = True
            self._socket.settimeout(_WARM_S)
            said = self._answer()[0]
            self._socket.settimeout(_ANSWER_S)
            if not said.get("ready"):
                self.close()
                raise UsageError(
                    "the kernels' parent process did not start", why=str(said.get("why", "no reason given"))
                )
            self._ready = True

    def call(self, request: dict[str, Any], fds: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
        """The zygote's answer to `request`, and the descriptors that came with it."""
        with self._lock:
            self._send(request, fds)
            return self._answer()

    def _send(self, request: dict[str, Any], fds: Sequence[int]) -> None:
        with contextlib.suppress(OSError):  # a zygote that is gone gives no answer, which says so
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(fds))

    def _answer(self) -> tuple[dict[str, Any], list[int]]:
        try:
            text, given, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 4)
        except OSError:
            text, given = b"", []
        if not text:
            self.gone = True
            raise EdlError("the kernels' parent process has ended", next="grade again; finished marks are kept")
        answer = json.loads(text)
        if "error" in answer:
            raise EdlError("the sandbox refused a request", why=answer["error"], next="run edl-labs doctor --sandbox")
        return answer, given

    def close(self) -> None:
        """End the zygote. One that was not waited for ends as soon as its imports are done."""
        self._socket.close()
        if not self._awaited:
            threading.Thread(target=self._process.wait, daemon=True).start()
            return
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _start_zygote(fd: int, root: str) -> subprocess.Popen[bytes]:
    environment = {
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "MKL_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-s", "-P", "-c", _ZYGOTE.format(root=root), str(fd)],
        pass_fds=[fd],
        env=environment,
        cwd="/",
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if os.environ.get("EDL_ZYGOTE_STDERR") else subprocess.DEVNULL,
    )


@dataclass(frozen=True)
class _Packed:
    sizes: list[tuple[str, int]]
    fds: tuple[int, ...]


def _session() -> Any:
    from jupyter_client.session import Session

    return Session(key=secrets.token_hex(16).encode(), digest_history_size=0)


def _connection(kind: str) -> tuple[Wire, socket.socket]:
    """Our end of a connection, and the listening socket whose only visitor it is: its path is gone already."""
    folder = tempfile.mkdtemp(prefix="edl-")
    try:
        path = str(Path(folder, "s"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        visitor = socket.socket(socket.AF_UNIX)
        visitor.connect(path)
    finally:
        shutil.rmtree(folder)
    return Wire(visitor, kind=kind), listener


def _packed(files: Mapping[str, bytes], limits: Limits) -> _Packed:
    """The files as one nameless file in memory."""
    if not files:
        return _Packed([], ())
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
            raise UsageError(f"{name!r} is not in the working folder", next="use names relative to the notebook")
    if len(files) > _FILES_AT_MOST or sum(map(len, files.values())) > limits.home_bytes // 2:
        raise UsageError(
            "too many or too large files next to the notebook",
            why=f"{len(files)} files",
            next="send fewer or smaller files",
        )
    fd = os.memfd_create("files")
    with open(fd, "wb", closefd=False) as packed:
        for content in files.values():
            packed.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return _Packed([(name, len(content)) for name, content in files.items()], (fd,))


def _await_start(spawned: Spawned, start: int, deadline: float) -> None:
    """Wait for the word "ready" that a kernel sends when it is fenced in and about to serve."""
    waiting = select.poll()
    waiting.register(start, select.POLLIN)
    try:
        said = os.read(start, 4096) if waiting.poll(max(0.0, deadline - time.monotonic()) * 1000) else b"not in time"
    finally:
        os.close(start)
    if said != b"ready":
        spawned.stop()
        raise KernelDied(f"it did not start: {said.decode(errors='replace') or 'no reason given'}")


def _installed(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if find_spec(name.partition(".")[0]) is not None)
