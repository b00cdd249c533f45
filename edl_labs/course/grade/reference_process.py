"""The solution in a process of the judge, which answers calls from students' kernels as plain data.

A student's kernel never holds text of the solution: what stands in there for a wrong function sends its arguments here.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.reference_calls import answered, stopped
from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.judge_process import ComputingTime, received, send
from edl_labs.course.grade.reference import lean_solution
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.kernel.spawned import OUTER_BOUND, Allowance, Taken
from edl_labs.course.sandbox.limits import DEFAULTS, Limits
from edl_labs.device import usable_cores

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
        if hasattr(assignment.exercise(name).spec, "stand_in"):
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
    _process: subprocess.Popen[bytes] | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._process = self._folder = None

    def call(self, request: bytes, *, left_s: Callable[[], float]) -> bytes:
        """The answer to one call; OSError, EOFError or TimeoutError, and an end of the process, where there is none."""
        try:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            send(process.stdin, request)
            return received(process.stdout, left_s)
        except (OSError, EOFError, TimeoutError):
            self.close()
            raise

    def start(self) -> None:
        """Have it ready, so that no call waits for what the solution imports."""
        self._started()

    def computed_s(self) -> float:
        """CPU seconds of the process so far; 0 where none runs."""
        return 0.0 if self._process is None else process_cpu_s(self._process.pid)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="edl-")
        for name, content in self.assignment.files.items():
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "edl_labs.course.grade.reference_process", str(self.limits.judge_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env={**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        cells = [cell.runs_as for cell in lean_solution(self.assignment).cells if cell.runs]
        send(self._process.stdin, plain_data.encode(cells))
        received(self._process.stdout, ComputingTime(self._process.pid, _START_S))
        return self._process


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
        limits, names = self.process.limits, _called(request)
        self.calls += len(names)
        self.sent_bytes += len(request)
        self.over = self.over or self.calls > limits.calls or self.sent_bytes > limits.calls_bytes
        if self.over or not self.allowed.issuperset(names):
            return stopped(request)
        try:
            self.process.start()
            if self._began_cpu_s is None:
                self._began_cpu_s = self.process.computed_s()
            began_s = self.clock()
            answer = self.process.call(request, left_s=lambda: self._left_s(self.spent_s + self.clock() - began_s))
        except (OSError, EOFError, TimeoutError):
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
        now = Taken(wall_s, cpu_s, waited_s=wall_s - cpu_s)
        return Allowance(own_s, OUTER_BOUND * own_s, Taken(0.0), usable_cores()).left_s(now)


def _called(request: bytes) -> list[str]:
    """The functions that a request calls; a name that no function has for bytes that are no request."""
    try:
        return [str(name) for name, _ in plain_data.decode(request)["calls"]]
    except Exception:
        return [""]


def _serve(memory_bytes: int) -> None:
    """The process: the solution's cells in, then calls, one answer each."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    gc.disable()  # what is imported stays, and looking for garbage takes half of the time
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for source in plain_data.decode(requests.read(int.from_bytes(requests.read(8), "little"))):
        # What one cell lacks here, a magic or a display, is not what others define.
        with contextlib.suppress(Exception):
            exec(compile(source, "<solution>", "exec"), namespace)
    gc.freeze()
    gc.enable()
    send(answers, b"ready")
    functions: Mapping[str, Callable[..., Any]] = {name: one for name, one in namespace.items() if callable(one)}
    # What importing took is not the calls'.
    import resource  # of POSIX alone, as is this process; who starts it may be elsewhere

    bound = memory_bytes + _mapped_bytes()
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    while head := requests.read(8):
        send(answers, answered(requests.read(int.from_bytes(head, "little")), functions))


def _mapped_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
