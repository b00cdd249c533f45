"""Commands for authors of labs: new, edit, build, test, leaks, publish, wheel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.output import AsJson, ProgressLines, emit, stop
from edl_labs.cli.proof_tables import forge_labs, labs_and_exercises, show_messages, show_proofs
from edl_labs.errors import NothingToDo, UsageError
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.proofs import LabProof


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (new, edit, build, leaks, publish, wheel):
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
            next='run pip install "edl-labs[instructor]"',
        )


def need_system(what: str, *, fences: bool = True) -> None:
    """UsageError where the system lacks what running students' code needs.

    With `fences` Linux's, for the sandbox; else that of any POSIX system, for processes that fork.
    """
    if sys.platform.startswith("linux") or (sys.platform != "win32" and not fences):
        return
    here = {"win32": "Windows", "darwin": "macOS"}.get(sys.platform, sys.platform)
    needs = "a sandbox of the Linux kernel" if fences else "forked processes"
    raise UsageError(
        f"{what} does not run on {here}",
        why=f"students' code runs in {needs}, which this system lacks",
        next="use Linux, WSL 2, or the container (the first lines of the repository's Dockerfile explain how)",
    )


def new(
    lab: Annotated[str, typer.Argument(help="The name of the lab, such as lab06_input_pipeline.")],
    exercise: Annotated[str | None, typer.Argument(help="The exercise to add to an existing lab.")] = None,
    kind: Annotated[
        str,
        typer.Option(help="function, gpu (a program on a VirtualGPU), cluster (a program on each rank) or explain."),
    ] = "function",
    as_json: AsJson = False,
) -> None:
    """Create a lab with one exercise, or add an exercise in all five places that need it; both pass `test` at once."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.scaffold import new as scaffold

    with ProgressLines(quiet=as_json) as progress:
        report = scaffold(Course.find(), lab, exercise, kind=kind, progress=progress)
    if as_json:
        emit(report.to_json())
        return
    for file in report.written:
        print(f"written: {file}")
    if report.minutes:
        print(f"{report.exercise} was given {report.minutes} minutes, included in the lab's total: enter your estimate")
    print(f"next: edl-labs test {lab}, then edl-labs edit {lab}")


