"""The command for maintainers who run labs on every change and on GPUs: run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edl_labs.cli.output import AsJson, ProgressLines, emit, stop, table
from edl_labs.errors import UsageError

if TYPE_CHECKING:
    from edl_labs.course.run.run_report import RunReport


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command()(run)


def run(
    labs: Annotated[list[str] | None, typer.Argument(help="Labs or notebook files (default: every lab).")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Use the quick parameters from lab.toml.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Use the full parameters from lab.toml (default).")] = False,
    device: Annotated[str, typer.Option(help="auto (the best one of this machine), cpu, cuda, mps or xpu.")] = "auto",
    jobs: Annotated[int, typer.Option("-j", "--jobs", help="How many notebooks to run at the same time.")] = 1,
    cell_timeout: Annotated[float, typer.Option(help="Time limit for one cell, in seconds.")] = 600.0,
    notebook_timeout: Annotated[float, typer.Option(help="Time limit for one notebook, in seconds.")] = 1800.0,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", help="A value for the parameters cell, as NAME=VALUE; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for the results (default: build/executed).")] = None,
    as_json: AsJson = False,
) -> None:
    """Run solution notebooks without a browser; writes notebooks, HTML, results.json, env.json and junit.xml."""
    from edl_labs.course.run.execute import run_labs
    from edl_labs.course.run.run_report import RunLimits

    if smoke and full:
        raise UsageError(
            "--smoke and --full cannot be used together", next="use only one of them; without either, --full applies"
        )
    with ProgressLines(quiet=as_json) as progress:
        report = run_labs(
            labs or (),
            mode="smoke" if smoke else "full",
            device=device,
            out=out,
            jobs=jobs,
            limits=RunLimits(cell_s=cell_timeout, notebook_s=notebook_timeout),
            parameters=dict(map(_parameter, parameter or [])),
            progress=progress,
        )
    if as_json:
        emit(report.to_json())
    else:
        _show_run(report)
    stop(report.exit_code)


def _parameter(text: str) -> tuple[str, Any]:
    import ast

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"-p {text} does not have the form NAME=VALUE", next="write, for example, -p launches=100")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _show_run(report: RunReport) -> None:
    columns = ["lab", "device", "cells", "seconds", "score", "slowest cell"]
    table("", columns, [_run_row(row) for row in report.rows()])
    print(f"{report.mode} run, {report.seconds:.1f} s; executed notebooks, pages and results are in {report.folder}")
    for lab, failure in report.failures():
        print(f"{lab}: {failure}", file=sys.stderr)


def _run_row(row: dict[str, Any]) -> list[str]:
    by_hand = f" (+{row['by_hand_points']:g} by hand)" if row["by_hand_points"] else ""
    return [
        row["lab"],
        row["device"],
        f"{row['cells_run']}/{row['cells']}",
        f"{row['seconds']:.1f}",
        f"{row['points']:g}/{row['max_points']:g}{by_hand}",
        f"{row['slowest']}: {row['slowest_s']:.1f} s" if row["slowest"] else "none ran",
    ]
