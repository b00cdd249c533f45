"""Kernels for students' code, forked from one zygote."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

from edl_labs.course.sandbox.kernel.client import SandboxKernel
from edl_labs.course.sandbox.kernel.errors import KernelDied
from edl_labs.course.sandbox.kernel.zmtp import Wire
from edl_labs.course.sandbox.kernel.zygote_link import Spawned, ZygoteLink
from edl_labs.course.sandbox.level import Level, best_level, level_problem
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.view import students_view
from edl_labs.errors import UsageError

USUAL_IMPORTS = ("edl_labs", "numpy", "torch", "torchvision", "matplotlib.pyplot", "ipywidgets")
_FILES_AT_MOST = 500  # their names go into one request of 128 KiB


class KernelPool:
    """A zygote that has `preload` imported, and forks sandboxed kernels from it in about a tenth of a second.

    `level` defaults to the best that works here. `gpu` shows the nodes of one leased GPU to the kernels. Threads may
    share a pool, but not a kernel.
    """

    def __init__(
        self,
        *,
        level: Level | None = None,
        limits: Limits | None = None,
        preload: Sequence[str] | None = None,
        gpu: int | None = None,
    ) -> None:
        self.level = level or best_level()
        if problem := level_problem(self.level):
            raise UsageError(
                f"level {self.level.value} does not work here", why=problem, next="edl-labs doctor --sandbox"
            )
        self.limits = limits or Limits()
        self.preload = tuple(preload) if preload is not None else _installed(USUAL_IMPORTS)
        self._gpu = gpu
        self._open: list[SandboxKernel] = []
        self._link: ZygoteLink | None = ZygoteLink(self._config())

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

    def _spawn(self, packed: _Packed, key: str, seed: int, *, deadline: float) -> Spawned:
        if self._link is None:
            raise UsageError("this pool is closed", next="make a new KernelPool")
        if self._link.gone:
            self._link = ZygoteLink(self._config())
        gate_read, gate_write = os.pipe()
        start_read, start_write = os.pipe()
        os.write(gate_write, b".")
        (shell, shell_listener), (iopub, iopub_listener) = (_connection(kind) for kind in ("DEALER", "SUB"))
        request = {"do": "spawn", "key": key, "seed": seed, "files": packed.sizes}
        given = [gate_read, start_write, shell_listener.fileno(), iopub_listener.fileno(), *packed.fds]
        try:
            answer, handles = self._link.call(request, given)
        except BaseException:
            for fd in (gate_write, start_read):
                os.close(fd)
            shell.close()
            iopub.close()
            raise
        finally:
            for fd in (gate_read, start_write, *packed.fds):
                os.close(fd)
            shell_listener.close()
            iopub_listener.close()
        spawned = Spawned(int(answer["pid"]), tuple(handles), shell, iopub, gate_write, self._link)
        _await_start(spawned, start_read, deadline)
        return spawned


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
            raise UsageError(f"{name!r} does not lie in the working folder", next="give names relative to the notebook")
    if len(files) > _FILES_AT_MOST or sum(map(len, files.values())) > limits.home_bytes // 2:
        raise UsageError(
            "too many or too large files beside the notebook", why=f"{len(files)} files", next="send fewer"
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
