"""Runs one notebook's cells in a kernel of this Python and records, from the kernel's own replies, what really ran."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import ensure_async
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, CellTimeoutError, DeadKernelError

from edl_labs.checks.score import MIME
from edl_labs.course.run.notebook_file import cell_points, check_name, code_cells, first_line, grade_id, read_notebook
from edl_labs.course.run.run_report import INTERRUPTED, RanCell, RunLimits, one_line

Emit = Callable[[Mapping[str, Any]], None]
_OUTPUTS = ("stream", "display_data", "execute_result", "error", "update_display_data")


def run_job(job: Mapping[str, Any], *, emit: Emit) -> None:
    """Runs the notebook that `job` names and sends events.

    With `output`, papermill injects the parameters, and the notebook is saved there after each cell.
    """
    from nbformat import write

    notebook, output, error = read_notebook(Path(job["path"])), job["output"], None
    if output:
        notebook = _with_parameters(notebook, job["parameters"])
        write(notebook, output)

    def report(cell: RanCell) -> None:
        if output:
            write(notebook, output)
        emit({"event": "cell", "cell": asdict(cell)})

    recorder = CellRecorder(notebook, limits=RunLimits(**job["limits"]), report=report)
    emit({"event": "cells", "cells": [asdict(cell) for cell in recorder.cells.values()]})
    try:
        WatchedClient(notebook, recorder=recorder, allow_errors=job["keep_going"]).execute(cwd=job["cwd"])
    except Exception as raised:  # each kind is told apart from the records below
        error = raised
        recorder.stopped(error)
    if output:
        _mark_errors(notebook, output)
    emit({"event": "end", "ending": ending(recorder, error)})


def _with_parameters(notebook: Any, parameters: Mapping[str, Any]) -> Any:
    import papermill

    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    kernel = {"kernel_name": "python3", "language": "python"}
    return papermill.execute_notebook(
        notebook, None, parameters=dict(parameters), prepare_only=True, progress_bar=False, **kernel
    )


def _mark_errors(notebook: Any, output: str) -> None:
    """Saves the notebook a last time, with papermill's notes at its top and before the cell that raised."""
    from nbformat import write
    from papermill.exceptions import PapermillExecutionError
    from papermill.execute import raise_for_execution_errors

    write(notebook, output)
    with contextlib.suppress(PapermillExecutionError):
        raise_for_execution_errors(notebook, output)


class ExitAskedError(CellControlSignal):
    """A cell called exit() or quit(): the kernel stops when it likes, so nothing after this cell may be sent to it."""


class ThisPython(KernelSpecManager):
    """Every kernel name means a kernel of the running interpreter: a notebook's own spec may not exist here."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The spec of an ipykernel of this interpreter."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class CellRecorder:
    """Keeps one record a code cell up to date while the kernel answers, and reports each change."""

    def __init__(self, notebook: Any, *, limits: RunLimits, report: Callable[[RanCell], None]) -> None:
        numbered = enumerate(code_cells(notebook), start=1)
        self.cells = {index: _record(index, cell, number) for number, (index, cell) in numbered}
        self.limits, self.report = limits, report
        self.open: int | None = None
        self.interrupted: set[int] = set()
        self.flooded = False
        self._printed_bytes = 0
        self._began_s = self._started_s = time.monotonic()

    def began(self, *, cell: Any, cell_index: int) -> None:
        """The cell was sent to the kernel."""
        self.open, self._began_s, self._printed_bytes = cell_index, time.monotonic(), 0

    def answered(self, *, cell: Any, cell_index: int, execute_reply: Any) -> None:
        """The kernel said how the cell ended."""
        content = (execute_reply or {}).get("content", {})
        status, name = content.get("status"), str(content.get("ename", ""))
        state = {"ok": "ran", "error": "exited" if name == "SystemExit" else "raised"}.get(str(status), "never")
        if cell_index in self.interrupted and state == "raised":
            name = INTERRUPTED
        if any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in content.get("payload") or ()):
            state, name = "exited", "exit"
        self.open = None
        scores, plain = _results(cell)
        self._put(
            cell_index,
            state=state,
            error_name=name if state in ("raised", "exited") else "",
            error=one_line(f"{name}: {content.get('evalue', '')}", limit=400) if status == "error" else "",
            scores=scores,
            plain_result=plain,
        )
        if name == "exit":
            raise ExitAskedError

    def stopped(self, error: BaseException) -> None:
        """The run ended inside a cell: a dead kernel, or a limit."""
        if self.open is not None:
            self._put(self.open, state="stopped", error=one_line(error), error_name=type(error).__name__)

    def printed(self, size: int) -> bool:
        """Counts output of the open cell; whether it is still within the limit."""
        self._printed_bytes += size
        self.flooded = self.flooded or self._printed_bytes > self.limits.output_bytes
        return not self.flooded

    def timeout_s(self, cell: Any) -> float:
        """What the cell may take: its own limit, or what is left of the notebook's."""
        return max(0.01, min(self.limits.cell_s, self.left_s()))

    def left_s(self) -> float:
        """What is left of the notebook's time."""
        return self.limits.notebook_s - (time.monotonic() - self._started_s)

    def _put(self, index: int, **changes: Any) -> None:
        if index in self.cells:
            seconds = time.monotonic() - self._began_s
            self.cells[index] = replace(self.cells[index], seconds=seconds, **changes)
            self.report(self.cells[index])


