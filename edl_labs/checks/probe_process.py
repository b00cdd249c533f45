"""A probe in a second process: code cells go in, cases and evidence travel as plain-data bytes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from edl_labs.checks import plain_data
from edl_labs.errors import EdlError, PlainDataError


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
        env = dict(os.environ, PYTHONWARNINGS="ignore", MPLBACKEND="agg")
        if self._folder is not None:
            env["EDL_LABS_EXERCISES"] = str(self._folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edl_labs.checks.probe_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        request = {"run": self._sources, "keep_going": self._keep_going}
        self.error = self._ask(request, self._timeout_s)["error"]
        return self

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
    namespace: dict[str, Any] = {"__name__": "__main__"}
    while True:
        try:
            request = _read(requests)
        except EOFError:
            return
        _write(answers, _answer(request, namespace))


def _answer(request: dict[str, Any], namespace: dict[str, Any]) -> Any:
    if "run" in request:
        return {"error": _run_all(request["run"], namespace, keep_going=request["keep_going"])}
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
