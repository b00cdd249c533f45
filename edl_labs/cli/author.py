"""Commands of those who write labs: build, test, leaks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.output import AsJson, Progress, emit, stop, table
from edl_labs.errors import NothingToDo, UsageError

if TYPE_CHECKING:
    from edl_labs.authoring.proof import ExerciseProof, LabProof


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (build, leaks):
        app.command()(command)
    app.command(name="test")(prove_labs)


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


def prove_labs(
    labs: Annotated[list[str] | None, typer.Argument(help="Labs; none means every lab.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds that each solution is tried with.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Prove of every exercise: stub 0, solution full, each wrong answer told, hints there, hostile answers 0."""
    need_instructor_tools()
    from edl_labs.authoring.course import Course
    from edl_labs.authoring.prove import prove

    course = Course.find()
    proofs = []
    for name in labs or course.lab_names():
        with Progress(quiet=as_json) as progress:
            proofs.append(prove(course, name, seeds=seeds, progress=progress))
    ok = bool(proofs) and all(proof.ok for proof in proofs)
    if as_json:
        emit({"schema": 1, "ok": ok, "labs": [proof.to_json() for proof in proofs]})
    else:
        _show_proofs(proofs)
    if not proofs:
        raise NothingToDo("there are no labs", next="edl-labs new LAB")
    stop(0 if ok else 1)


def _show_proofs(proofs: list[LabProof]) -> None:
    columns = ["exercise", "points", "stub", "solution", "wrong", "hints", "hostile", ""]
    for proof in proofs:
        table(f"{proof.lab}, {proof.seeds} seeds", columns, [_proof_row(exercise) for exercise in proof.exercises])
        for problem in proof.problems:
            print(problem, file=sys.stderr)


def _proof_row(exercise: ExerciseProof) -> list[str]:
    def sign(ok: bool) -> str:
        return "✓" if ok else "✗"

    by_hand = exercise.kind == "explain"
    told = sum(one.ok for one in exercise.wrong)
    return [
        exercise.name,
        f"{exercise.points:g}",
        "by hand" if by_hand else sign(exercise.stub.ok),
        "by hand" if by_hand else sign(exercise.solution.ok),
        "" if by_hand else f"{told}/{len(exercise.wrong)} told",
        sign(exercise.hints.ok),
        "" if by_hand else sign(exercise.hostile.ok),
        "complete" if exercise.ok else f"{len(exercise.problems)} to mend",
    ]


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
