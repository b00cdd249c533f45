"""Runs one notebook inside the disposable process, sending what the kernel answered as events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edl_labs.course.run.notebook_file import read_notebook
from edl_labs.course.run.run_report import RunLimits
from edl_labs.course.run.watched_kernel import CellRecorder, PatientClient, WatchedClient, ending

Emit = Callable[[Mapping[str, Any]], None]


def run_job(job: Mapping[str, Any], *, emit: Emit) -> None:
    """Runs the notebook `job` names with papermill, or patiently (every cell, also after an error), sending events."""
    notebook = read_notebook(Path(job["path"]))
    runner = _patiently if job["engine"] == "patient" else _papermill
    error: BaseException | None = None
    recorder: list[CellRecorder] = []
    limits = RunLimits(**job["limits"])
    try:
        runner(notebook, job, recorder=recorder, limits=limits, emit=emit)
    except Exception as raised:  # each kind is told apart from the records below
        error = raised
    if recorder and error is not None:
        recorder[0].stopped(error)
    end = ending(recorder[0], error) if recorder else {"kind": "start", "text": f"{type(error).__name__}: {error}"}
    emit({"event": "end", "ending": end})


def _patiently(
    notebook: Any, job: Mapping[str, Any], *, recorder: list[CellRecorder], limits: RunLimits, emit: Emit
) -> None:
    recorder.append(_recorder(notebook, limits=limits, emit=emit))
    PatientClient(notebook, recorder=recorder[0]).execute(cwd=job["cwd"])


def _papermill(
    notebook: Any, job: Mapping[str, Any], *, recorder: list[CellRecorder], limits: RunLimits, emit: Emit
) -> None:
    import papermill
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import Engine, papermill_engines

    class Client(WatchedClient, PapermillNotebookClient):
        pass

    class WatchedEngine(Engine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **_: Any) -> None:
            recorder.append(_recorder(nb_man.nb, limits=limits, emit=emit))
            Client(nb_man, recorder=recorder[0]).execute(cwd=job["cwd"])

    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    papermill_engines.register("edl-labs", WatchedEngine)
    # papermill formats the output path with the parameters, so a brace in a folder's name must be doubled.
    output = str(job["output"]).replace("{", "{{").replace("}", "}}")
    papermill.execute_notebook(
        notebook,
        output,
        parameters=dict(job["parameters"]),
        engine_name="edl-labs",
        kernel_name="python3",
        language="python",
        progress_bar=False,
    )


def _recorder(notebook: Any, *, limits: RunLimits, emit: Emit) -> CellRecorder:
    recorder = CellRecorder(notebook, limits=limits, report=lambda cell: emit({"event": "cell", "cell": asdict(cell)}))
    emit({"event": "cells", "cells": [asdict(cell) for cell in recorder.cells.values()]})
    return recorder
