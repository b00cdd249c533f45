"""Starts the disposable process that runs one notebook, and collects what it reports before it ends."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from edl_labs.course.run.run_report import RanCell, RunLimits, one_line

# What the process may take besides the notebook: its imports, and saving.
_SLACK_S = 60.0
# Enough for a lab's data; a home or a download folder has more, and copying it could take longer than the run.
_COPIED_BYTES, _COPIED_FILES = 64_000_000, 500


@dataclass(frozen=True)
class Job:
    """One notebook to run, and where to save it executed, if at all; `env` is added to ours.

    With `keep_going`, cells after one that raised still run.
    """

    path: Path
    output: Path | None = None
    keep_going: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limits: RunLimits = field(default_factory=RunLimits)
    env: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)
    """Files next to the notebook in its scratch folder: those that an author provided with the solution."""


@dataclass(frozen=True)
class Finished:
    """What became of a job: every code cell's record, why it broke off if it did, and how long it took."""

    cells: tuple[RanCell, ...]
    ending: Mapping[str, str] | None
    seconds: float


class Stop:
    """Ends what runs, from another thread, and lets nothing start any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self.asked = False

    def add(self, process: subprocess.Popen[str]) -> None:
        """From now on `process` is ended with the others."""
        with self._lock:
            self._running.add(process)
            if self.asked:
                process.terminate()

    def all(self) -> None:
        """End everything, kernels included."""
        with self._lock:
            self.asked = True
            for process in self._running:
                process.terminate()


def run(job: Job, *, on_cell: Callable[[RanCell, int, int], None] | None = None, stop: Stop | None = None) -> Finished:
    """Runs `job` in a new process and a scratch copy of its folder; always returns.

    `on_cell(cell, done, total)` is called after each code cell; `stop` can end it from another thread.
    """
    start_s = time.monotonic()
    with scratch_copy(job.path) as folder, tempfile.TemporaryFile() as errors:
        for name, data in job.beside.items():
            (folder / name).write_bytes(data)
        process = _start(job, folder, errors)
        if stop is not None:
            stop.add(process)
        cells, ending = _listen(process, job, on_cell or (lambda *_: None))
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4000))
        if ending is None:
            ending = _died(process.returncode, errors.read().decode(errors="replace"))
    seconds = time.monotonic() - start_s
    return Finished(tuple(cells[i] for i in sorted(cells)), ending if ending.get("kind") else None, seconds)


@contextmanager
def scratch_copy(path: Path) -> Iterator[Path]:
    """A scratch folder with the files next to the notebook: cells can read it, and nothing they write stays."""
    with tempfile.TemporaryDirectory(prefix="edl-labs-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "work"
        target.mkdir()
        left_bytes, left_files = _COPIED_BYTES, _COPIED_FILES
        for source in sorted(path.parent.rglob("*")) if not _is_wide(path.parent) else []:
            relative = source.relative_to(path.parent)
            if any(part.startswith((".", "__pycache__")) for part in relative.parts) or not source.is_file():
                continue
            size = source.stat().st_size
            if source.suffix != ".ipynb" and size <= left_bytes and left_files:
                left_bytes, left_files = left_bytes - size, left_files - 1
                (target / relative).parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(OSError):
                    shutil.copyfile(source, target / relative)
        yield target


def _is_wide(folder: Path) -> bool:
    """Whether a folder is not a lab's own (a home, a temporary folder), so that copying it makes no sense."""
    if folder.resolve() in {Path.home().resolve(), Path(tempfile.gettempdir()).resolve(), Path("/")}:
        return True
    return sum(1 for _ in itertools.islice(folder.rglob("*"), 2000)) == 2000


def _start(job: Job, folder: Path, errors: Any) -> subprocess.Popen[str]:
    # The user's IPython profile and start-up files must not change a run.
    env = {**os.environ, "IPYTHONDIR": str(folder.parent / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1", **job.env}
    process = subprocess.Popen(
        [sys.executable, "-m", "edl_labs.course.run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        encoding="utf-8",
        env=env,
    )
    with contextlib.suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.write(json.dumps({**asdict(replace(job, beside={})), "cwd": folder}, default=str))
        process.stdin.close()
    return process


def _listen(
    process: subprocess.Popen[str], job: Job, on_cell: Callable[[RanCell, int, int], None]
) -> tuple[dict[int, RanCell], dict[str, str] | None]:
    cells: dict[int, RanCell] = {}
    ending: dict[str, str] | None = None
    late = threading.Event()

    def stop() -> None:
        late.set()
        _end(process)

    timer = threading.Timer(_whole_s(job.limits), stop)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "cells":
                cells = {c["index"]: _cell(c) for c in event["cells"]}
            elif event["event"] == "cell":
                cell = _cell(event["cell"])
                cells[cell.index] = cell
                on_cell(cell, sum(c.state != "never" for c in cells.values()), len(cells))
            else:
                ending = event["ending"] or {}
        process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        timer.cancel()
    return cells, {"kind": "notebook-timeout", "text": "it did not finish in time"} if late.is_set() else ending


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _whole_s(limits: RunLimits) -> float:
    return min(limits.notebook_s + limits.start_s + _SLACK_S, threading.TIMEOUT_MAX)


def _died(code: int, errors: str) -> dict[str, str]:
    if code < 0:
        return {"kind": "runner", "text": f"it was ended by signal {-code}"}
    return {"kind": "runner", "text": one_line((errors.strip().splitlines() or [f"exit code {code}"])[-1])}


def _cell(record: Mapping[str, Any]) -> RanCell:
    """The cell whose fields an event holds."""
    return RanCell(**{**record, "scores": tuple(record["scores"])})
