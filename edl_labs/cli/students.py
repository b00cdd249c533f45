"""Commands for students, and for anyone with a trace: doctor, start, check, diagnose, record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.output import AsJson, ProgressLines, emit, stop, table

if TYPE_CHECKING:
    from edl_labs.course.run.checkfile import CheckReport
    from edl_labs.course.run.run_report import ExerciseResult
    from edl_labs.course.start import StartReport
    from edl_labs.roofline import Machine
    from edl_labs.trace import Diagnosis, RanksDiagnosis


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (doctor, start, check, diagnose, record):
        app.command()(command)


def doctor(
    lab: Annotated[str, typer.Option(help="Show what this lab needs and can use, such as lab04.")] = "",
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Try to escape from the grading sandbox, in every known way.")
    ] = False,
    machine: Annotated[bool, typer.Option(help="Measure this machine's ceilings (once, about 15 s).")] = True,
    as_json: AsJson = False,
) -> None:
    """Describe this machine: what will work on it, what will be skipped, and why."""
    if sandbox:
        _try_escapes(as_json=as_json)
    from edl_labs.course.run.doctor import examine_machine

    with ProgressLines(quiet=True) as progress:
        report = examine_machine(lab, progress=progress)
    found = _ceilings(quiet=as_json) if machine and report.ok and not lab else None
    if as_json:
        emit({**report.to_json(), "machine": None if found is None else found.to_json()})
        stop(report.exit_code)
    signs = {"ok": "✓ ok", "warn": "! look", "missing": "✗ missing"}
    table("", ["thing", "state", "what"], [[row.name, signs[row.state], row.what] for row in report.rows])
    for row in report.rows:
        if row.state != "ok":
            print(f"{row.name} (needed by {row.who}): {row.next}")
    if found is not None:
        _show_card(found)
    left_out = [row.name for row in report.rows if row.who == "some cells" and row.state != "ok"]
    ready = f"ready, but some cells will leave a part out: {', '.join(left_out)}" if left_out else "ready"
    print(ready if report.ok else "not ready: something is missing that every lab needs")
    stop(report.exit_code)


def _ceilings(*, quiet: bool) -> Machine | None:
    from edl_labs.errors import EdlError
    from edl_labs.roofline import ceilings

    try:
        with ProgressLines(quiet=quiet) as progress:
            return ceilings(progress=progress)
    except (EdlError, RuntimeError, MemoryError) as error:
        # No memory left, a device in use: the rest of the report still stands.
        print(f"ceilings could not be measured: {error}", file=sys.stderr)
        return None


def _show_card(machine: Machine) -> None:
    from edl_labs.roofline.machine_ceilings import card

    rows = [[row.name, row.measured, row.datasheet, row.share, row.note] for row in card(machine)]
    title = f"{machine.name}: {machine.units} units, {machine.origin}"
    table(title, ["ceiling", "measured", "datasheet", "share", "how"], rows)
    for name, text in machine.settings.items():
        print(f"{name}: {text}")


def _try_escapes(*, as_json: bool) -> None:
    from edl_labs.course.sandbox import best_level, escapes

    level = best_level()
    tried = escapes(level=level)
    ok = all(escape.held for escape in tried)
    if as_json:
        emit({"schema": 1, "ok": ok, "level": level.value, "escapes": [vars(escape) for escape in tried]})
    else:
        rows = [[escape.name, "✓ blocked" if escape.held else "✗ escaped", escape.seen] for escape in tried]
        table(f"sandbox: {level.value}", ["attempt", "result", "observation"], rows)
    stop(0 if ok else 1)


def start(
    folder: Annotated[Path, typer.Argument(help="The folder for your copies of the labs.")] = Path("my-labs"),
    lab: Annotated[str | None, typer.Option(help="Copy only this lab.")] = None,
    course: Annotated[str | None, typer.Option(help="The course, if several are installed.")] = None,
    open_it: Annotated[bool, typer.Option("--open/--no-open", help="Open JupyterLab in this folder.")] = True,
    as_json: AsJson = False,
) -> None:
    """Copy the labs into a folder without overwriting your work, and open JupyterLab there."""
    from edl_labs.course.start import START, open_jupyterlab
    from edl_labs.course.start import start as start_labs

    report = start_labs(folder, lab, open=False, course=course)
    if as_json:
        emit(report.to_json())
        return
    _say_started(report)
    if open_it:
        print("opening JupyterLab in this folder; stop it with Ctrl-C", flush=True)
        open_jupyterlab(report.folder / START)


def _say_started(report: StartReport) -> None:
    for word, files in (
        ("copied", report.copied),
        ("kept your version", report.kept),
        ("new version, next to yours", report.beside),
    ):
        for file in files:
            print(f"{word}: {file}")
    print(f"the labs are in {report.folder}")


def check(
    file: Annotated[Path, typer.Argument(help="The notebook of a lab.")],
    cell_timeout: Annotated[float, typer.Option(help="Time limit for one cell, in seconds.")] = 180.0,
    as_json: AsJson = False,
) -> None:
    """Run a notebook's public checks in a fresh kernel, without changing the file."""
    from edl_labs.course.run.checkfile import check_notebook
    from edl_labs.course.run.run_report import RunLimits

    with ProgressLines(quiet=as_json) as progress:
        report = check_notebook(file, limits=RunLimits(cell_s=cell_timeout), progress=progress)
    if as_json:
        emit(report.to_json())
    else:
        _show_check(report)
    stop(report.exit_code)


