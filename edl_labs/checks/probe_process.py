"""A probe in a second process: code cells go in, cases and evidence travel as plain-data bytes."""

from __future__ import annotations

import contextlib
import io
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from edl_labs.checks import plain_data
from edl_labs.errors import EdlError, PlainDataError

_APART_BYTES = 4 << 30  # as grading gives a kernel (3 GiB), with what torch maps privately
_PR_SET_PDEATHSIG = 1  # Linux's prctl.h


class ProbeDied(EdlError):
    """The second process ended or did not answer in time."""


class Worker:
    """A Python process of its own that ran `sources` (label, code) in one namespace and collects evidence there.

    `error` says which cell failed first, as text, or is None. Use it as a context manager.
    """

    def __init__(
        self,
        sources: Iterable[tuple[str, str]],
        *,
        exercises_folder: Path | None = None,
        timeout_s: float = 120.0,
        keep_going: bool = True,
    ) -> None:
        self._sources = [list(pair) for pair in sources]
        self._folder, self._timeout_s, self._keep_going = exercises_folder, timeout_s, keep_going
        self.error: str | None = None

    def __enter__(self) -> Worker:
        self._process = self._started()
        request = {"run": self._sources, "keep_going": self._keep_going}
        self.error = self._ask(request, self._timeout_s)["error"]
        return self

    def _started(self) -> Any:
        env = dict(os.environ, PYTHONWARNINGS="ignore", MPLBACKEND="agg")
        if self._folder is not None:
            env["EDL_LABS_EXERCISES"] = str(self._folder)
        return subprocess.Popen(
            [sys.executable, "-m", "edl_labs.checks.probe_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def collect(
        self,
        exercise: str,
        cases: list[Any],
        *,
        timeout_s: float = 60.0,
        references: Iterable[tuple[str, str]] = (),
    ) -> list[dict[str, Any]]:
        """The records of `collect` for one exercise. `references` is code whose names stand in for the notebook's."""
        request = {"collect": exercise, "cases": cases, "references": [list(pair) for pair in references]}
        return self._ask(request, timeout_s)["records"]

    def collect_apart(
        self, exercise: str, cases: list[Any], *, changed: Iterable[tuple[str, str]] = (), cpu_s: float, wall_s: float
    ) -> list[dict[str, Any]] | None:
        """The records of `collect` in a fork of the process that runs the cells of `changed` first.

        Whatever they do ends with the fork. None where a cell failed, or where the fork died or took more CPU time or
        time than it may.
        """
        request = {"collect": exercise, "cases": cases, "references": []}
        apart = {"changed": [list(pair) for pair in changed], "cpu_s": cpu_s, "wall_s": wall_s}
        answer = self._ask({**request, "apart": apart}, wall_s + self._timeout_s)
        return answer["records"]

    def collect_each(
        self, exercise: str, cases: list[Any], *, changed: Iterable[tuple[str, str]], cpu_s: float, wall_s: float
    ) -> list[list[dict[str, Any]] | None] | None:
        """The records after each cell of `changed`, all in one fork as `collect_apart` makes it; None where it died."""
        request = {"collect": exercise, "cases": cases, "references": []}
        apart = {"changed": [list(pair) for pair in changed], "cpu_s": cpu_s, "wall_s": wall_s, "each": True}
        return self._ask({**request, "apart": apart}, wall_s + self._timeout_s)["records"]

    def _ask(self, request: dict[str, Any], timeout_s: float) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(timeout_s, self._process.kill)
        timer.start()
        try:
            _write(self._process.stdin, request)
            answer = _read(self._process.stdout)
        except (OSError, EOFError, PlainDataError) as error:
            raise ProbeDied(
                f"the process that runs the code ended without an answer within {timeout_s:g} s",
                why=str(error),
                next="look for an endless loop, os._exit or a crash in the code",
            ) from None
        finally:
            timer.cancel()
        return answer


def _write(pipe: IO[bytes], value: Any) -> None:
    message = plain_data.encode(value)
    pipe.write(len(message).to_bytes(8, "little") + message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("the pipe closed")
    size = int.from_bytes(head, "little")
    if size > plain_data.MAX_BYTES + 64:
        raise PlainDataError(f"an answer of {size:,} bytes")
    return plain_data.decode(pipe.read(size))


def _serve() -> None:
    """The second process: descriptors 0 and 1 carry messages, so code sees other ones."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    _answer_all(requests, answers, {"__name__": "__main__"})


def _answer_all(requests: IO[bytes], answers: IO[bytes], namespace: dict[str, Any]) -> None:
    """Answer until whoever asks hangs up."""
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        if "fork" in request:
            answer = {"pid": _fork(request["fork"], namespace, own=(requests, answers))}
        elif "apart" in request:
            answer = _answer_apart(request, namespace, requests)
        else:
            answer = _answer(request, namespace)
        _write(answers, answer)


def _answer(request: dict[str, Any], namespace: dict[str, Any]) -> Any:
    if "run" in request:
        return {"error": _run_all(request["run"], namespace, keep_going=request["keep_going"])}
    if "end" in request:
        with contextlib.suppress(ProcessLookupError):
            os.kill(request["end"], signal.SIGKILL)
        return {"ended": os.waitpid(request["end"], 0)[0]}
    return _collected(request, namespace)


def _fork(address: str, namespace: dict[str, Any], *, own: tuple[IO[bytes], IO[bytes]]) -> int:
    """A fork that answers at the other end of the Unix socket `address`, in what has run here so far; its number.

    It ends with this process, which waits for it when it is told to `end` it.
    """
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _tie(parent)
        for pipe in own:
            pipe.close()
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(address)
            with end.makefile("rb") as requests, end.makefile("wb") as answers:
                _answer_all(requests, answers, namespace)
    finally:
        os._exit(0)


def _answer_apart(request: dict[str, Any], namespace: dict[str, Any], asker: IO[bytes]) -> Any:
    """The answer of a fork that ran the changed cells; no records where one failed, or it died or took too long.

    The fork ends with this process, and when nobody is left at the other end of `asker`.
    """
    from edl_labs.checks.lab_exercises import find

    find(request["collect"])  # imports the lab's exercises once, not in each fork
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            _limit(request["apart"], parent=parent)
            with os.fdopen(writing, "wb") as pipe:
                _write(pipe, _collected_after(request["apart"], request, namespace))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        try:
            return _read_within(pipe, asker, request["apart"]["wall_s"])
        except (EOFError, PlainDataError):
            return {"records": None}
        finally:
            for end in (os.killpg, os.kill):  # the fork itself too, which may not lead its group yet
                with contextlib.suppress(ProcessLookupError):
                    end(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _read_within(pipe: IO[bytes], asker: IO[bytes], limit_s: float) -> Any:
    """The message of a fork; EOFError where it is not whole after `limit_s`, or `asker` hangs up before."""
    end_s = time.monotonic() + limit_s
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    waiting.register(asker, 0)  # POLLHUP is always told
    message, size = bytearray(), 8
    while len(message) < size:
        events = dict(waiting.poll(max(0.0, 1000 * (end_s - time.monotonic()))))
        piece = os.read(pipe.fileno(), 1 << 20) if pipe.fileno() in events and asker.fileno() not in events else b""
        if not piece:
            raise EOFError("the fork ended, took too long or has no one to answer")
        message += piece
        if size == 8 <= len(message):
            size += int.from_bytes(message[:8], "little")
    return _read(io.BytesIO(message))


def _collected_after(apart: dict[str, Any], request: dict[str, Any], namespace: dict[str, Any]) -> Any:
    """What is collected after the changed cells: once after all of them, or after each."""

    def records(cells: list[list[str]]) -> Any:
        failed = _run_all(cells, namespace, keep_going=False)
        return None if failed else _collected(request, namespace)["records"]

    cells = apart["changed"]
    return {"records": [records([cell]) for cell in cells] if apart.get("each") else records(cells)}


def _limit(apart: dict[str, Any], *, parent: int) -> None:
    """End this process, and what it starts, when it computes too much or fills the memory, and with its parent.

    Its time is its parent's to watch.
    """
    import resource

    _tie(parent)
    cpu_s = math.ceil(apart["cpu_s"])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_DATA, (_APART_BYTES, _APART_BYTES))


def _tie(parent: int) -> None:
    """In a fork: a group of its own, the end with its parent, and no more threads than it has."""
    import ctypes

    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before it could be tied to this process
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # a fork has none of the threads that its parent's pool had


def _collected(request: dict[str, Any], namespace: dict[str, Any]) -> Any:
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.lab_exercises import find

    references: dict[str, Any] = {}
    if request["references"]:
        own = dict(namespace)
        _run_all(request["references"], own, keep_going=True)
        references = {k: v for k, v in own.items() if k not in namespace or v is not namespace[k]}
    records = collect(find(request["collect"]), namespace, request["cases"], references=references)
    return {"records": records}


def _run_all(cells: list[list[str]], namespace: dict[str, Any], *, keep_going: bool) -> str | None:
    import linecache

    first = None
    for label, code in cells:
        name = f"<{label}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            exec(compile(code, name, "exec"), namespace)
        except BaseException as error:
            first = first or f"{label}: {type(error).__name__}: {error}"[:2000]
            if not keep_going:
                break
    return first


if __name__ == "__main__":
    _serve()