def edit(
    lab: Annotated[str, typer.Argument(help="The lab to edit.")],
    to_notebook: Annotated[Path | None, typer.Option(help="Only convert the lab to this notebook.")] = None,
    from_notebook: Annotated[
        Path | None, typer.Option(help="Only write this edited notebook back to the lab's text.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open a lab's text as a notebook in JupyterLab; each save is written back to the text."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab import edit as editing

    course = Course.find()
    if to_notebook is not None and from_notebook is not None:
        raise UsageError("--to-notebook and --from-notebook cannot be used together", next="use only one of them")
    if to_notebook is not None:
        said: dict[str, object] = {"notebook": str(editing.to_notebook(course, lab, to_notebook))}
    elif from_notebook is not None:
        said = {"changed": editing.from_notebook(course, lab, from_notebook)}
    else:
        said = editing.edit(course, lab, said=lambda text: print(text, file=sys.stderr, flush=True)).to_json()
    if as_json:
        emit({"schema": 1, "lab": lab, **said})
    else:
        print("\n".join(f"{key}: {value}" for key, value in said.items() if key not in ("kind", "schema")))


def publish(
    folder: Annotated[Path, typer.Argument(help="The folder to write to.")],
    as_json: AsJson = False,
) -> None:
    """Write the files that students may see (labs, README, licence), after a scan for leaks."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.publish import publish as publish_course

    with ProgressLines(quiet=as_json) as progress:
        report = publish_course(Course.find(), folder, progress=progress)
    if as_json:
        emit(report.to_json())
    else:
        print(f"{counted(len(report.files), 'file')} in {report.target}; {len(report.removed)} removed")


def wheel(
    judge: Annotated[
        bool, typer.Option("--judge", help="Include the judge's code: for instructors, never publish it.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("dist"),
    as_json: AsJson = False,
) -> None:
    """Build the wheel that students install and scan it for leaks; or the instructors' wheel, which can grade."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.publish import build_wheel

    made = build_wheel(Course.find(), out, judge=judge)
    if as_json:
        emit({"schema": 1, "wheel": str(made), "judge": judge})
    else:
        print(f"{made}: {'with' if judge else 'without'} the judge's code")


def build(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail with a diff if a file is out of date.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build the notebooks, labs/, the goldens and the table of labs from solutions/."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.build import build as build_course

    with ProgressLines(quiet=as_json) as progress:
        report = build_course(Course.find(), check=check, progress=progress)
    if as_json:
        emit(report.to_json())
        stop(0 if report.ok else 1)
    for warning in report.warnings:
        print(warning, file=sys.stderr)
    if not report.ok:
        print(report.diff, end="")
        stale = ", ".join(report.changed)
        why = "they differ from what a build of solutions/ writes"
        print(f"out of date: {stale}\n  why:  {why}\n  next: edl-labs build", file=sys.stderr)
        stop(1)
    labs, files = counted(len(report.labs), "lab"), counted(len(report.changed), "file")
    print(f"{labs} built; {files} {'out of date' if check else 'changed'}")


def prove_labs(
    labs: Annotated[
        list[str] | None, typer.Argument(help="Labs (default: every lab), or one lab and some of its exercises.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to test each solution with.")] = 20,
    adapters: Annotated[
        bool, typer.Option("--adapters", help="Also try library functions with adapters; takes some minutes per lab.")
    ] = False,
    forge: Annotated[
        bool,
        typer.Option("--forge", help="Instead, forge the evidence of wrong answers, which must still earn nothing."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Run only the stub, the solution and the mistakes, with one seed: for use while you write."
        ),
    ] = False,
    messages: Annotated[bool, typer.Option("--show-messages", help="Show the message of each mistake.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prove that stubs and hostile answers score 0, solutions score full marks, and wrong answers are explained."""
    need_instructor_tools()
    need_system("edl-labs test", fences=False)
    from edl_labs.course.course_folder import Course

    course = Course.find()
    names, exercises = labs_and_exercises(course, labs or [])
    if forge:
        stop(0 if forge_labs(course, names, exercises, as_json=as_json) else 1)
    proofs = _proofs(course, names, exercises, seeds=seeds, adapters=adapters, quick=quick, quiet=as_json)
    ok = bool(proofs) and all(proof.ok for proof in proofs)
    if as_json:
        emit({"schema": 1, "ok": ok, "labs": [proof.to_json() for proof in proofs]})
    else:
        if messages:
            show_messages(proofs)
        show_proofs(proofs)
    if not proofs:
        raise NothingToDo("there are no labs", next="run edl-labs new LAB")
    stop(0 if ok else 1)


def _proofs(
    course: Course, names: list[str], exercises: list[str], *, seeds: int, adapters: bool, quick: bool, quiet: bool
) -> list[LabProof]:
    """The labs' proofs, two labs at a time: one lab alone keeps two cores busy for only a part of its proof."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from edl_labs.course.lab.answer_runs import AT_ONCE

    if len(names) < 2:
        return [_proof(course, name, seeds, adapters, quick, quiet, exercises) for name in names]
    bar = sys.stderr.isatty()  # one, of labs: two at once would write over each other
    with (
        ProcessPoolExecutor(min(AT_ONCE, len(names)), mp_context=get_context("spawn")) as pool,
        ProgressLines(quiet=quiet or not bar) as progress,
    ):
        proofs = [pool.submit(_proof, course, name, seeds, adapters, quick, quiet or bar) for name in names]
        try:
            for done, proof in enumerate(as_completed(proofs), start=1):
                progress(done, len(names), proof.result().lab)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [proof.result() for proof in proofs]


def _proof(
    course: Course, name: str, seeds: int, adapters: bool, quick: bool, quiet: bool, exercises: Sequence[str] = ()
) -> LabProof:
    from edl_labs.course.lab.prove import prove

    with ProgressLines(quiet=quiet) as progress:
        return prove(course, name, exercises=exercises, seeds=seeds, adapters=adapters, quick=quick, progress=progress)


def leaks(
    paths: Annotated[list[Path] | None, typer.Argument(help="Folders, wheels or files (default: the course).")] = None,
    as_json: AsJson = False,
) -> None:
    """Scan everything that students can read (labs/, the package, wheels) for solutions and the judge's code."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.leaks import scan, scan_course, secrets
    from edl_labs.course.lab.read import read_labs
    from edl_labs.course.lab.secret_functions import secret_functions

    course = Course.find()
    for path in paths or []:
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}", next="pass an existing folder or file")
    labs = read_labs(course)
    known, functions = secrets(labs), secret_functions(course, labs)
    found = scan(paths, known, functions=functions) if paths else scan_course(course, known, functions=functions)
    if as_json:
        emit({"schema": 1, "ok": not found, "leaks": [str(leak) for leak in found]})
    else:
        for leak in found:
            print(leak)
        print(f"searched for {len(known)} secret lines and {len(functions)} functions: {counted(len(found), 'leak')}")
    stop(1 if found else 0)