def _points(exercise: ExerciseResult) -> str:
    if exercise.by_hand:
        return ""
    return "practice" if exercise.is_practice else f"{exercise.points:g}/{exercise.max_points:g}"


def _show_check(report: CheckReport) -> None:
    rows = [
        [e.name, e.state, _points(e), e.what if e.by_hand or not e.full else ""]
        for e in sorted(report.exercises, key=lambda e: e.is_practice)
    ]
    table(report.title, ["exercise", "state", "points", "message"], rows)
    for exercise in report.exercises:
        if exercise.state in ("wrong", "partly"):
            print(f"{exercise.name}: {exercise.what}\n  why:  {exercise.why}\n  next: {exercise.next}")
    for failure in report.failures:
        print(failure, file=sys.stderr)
    if report.note:
        print(report.note)
    by_hand = f" (and {report.by_hand_points:g} by hand)" if report.by_hand_points else ""
    print(f"{report.points:g} of {report.max_points:g} points{by_hand}, {report.seconds:.1f} s")


def diagnose(
    files: Annotated[
        list[Path],
        typer.Argument(help="Traces, one per rank: JSON from torch.profiler, plain or .gz, or SQLite from nsys."),
    ],
    rank: Annotated[int | None, typer.Option(help="Only this rank, counted from 0.")] = None,
    html: Annotated[Path | None, typer.Option(help="The file for the report (default: FILE.diagnosis.html).")] = None,
    open_it: Annotated[bool, typer.Option("--open/--no-open", help="Open the report in a browser.")] = True,
    as_json: AsJson = False,
) -> None:
    """Report how a traced loop spends its time, the possible speed-up for each cause, and which habits to change."""
    reports, across = _diagnosed(files, rank)
    if as_json:
        tree = {"schema": 1, "ranks": [report.to_json() for report in reports]}
        emit({**tree, "across": {**across.to_json(), "reports": []}} if across else tree)
        return
    if across:
        print(across.text(), end="\n\n")
    print((across.slowest if across else reports[0]).text(), end="\n\n")
    _show_page(reports, across, html or Path(f"{files[0].name}.diagnosis.html"), open_it=open_it)


def record(
    mine: Annotated[bool, typer.Option("--mine", help="Write your own recordings, for notebooks on other machines.")],
    folder: Annotated[
        Path, typer.Option(help="The folder for the recordings; a notebook shows them if this folder is next to it.")
    ] = Path("my_recordings"),
    device: Annotated[str, typer.Option(help="cuda, xpu, mps or cpu (default: the best one of this machine).")] = "",
    as_json: AsJson = False,
) -> None:
    """Measure this machine for a few seconds; the notebooks of labs 1, 2, 3 and 10 then show these results as yours."""
    from edl_labs.bench.own_recordings import record_mine
    from edl_labs.errors import UsageError

    if not mine:
        then = "run edl-labs record --mine"
        raise UsageError("nothing to record", why="only --mine records something", next=then)
    paths = record_mine(folder, device=device)
    if as_json:
        emit({"schema": 1, "files": [path.as_posix() for path in paths]})
        return
    print(f"wrote {', '.join(path.name for path in paths)} to {folder}/: put this folder next to a notebook")


def _diagnosed(files: list[Path], rank: int | None) -> tuple[list[Diagnosis], RanksDiagnosis | None]:
    """The diagnosis of each rank, and where there are several, of all of them together."""
    from dataclasses import replace

    from edl_labs.errors import UsageError
    from edl_labs.trace import diagnose, diagnose_ranks, read_ranks, read_trace

    if rank is not None and len(files) == 1:
        return [replace(diagnose(read_trace(files[0], rank=rank)), name=f"{files[0].name}, rank {rank}")], None
    if len(files) == 1 and len(traces := read_ranks(files[0])) == 1:
        return [replace(diagnose(traces[0]), name=files[0].name)], None
    across = diagnose_ranks(files)
    chosen = [report for report, of in zip(across.reports, across.ranks, strict=True) if rank in (None, of.rank)]
    if not chosen:
        known = ", ".join(str(summary.rank) for summary in across.ranks)
        raise UsageError(
            f"none of the files is from rank {rank}",
            why=f"the files are from ranks {known}",
            next="use one of these ranks",
        )
    return chosen, across if rank is None else None


def _show_page(reports: list[Diagnosis], across: RanksDiagnosis | None, path: Path, *, open_it: bool) -> None:
    import webbrowser
    from html import escape

    from edl_labs.course.pages.shell import render

    parts = [*([f"<pre>{escape(across.text())}</pre>"] if across else []), *(report.html() for report in reports)]
    path.write_text(render("diagnosis.html", title=f"Diagnosis of {reports[0].name}", parts=parts), encoding="utf-8")
    print(f"report with pictures: {path}")
    if open_it and sys.stdout.isatty():
        webbrowser.open(path.resolve().as_uri())
