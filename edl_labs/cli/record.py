"""`edl-labs record`: experiments on this machine's GPU, kept for those who have none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edl_labs.cli.output import AsJson, emit


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command(name="record")(record)


def record(
    to: Annotated[
        Path | None, typer.Option(help="Folder (default: the library's edl_labs/hardware/recordings).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record the lab's experiments and loops on this machine's CUDA device, with its environment stamp."""
    from edl_labs.hardware import recordings
    from edl_labs.trace.recording import measured_loops
    from edl_labs.virtual.gpu import record as experiments

    folder = to or Path(recordings.__file__).parent
    paths = experiments.write((*experiments.measured(), measured_loops()), folder)
    if as_json:
        emit({"schema": 1, "recordings": [str(path) for path in paths]})
        return
    for path in paths:
        print(path)
