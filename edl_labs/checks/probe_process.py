"""A probe in a second process: code cells go in, the given halves of cases and evidence travel as bytes."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.spec import Case, given_halves
from edl_labs.checks.worker import Worker, WorkerGone, wall_clock
from edl_labs.checks.worker_process import Server
from edl_labs.errors import EdlError, PlainDataError

_FORK_BYTES = 4 << 30  # as grading gives a kernel (3 GiB), with what torch maps privately
_SERVER = "edl_labs.checks.probe_process:probing"
Cell = tuple[str, str]
Records = list[dict[str, Any]]


class ProbeDied(EdlError):
    """The second process ended or did not answer in time."""


class ProbeProcess:
    """A Python process of its own that ran `sources` (label, code) in one namespace and collects evidence there.

    `error` says which cell failed first, as text, or is None. Use it as a context manager.
    """

    def __init__(
        self, sources: Iterable[Cell], *, exercises_folder: Path | None = None, timeout_s: float = 120.0
    ) -> None:
        self._sources, self._timeout_s = [list(pair) for pair in sources], timeout_s
        env = dict(os.environ, PYTHONWARNINGS="ignore", MPLBACKEND="agg")
        if exercises_folder is not None:
            env["EDL_LABS_EXERCISES"] = str(exercises_folder)
        self._start: Callable[[], Worker] = lambda: Worker.start(_SERVER, env=env)
        self.error: str | None = None

    def __enter__(self) -> ProbeProcess:
        with _death_told(self._timeout_s):
            self._worker = self._start()
        found = self._ask({"run": self._sources}, self._timeout_s)["error"]
        self.error = self.error or found
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def fork(
        self, sources: Iterable[Cell], *, timeout_s: float = 120.0, cpu_s: float = 0.0, memory_bytes: int = 0
    ) -> ProbeProcess:
        """One that goes on from here with `sources`, in a process of its own; each thread may have one.

        Its `error` is of the first cell that failed, here or there. ProbeDied where they take longer than `timeout_s`.
        """
        fork = ProbeProcess(sources, timeout_s=timeout_s)
        fork._start, fork.error = lambda: self._worker.fork(cpu_s=cpu_s, memory_bytes=memory_bytes), self.error
        return fork

    def collect(
        self, exercise: str, cases: list[Case], *, timeout_s: float = 60.0, references: Iterable[Cell] = ()
    ) -> Records:
        """The records of `collect` for one exercise. `references` is code whose names stand in for the notebook's."""
        request = {
            "collect": exercise,
            "givens": given_halves(cases),
            "references": [list(pair) for pair in references],
        }
        return self._ask(request, timeout_s)["records"]

    def collect_each(
        self, exercise: str, cases: list[Case], *, changed: Iterable[Iterable[Cell]], cpu_s: float, wall_s: float
    ) -> list[Records | None] | None:
        """The records after each group of cells in `changed`, all in one fork; None for a group with a cell that fails.

        Whatever they do ends with the fork. None where it died, or took more CPU time or time than it may.
        """
        self._ask({"find": exercise}, self._timeout_s)  # imports the lab's exercises once, not in each fork
        groups = [[list(pair) for pair in cells] for cells in changed]
        try:
            with self.fork([], cpu_s=cpu_s, memory_bytes=_FORK_BYTES) as fork:
                request = {"collect": exercise, "givens": given_halves(cases), "changed": groups}
                return fork._ask(request, wall_s)["each"]
        except ProbeDied:
            return None

    def _ask(self, request: dict[str, Any], timeout_s: float) -> Any:
        with _death_told(timeout_s):
            return plain_data.decode(self._worker.ask(plain_data.encode(request), left_s=wall_clock(timeout_s)))


@contextmanager
def _death_told(timeout_s: float) -> Iterator[None]:
    """ProbeDied where the process gives no answer, or one that is none."""
    try:
        yield
    except (WorkerGone, PlainDataError) as error:
        is_late = isinstance(error, WorkerGone) and error.late
        raise ProbeDied(
            "the process that runs the code gave no answer" + (f" within {timeout_s:g} s" if is_late else ""),
            why=f"it {error.reason}" if isinstance(error, WorkerGone) else str(error),
            next="look for an endless loop, os._exit or a crash in the code",
        ) from None


def probing() -> Server:
    """What answers in the process."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return lambda parts: plain_data.encode(_answer(plain_data.decode(parts[0]), namespace))


def _answer(request: dict[str, Any], namespace: dict[str, Any]) -> Any:
    from edl_labs.checks.lab_exercises import find

    if "run" in request:
        return {"error": _run_all(request["run"], namespace, keep_going=True)}
    if "find" in request:
        return {"found": find(request["find"]).name}
    if "changed" in request:
        return {"each": [_collected_after(cells, request, namespace) for cells in request["changed"]]}
    return {"records": _collected(request, namespace)}


def _collected_after(cells: list[list[str]], request: dict[str, Any], namespace: dict[str, Any]) -> Records | None:
    failed = _run_all(cells, namespace, keep_going=False)
    return None if failed else _collected(request, namespace)


def _collected(request: dict[str, Any], namespace: dict[str, Any]) -> Records:
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.lab_exercises import find

    references: dict[str, Any] = {}
    if request.get("references"):
        own = dict(namespace)
        _run_all(request["references"], own, keep_going=True)
        references = {k: v for k, v in own.items() if k not in namespace or v is not namespace[k]}
    return collect(find(request["collect"]), namespace, request["givens"], references=references)


def _run_all(cells: list[list[str]], namespace: dict[str, Any], *, keep_going: bool) -> str | None:
    """Which cell failed first, as text."""
    first = None
    for label, code in cells:
        try:
            run_cell(label, code, namespace)
        except BaseException as error:
            first = first or f"{label}: {type(error).__name__}: {error}"[:2000]
            if not keep_going:
                break
    return first


def run_cell(label: str, code: str, namespace: dict[str, Any]) -> None:
    """Run a cell, whose text can be read afterwards as in a notebook: kernels keep the source of their function."""
    name = f"<{label}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    exec(compile(code, name, "exec"), namespace)