class WatchedClient(NotebookClient):
    """A notebook client with limits whose records come from the kernel's replies.

    With `allow_errors` it runs every cell, also after one that raised, as a check of unfinished work must.
    """

    def __init__(self, *args: Any, recorder: CellRecorder, allow_errors: bool) -> None:
        super().__init__(
            *args,
            allow_errors=allow_errors,
            raise_on_iopub_timeout=not allow_errors,
            on_cell_execute=recorder.began,
            on_cell_executed=recorder.answered,
            timeout_func=recorder.timeout_s,
            startup_timeout=math.ceil(recorder.limits.start_s),
            iopub_timeout=30,
            shutdown_kernel="immediate",
        )
        self.recorder = recorder

    def create_kernel_manager(self) -> Any:
        """A manager whose kernels run this interpreter."""
        self.km = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=ThisPython())
        return self.km

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Takes one message of the kernel; a flood of output ends the kernel before it fills the memory."""
        if msg["msg_type"] in _OUTPUTS and not self.recorder.printed(len(str(msg["content"]))):
            self._kill()
            return None
        return super().process_message(msg, cell, cell_index)

    def _kill(self) -> None:
        group = getattr(getattr(self.km, "provisioner", None), "pgid", None)
        if group:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)

    async def _async_handle_timeout(self, timeout: int, cell: Any = None) -> None:
        """With `allow_errors`, interrupts a cell at its limit, and the next ones run; one that goes on ends the run."""
        open_cell, recorder = self.recorder.open, self.recorder
        again = open_cell is None or open_cell in recorder.interrupted
        if again or not self.allow_errors or recorder.left_s() <= 0:
            await super()._async_handle_timeout(timeout, cell)
        else:
            recorder.interrupted.add(open_cell)  # type: ignore[arg-type]
            await ensure_async(self.km.interrupt_kernel())  # type: ignore[union-attr]

    def execute(self, **kwargs: Any) -> Any:
        """Runs the notebook's cells; errors of cells are recorded, a dead kernel or a limit is raised."""
        self.reset_execution_trackers()
        with self.setup_kernel(**kwargs):
            with contextlib.suppress(CellExecutionError):
                for index, cell in enumerate(self.nb.cells):
                    self.execute_cell(cell, index)
            self.set_widgets_metadata()
        return self.nb


def ending(recorder: CellRecorder, error: BaseException | None) -> dict[str, str] | None:
    """Why a run broke off, as kind and text: output, dead, cell-timeout, notebook-timeout or start; None if it did not.

    A cell that raised is not such a reason: its record says so.
    """
    if error is None or (isinstance(error, CellControlSignal) and not isinstance(error, CellTimeoutError)):
        return None
    kind = "start"
    if recorder.flooded:
        kind = "output"
    elif isinstance(error, DeadKernelError):
        kind = "dead"
    elif isinstance(error, TimeoutError):
        kind = "notebook-timeout" if recorder.left_s() <= 0 else "cell-timeout"
    return {"kind": kind, "text": one_line(f"{type(error).__name__}: {error}", limit=400)}


def _record(index: int, cell: Any, number: int) -> RanCell:
    return RanCell(
        number=number,
        index=index,
        id=str(cell.get("id", "")),
        line=first_line(cell),
        grade_id=grade_id(cell),
        check=check_name(cell),
        max_points=cell_points(cell),
    )


def _results(cell: Any) -> tuple[tuple[dict[str, Any], ...], str]:
    results = [o for o in cell.outputs if o.output_type == "execute_result"]
    scores = tuple(o.data[MIME] for o in results if MIME in o.data)
    return scores, one_line(results[0].data.get("text/plain", "")) if results else ""
