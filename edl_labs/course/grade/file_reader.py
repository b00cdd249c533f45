"""Reads submitted files in a separate process, so that a hostile file can exhaust only that process.

Bytes go in, and plain data come out. Each reading is a fork that has shut itself in, of a process that has imported the
function that reads; whatever comes of it, the next reading starts afresh.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.checks.worker import Worker, WorkerGone, wall_clock
from edl_labs.checks.worker_process import Server, limit_memory
from edl_labs.course.grade.computing_time import ComputingTime
from edl_labs.course.sandbox.gauges import process_cpu_s
from edl_labs.course.sandbox.syscall_filter import close_doors

READ_CPU_S = 20.0  # two files at their limit of events take 4 s
MEMORY_BYTES = 1 << 30  # two files at their limit of events take 250 MB
_SERVER = "edl_labs.course.grade.file_reader:reading"
_START_S = 120.0  # importing numpy and the library takes a second where nothing else starts
_MORE_CPU_S = 5.0  # for the system, which ends what the clock here could not
_AGAIN = "record the files again, and hand them in unchanged"


@dataclass(frozen=True)
class Reading:
    """What was read: plain data, encoded; `{"refused": [what, why, next]}` where there is none. `cpu_s`: it took."""

    data: bytes
    cpu_s: float = 0.0


class FileReader:
    """Reads files by `function`, "module:name", which makes plain data of bytes by name. Close it at the end."""

    def __init__(self, function: str, *, cpu_s: float = READ_CPU_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._arguments, self._cpu_s = (function, str(memory_bytes)), cpu_s
        self._origin: Worker | None = None

    def __enter__(self) -> FileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its process."""
        if self._origin is not None:
            self._origin.close()

    def read(self, files: Mapping[str, bytes]) -> Reading:
        """What the files say."""
        parts = [part for name, data in files.items() for part in (name.encode(), data)]
        fork = None
        try:
            fork = self._started().fork(cpu_s=self._cpu_s + _MORE_CPU_S)
            answer = fork.ask(*parts, left_s=ComputingTime(fork.pid, self._cpu_s))
            return Reading(answer, cpu_s=process_cpu_s(fork.pid))
        except WorkerGone as gone:
            why = f"it took more than {self._cpu_s:.0f} s of CPU time" if gone.late else f"it {gone.reason}"
            return Reading(_refused(f"reading {' and '.join(files)} did not finish", why))
        finally:
            if fork is not None:
                fork.close()

    def _started(self) -> Worker:
        if self._origin is None or not self._origin.lives:
            self.close()
            self._origin = Worker.start(_SERVER, *self._arguments)
        self._origin.wait(wall_clock(_START_S))
        return self._origin


def reading(function: str, memory_bytes: str) -> Server:
    """What answers in a fork: names and bytes in turn. The memory is counted in addition to what is imported."""
    module, _, name = function.partition(":")
    read: Any = getattr(import_module(module), name)

    def answer(parts: list[bytes]) -> bytes:
        limit_memory(int(memory_bytes), more=True)
        close_doors()
        gc.disable()  # the process ends with its answer, and looking for garbage takes a third of the time
        files = {name.decode(): data for name, data in zip(parts[::2], parts[1::2], strict=True)}
        try:
            return plain_data.encode(read(files))
        except MemoryError:
            raise  # the process says so by its end
        except Exception as error:  # what nobody thought of is no reason to stop a class
            return _refused(f"{' and '.join(files)} cannot be read", type(error).__name__)

    return answer


def _refused(what: str, why: str) -> bytes:
    return plain_data.encode({"refused": [what, why, _AGAIN]})
