"""The solution in a process of the judge, which answers calls from students' kernels as plain data.

A student's kernel never holds text of the solution: what stands in there for a wrong function sends its arguments here.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.reference_calls import answered, stopped
from edl_labs.checks.spec import defines
from edl_labs.checks.worker import Worker, WorkerGone
from edl_labs.checks.worker_process import Server, limit_memory
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.computing_time import ComputingTime
from edl_labs.course.grade.reference import declared_solution
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.kernel.spawned import OUTER_BOUND, ResourceUse, TimeBudget
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.device import usable_cores

_SERVER = "edl_labs.course.grade.reference_process:referring"
_START_S = 120.0  # importing torch takes seconds where several processes start at once
_DEFINED = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class StandIns:
    """What takes the place of a student's wrong code: the reference's `functions`, and `objects` of these exercises."""

    functions: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


def stand_ins(assignment: Assignment, names: Iterable[str]) -> StandIns | None:
    """What can stand in for the exercises `names`; None where an object would have to travel.

    The functions are those that the release shows: the solution's helpers stay its own. A class cannot travel; an
    exercise that asks for one has `stand_in()`, which makes it of what any library gives, or nothing stands in.
    """
    functions: list[str] = []
    objects: list[str] = []
    for name in sorted(names):
        cell = assignment.by_grade_id[name]
        defined = [node for node in ast.parse(cell.source).body if isinstance(node, _DEFINED)]
        plain = [node.name for node in defined if isinstance(node, ast.FunctionDef)]
        if defines(type(assignment.exercise(name).spec), "stand_in"):
            objects.append(name)
        elif len(plain) < len(defined):
            return None
        functions += plain
    return StandIns(tuple(functions), tuple(objects))


@dataclass
class ReferenceProcess:
    """The solution's functions. It starts with the first call; one serves one thread, and is closed at the end."""

    assignment: Assignment
    limits: Limits = DEFAULTS
    _worker: Worker | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._worker = self._folder = None

    def call(self, request: bytes, *, left_s: Callable[[], float]) -> bytes:
        """The answer to one call; WorkerGone, and an end of the process, where there is none."""
        try:
            return self._started().ask(request, left_s=left_s)
        except WorkerGone:
            self.close()
            raise

    def start(self) -> None:
        """Have it ready, so that no call waits for what the solution imports."""
        self._started()

    def computed_s(self) -> float:
        """CPU seconds of the process so far; 0 where none runs."""
        return 0.0 if self._worker is None else process_cpu_s(self._worker.pid)

    def _started(self) -> Worker:
        if self._worker is not None and self._worker.lives:
            return self._worker
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="edl-")
        for name, content in self.assignment.files.items():
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        env = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(sys.path)}
        worker = self._worker = Worker.start(_SERVER, str(self.limits.judge_bytes), env=env, cwd=self._folder.name)
        cells = [cell.runs_as for cell in declared_solution(self.assignment).cells if cell.runs]
        worker.ask(plain_data.encode(cells), left_s=ComputingTime(worker.pid, _START_S))
        return worker


@dataclass
class ServedCalls:
    """The calls of one probe: as many, as large and as long as the limits allow, then none.

    Of the time, what the reference computes counts, as it does for the judge; what it waits for a core does not, up to
    `OUTER_BOUND` times as long on the clock.
    """

    process: ReferenceProcess
    allowed: frozenset[str]
    clock: Callable[[], float] = time.monotonic
    calls: int = 0
    sent_bytes: int = 0
    spent_s: float = 0.0
    over: bool = field(default=False)
    _began_cpu_s: float | None = None

    def __call__(self, request: bytes) -> bytes:
        limits = self.process.limits
        self.calls += 1
        self.sent_bytes += len(request)
        self.over = self.over or self.calls > limits.calls or self.sent_bytes > limits.calls_bytes
        if self.over or _called(request) not in self.allowed:
            return stopped(request)
        try:
            self.process.start()
            if self._began_cpu_s is None:
                self._began_cpu_s = self.process.computed_s()
            began_s = self.clock()
            answer = self.process.call(request, left_s=lambda: self._left_s(self.spent_s + self.clock() - began_s))
        except WorkerGone:
            self.over = True
            return stopped(request)
        self.spent_s += self.clock() - began_s
        self.sent_bytes += len(answer)
        return answer

    def _left_s(self, wall_s: float) -> float:
        """Seconds left, at least, when all calls together have taken `wall_s` on the clock."""
        own_s = self.process.limits.calls_s
        if wall_s < own_s:
            return own_s - wall_s
        cpu_s = self.process.computed_s() - (self._began_cpu_s or 0.0)
        now = ResourceUse(wall_s, cpu_s, waited_s=wall_s - cpu_s)
        return TimeBudget(own_s, OUTER_BOUND * own_s, ResourceUse(0.0), usable_cores()).left_s(now)


def _called(request: bytes) -> str:
    """The function that a request calls; a name that no function has for bytes that are no request."""
    try:
        return str(plain_data.decode(request)["name"])
    except Exception:
        return ""


def referring(memory_bytes: str) -> Server:
    """What answers in the process."""
    return _Solution(int(memory_bytes))


class _Solution:
    """Runs the solution's cells, which come first, then answers calls of the functions that they define."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._functions: Mapping[str, Callable[..., Any]] | None = None

    def __call__(self, parts: list[bytes]) -> bytes:
        if self._functions is not None:
            return answered(parts[0], self._functions)
        self._functions = _defined(plain_data.decode(parts[0]))
        limit_memory(self._memory_bytes, more=True)  # what importing took is not the calls'
        return b""


def _defined(cells: list[str]) -> dict[str, Callable[..., Any]]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    gc.disable()  # what is imported stays, and looking for garbage takes half of the time
    for source in cells:
        # What one cell lacks here, a magic or a display, is not what others define.
        with contextlib.suppress(Exception):
            exec(compile(source, "<solution>", "exec"), namespace)
    gc.freeze()
    gc.enable()
    return {name: one for name, one in namespace.items() if callable(one)}
