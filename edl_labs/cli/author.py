"""Commands of those who write labs: build, leaks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edl_labs.cli.output import AsJson, Progress, emit, stop
from edl_labs.errors import UsageError


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (build, leaks):
        app.command()(command)


def need_instructor_tools() -> None:
    """UsageError when the packages that authors need are not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("nbgrader", "jupytext", "nbconvert") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} is not installed",
            why="writing and building labs needs the instructor's tools",
            next='pip install "edl-labs[instructor]"',
        )


def build(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail with a diff when a file is stale.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Notebooks, labs/, goldens and the table of labs, from solutions/."""
    need_instructor_tools()
    from edl_labs.authoring.build import build as build_course
    from edl_labs.authoring.course import Course

    with Progress(quiet=as_json) as progress:
        report = build_course(Course.find(), check=check, progress=progress)
    if as_json:
        emit(report.to_json())
        stop(0 if report.ok else 1)
    for warning in report.warnings:
        print(warning, file=sys.stderr)
    if not report.ok:
        print(report.diff, end="")
        stale = ", ".join(report.changed)
        print(f"stale: {stale}\n  why:  they are not what solutions/ makes\n  next: edl-labs build", file=sys.stderr)
        stop(1)
    print(f"{len(report.labs)} built; {len(report.changed)} files {'stale' if check else 'changed'}")


def leaks(
    paths: Annotated[list[Path] | None, typer.Argument(help="Folders, wheels or files; none means the course.")] = None,
    as_json: AsJson = False,
) -> None:
    """Scan what students can read for solution text: labs/, the package, or any folder, wheel or archive."""
    need_instructor_tools()
    from edl_labs.authoring.build import read_labs
    from edl_labs.authoring.course import Course
    from edl_labs.authoring.leaks import scan, scan_course, secrets

    course = Course.find()
    for path in paths or []:
        if not path.exists():
            raise UsageError(f"there is no {path}", next="name a folder or a file")
    known = secrets(read_labs(course))
    found = scan(paths, known) if paths else scan_course(course, known)
    if as_json:
        emit({"schema": 1, "ok": not found, "leaks": [str(leak) for leak in found]})
    else:
        for leak in found:
            print(leak)
        print(f"{len(known)} secret lines looked for; {len(found)} leaks")
    stop(1 if found else 0)
