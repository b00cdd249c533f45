"""The judge's connection to the zygote, and to each kernel that it forked."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from edl_labs.course.sandbox.kernel.zmtp import Wire
from edl_labs.errors import EdlError, UsageError

_MESSAGE_BYTES = 1 << 17  # the zygote's own bound, which one message on a Unix socket may have
_WARM_S = 300.0  # importing torch from a cold disk far away takes minutes
_ANSWER_S = 60.0  # a fork takes a tenth of a second; stopping waits 10 s for what does not end
# Not `-I`: the environment is our own, and only through it can the hash seed be fixed, so that grading again repeats.
_ZYGOTE = (
    "import sys; sys.path.append({root!r}); "
    "from edl_labs.course.sandbox.zygote.main import main; main(int(sys.argv[1]))"
)


@dataclass
class Spawned:
    """A kernel process with its connections, held by the judge."""

    pid: int
    handles: tuple[int, ...]
    shell: Wire
    iopub: Wire
    gate: int
    link: ZygoteLink
    closed: bool = field(default=False)

    @property
    def kernel_handle(self) -> int:
        """The kernel's pidfd."""
        return self.handles[0]

    def report(self) -> dict[str, Any]:
        """What the zygote knows of the kernel."""
        return self.link.call({"do": "usage", "pid": self.pid})[0]

    def stop(self) -> dict[str, Any]:
        """End it, close everything; its last report."""
        self.closed = True
        try:
            return self.link.call({"do": "stop", "pid": self.pid})[0]
        except EdlError:
            return {}
        finally:
            # The sandbox also ends when its gate closes, should the zygote be gone.
            for fd in (self.gate, *self.handles):
                os.close(fd)
            self.shell.close()
            self.iopub.close()


class ZygoteLink:
    """The zygote process and the socket to it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self.gone = False
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _start_zygote(theirs.fileno(), config["view"]["package_root"])
        self._socket.settimeout(_WARM_S)
        ready = self.call(config)[0]
        self._socket.settimeout(_ANSWER_S)
        if not ready.get("ready"):
            self.close()
            raise UsageError("the kernels' parent process did not start", why=str(ready.get("why", "no reason given")))

    def call(self, request: dict[str, Any], fds: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
        """The zygote's answer to `request`, and the descriptors that came with it."""
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], list(fds))
                text, given, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 4)
            except OSError:
                text, given = b"", []
        if not text:
            self.gone = True
            raise EdlError("the kernels' parent process is gone", next="grade again: finished marks are kept")
        answer = json.loads(text)
        if "error" in answer:
            raise EdlError("the sandbox refused a request", why=answer["error"], next="edl-labs doctor --sandbox")
        return answer, given

    def close(self) -> None:
        """End the zygote."""
        self._socket.close()
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
