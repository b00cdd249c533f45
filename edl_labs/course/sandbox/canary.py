"""What attempts to escape aim at: harmless targets whose harm can be seen."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from edl_labs.course.sandbox.kernel.client import SandboxKernel
from edl_labs.course.sandbox.kernel.pool import KernelPool

_HEARD_S = 0.3  # a packet to this machine arrives in far below a millisecond
_ALIVE_S = 20.0  # milliseconds, or seconds while the machine clears away a fork bomb
_GONE_S = 5.0  # milliseconds as well; a daemon that got away sleeps ten minutes


class Canary:
    """A secret file, a folder anyone may write to, listening sockets, a process, and a sibling kernel."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self.paths = [str(path) for path in paths]
        self.secret, self.marker, self.daemon = (f"edl-{word}-{secrets.token_hex(8)}" for word in ("s", "m", "d"))
        self._folder = Path(tempfile.mkdtemp(prefix="edl-canary-"))
        self._folder.chmod(0o777)
        (self._folder / "secret").write_text(self.secret)
        self._tcp, self._udp, self._abstract = socket.socket(), socket.socket(type=socket.SOCK_DGRAM), _unix()
        for channel in (self._tcp, self._udp):
            channel.bind(("", 0))
        self._tcp.listen()
        self._abstract.bind("\0" + self.marker)
        self._abstract.listen()
        self._process = subprocess.Popen([self.marker, "600"], executable=shutil.which("sleep"))
        self._sibling: SandboxKernel | None = None
        self._pool: KernelPool | None = None

    def __enter__(self) -> Canary:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        for channel in (self._tcp, self._udp, self._abstract):
            channel.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def watch(self, pool: KernelPool) -> None:
        """Have a sibling from `pool` that must survive what others do."""
        self._pool, self._sibling = pool, pool.kernel()

    def places(self) -> dict[str, Any]:
        """Where the targets are, as an attempt gets them."""
        return {
            "paths": self.paths,
            "secret_file": str(self._folder / "secret"),
            "drop_file": str(self._folder / "drop"),
            "hosts": ["127.0.0.1", *_own_addresses()],
            "tcp_port": self._tcp.getsockname()[1],
            "udp_port": self._udp.getsockname()[1],
            "abstract": self.marker,
            "pids": [self._process.pid, *([self._sibling.pid] if self._sibling else [])],
            "marker": self.marker,
            "daemon": self.daemon,
        }

    def secret_in(self, seen: str) -> bool:
        """Whether what came back holds the secret file's text."""
        return self.secret in seen

    def marker_in(self, seen: str) -> bool:
        """Whether what came back shows the canary process."""
        return self.marker in seen

    def dropped(self, _seen: str) -> bool:
        """Whether a file appeared in the open folder."""
        return (self._folder / "drop").exists()

    def heard_tcp(self, _seen: str) -> bool:
        """Whether a connection arrived."""
        return _readable(self._tcp)

    def heard_udp(self, _seen: str) -> bool:
        """Whether a datagram arrived."""
        return _readable(self._udp)

    def lost_a_process(self, _seen: str) -> bool:
        """Whether the canary process or the sibling kernel is gone."""
        return self._process.poll() is not None or not self._sibling_answers()

    def another_kernel_fails(self, _seen: str) -> bool:
        """Whether the pool can no longer make a kernel that works."""
        if self._pool is None:
            return True
        with contextlib.suppress(Exception), self._pool.kernel() as kernel:
            return not kernel.run("1", timeout_s=_ALIVE_S).ok or not self._sibling_answers()
        return True

    def left_daemon(self, _seen: str) -> bool:
        """Whether a process of that name stays. The system takes a moment to end what a kernel leaves behind."""
        deadline = time.monotonic() + _GONE_S
        while self._daemon_runs():
            if time.monotonic() > deadline:
                return True
            time.sleep(0.05)
        return False

    def _daemon_runs(self) -> bool:
        return any(self.daemon in _command_line(pid) for pid in os.listdir("/proc") if pid.isdigit())

    def _sibling_answers(self) -> bool:
        with contextlib.suppress(Exception):
            return self._sibling is not None and self._sibling.run("1", timeout_s=_ALIVE_S).ok
        return False


def _unix() -> socket.socket:
    return socket.socket(socket.AF_UNIX)


def _readable(channel: socket.socket) -> bool:
    readable, _, _ = select.select([channel], [], [], _HEARD_S)
    return bool(readable)


def _own_addresses() -> list[str]:
    """This machine's address on the way to the world; connecting a datagram socket sends nothing."""
    with socket.socket(type=socket.SOCK_DGRAM) as channel, contextlib.suppress(OSError):
        channel.connect(("192.0.2.1", 9))
        return [channel.getsockname()[0]]
    return []


def _command_line(pid: str) -> str:
    try:
        return Path("/proc", pid, "cmdline").read_text(errors="replace")
    except OSError:
        return ""
