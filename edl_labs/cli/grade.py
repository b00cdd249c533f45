"""Commands of those who grade: grade."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.author import need_instructor_tools
from edl_labs.cli.output import AsJson, Progress, emit, stop, table
from edl_labs.errors import UsageError

if TYPE_CHECKING:
    from edl_labs.course.grade.report import ClassProgress, ClassReport


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command()(grade)


def grade(
    assignment: Annotated[str, typer.Argument(help="The lab that was handed in.")],
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", min=1, help="Submissions at a time.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw other secret cases; recorded for the class.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Students, or patterns such as 's1*'; repeatable.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what was graded.")] = False,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="No sandbox; results are marked untrusted.")] = False,
    backend: Annotated[str, typer.Option(help="Where: local, ray or slurm. Machines share the course's folder.")] = "",
    address: Annotated[str, typer.Option(help="The Ray cluster's address.")] = "",
    partition: Annotated[str, typer.Option(help="The Slurm partition.")] = "",
    gpus: Annotated[float, typer.Option(min=0, help="GPUs leased for each task of Ray or Slurm.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Grade a whole class in sandboxes, judged from outside, into nbgrader's gradebook; resumes where it stopped."""
    need_instructor_tools()
    from edl_labs.course.grade.classrun import grade as grade_class
    from edl_labs.course.grade.cluster.backends import make_backend
    from edl_labs.course.grade.cluster.spread import spread_class
    from edl_labs.course.sandbox import Level

    level = Level.UNSAFE if unsafe else None
    if backend:
        if fresh:
            why = "machines work out the results that are missing, and keep the others"
            raise UsageError("--fresh and --backend do not go together", why=why, next="leave one of them out")
        where = make_backend(backend, jobs=jobs or 2, address=address, partition=partition, gpus=gpus)
        with Progress(quiet=as_json) as progress:
            spread_class(
                assignment,
                where,
                only=only or (),
                seed=seed,
                level=level,
                gpu=gpus > 0,
                progress=lambda done, total: progress(done, total, "units"),
            )
    with Progress(quiet=as_json) as progress:

        def tell(so_far: ClassProgress) -> None:
            left = "" if so_far.left_s is None else f", about {so_far.left_s:.0f} s left"
            progress(so_far.done, so_far.total, f"{so_far.student}{left}")

        report = grade_class(
            assignment,
            jobs=jobs,
            seed=seed,
            only=only or (),
            fresh=fresh,
            level=level,
            on_gpu=bool(backend) and gpus > 0,
            progress=tell,
        )
    if as_json:
        emit(report.to_json())
    else:
        _show(report)
    stop(report.exit_code)


def _show(report: ClassReport) -> None:
    rows = []
    for row in report.rows:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.max_points:g}"
        rows.append([row.student, points, row.state, ", ".join(row.flags)])
        for remark in row.remarks:
            print(f"{row.student}: {remark}", file=sys.stderr)
    table(report.assignment, ["student", "points", "state", "flags"], rows)
    print(f"{len(rows)} submissions in {report.wall_s:.1f} s, sandbox: {report.level}, seed {report.seed}")
