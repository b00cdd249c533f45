"""The command `grade`: a class on this machine, in shards, or on a Ray cluster."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edl_labs.cli.authors import need_instructor_tools, need_system
from edl_labs.cli.output import AsJson, ProgressLines, emit, stop, table
from edl_labs.errors import UsageError
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.grade.classrun import ClassProgress, ClassReport
    from edl_labs.course.sandbox import Level


def add_to(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command()(grade)


def grade(
    assignment: Annotated[str, typer.Argument(help="The lab to grade.")],
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="How many submissions to grade at the same time."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw the secret cases from this seed, which is recorded for the class.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only these students, or patterns such as 's1*'; repeatable.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what has already been graded.")] = False,
    all_cells: Annotated[
        bool, typer.Option("--all-cells", help="Also run demonstrations, which no mark needs.")
    ] = False,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Grade without a sandbox; results are marked as untrusted.")
    ] = False,
    prepared: Annotated[
        bool, typer.Option("--prepare", help="Record only the seed that shards need, without grading.")
    ] = False,
    shard: Annotated[
        str, typer.Option(help="Grade one part of the class, such as 3/8; writes results, but no gradebook.")
    ] = "",
    ray: Annotated[
        str, typer.Option(help="Grade on the Ray cluster at this address (auto: the address in RAY_ADDRESS).")
    ] = "",
    gpus: Annotated[float, typer.Option(min=0, help="GPUs leased to each shard; its kernels see one GPU.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Grade a whole class in sandboxes and enter the marks into nbgrader's gradebook; resumes where it stopped."""
    need_instructor_tools()
    need_system("grading", fences=not unsafe)
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.classrun import grade as grade_class
    from edl_labs.course.grade.nbgrader_assignments import is_nbgraders
    from edl_labs.course.marks.roster import course_remarks
    from edl_labs.course.sandbox import Level

    if is_nbgraders(Course.find_class(), assignment):
        if any((unsafe, prepared, shard, ray, fresh, all_cells, gpus)) or jobs is not None or seed is not None:
            why = "it has no exercises of edl_labs, and so no secret cases; nbgrader's own rules apply, in the sandbox"
            raise UsageError(
                f"for {assignment}, only the options --only and --json are available",
                why=why,
                next="leave out the other options",
            )
        _grade_nbgraders(assignment, only=only or (), as_json=as_json)
        return
    level = Level.UNSAFE if unsafe else None
    if sum(map(bool, (prepared, shard, ray))) > 1 or (fresh and (shard or ray)) or (seed is not None and shard):
        why = "--prepare records a seed, --shard grades a part with that seed, --ray does both; shards never regrade"
        raise UsageError("these options cannot be combined", why=why, next="use only one of --prepare, --shard, --ray")
    if prepared or ray:
        _prepare(assignment, seed=seed, level=level, gpus=gpus, as_json=as_json)
    if prepared:
        return
    if shard:
        _grade_shard(assignment, shard, only, jobs=jobs, level=level, gpus=gpus, all_cells=all_cells, as_json=as_json)
        return
    if ray:
        _grade_on_ray(assignment, ray, only, unsafe=unsafe, all_cells=all_cells, gpus=gpus, as_json=as_json)
    with ProgressLines(quiet=as_json) as progress:

        def tell(so_far: ClassProgress) -> None:
            if as_json:
                print(json.dumps(so_far.to_json()), file=sys.stderr, flush=True)
            progress(so_far.done, so_far.total, _so_far(so_far))

        report = grade_class(
            assignment,
            jobs=jobs,
            seed=None if ray else seed,
            only=only or (),
            fresh=fresh,
            level=level,
            on_gpu=gpus > 0,
            all_cells=all_cells or None,
            progress=tell,
        )
        remarks = (*report.remarks, *course_remarks(Course.find_class()))
    if as_json:
        emit(report.to_json())
    else:
        _show_class(report)
        for remark in remarks:
            print(remark, file=sys.stderr)
    stop(report.exit_code)


def _grade_nbgraders(assignment: str, *, only: Sequence[str], as_json: bool) -> None:
    """Grade an assignment of nbgrader's form, by nbgrader's rules."""
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.nbgrader_class import grade_nbgraders

    with ProgressLines(quiet=as_json) as progress:
        report = grade_nbgraders(Course.find_class(), assignment, only=only, progress=progress)
    if as_json:
        emit(report.to_json())
    else:
        _show_class(report)
    stop(report.exit_code)


def _prepare(assignment: str, *, seed: int | None, level: Level | None, gpus: float, as_json: bool) -> None:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.shards import prepare

    found = prepare(assignment, course=Course.find_class(), seed=seed, level=level, on_gpu=gpus > 0)
    if as_json:
        emit({"assignment": assignment, "seed": found})
    else:
        print(f"{assignment} is ready for shards, with seed {found}")


def _grade_shard(
    assignment: str,
    shard: str,
    only: Sequence[str] | None,
    *,
    jobs: int | None,
    level: Level | None,
    gpus: float,
    all_cells: bool,
    as_json: bool,
) -> None:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.shards import Shard, grade_shard, leased_gpu

    options: dict[str, Any] = {"only": only or (), "jobs": jobs or 1, "level": level, "all_cells": all_cells or None}
    with ProgressLines(quiet=as_json) as progress:
        report = grade_shard(
            *(assignment, Shard.parse(shard)),
            course=Course.find_class(),
            gpu=leased_gpu(os.environ) if gpus > 0 else None,
            progress=progress,
            **options,
        )
    if as_json:
        emit(report.to_json())
    else:
        for student, why in report.failed:
            print(f"{student}: {why}", file=sys.stderr)
        print(
            f"shard {report.shard}: {report.graded} graded, {report.kept} graded before, {report.unreadable} unreadable"
        )
    stop(report.exit_code)


def _grade_on_ray(
    assignment: str,
    address: str,
    only: Sequence[str] | None,
    *,
    unsafe: bool,
    all_cells: bool,
    gpus: float,
    as_json: bool,
) -> None:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.ray_shards import grade_on_ray

    flags = {"--unsafe": unsafe, "--all-cells": all_cells}
    options = [name for name, is_set in flags.items() if is_set] + (["--gpus", str(gpus)] if gpus else [])
    with ProgressLines(quiet=as_json) as progress:
        grade_on_ray(
            *(assignment, address),
            course=Course.find_class(),
            options=options,
            only=only or (),
            gpus=gpus,
            progress=lambda done, total: progress(done, total, "shards"),
        )


def _so_far(now: ClassProgress) -> str:
    left = "" if now.left_s is None else f", about {now.left_s:.0f} s left"
    flags = "".join(f", {number} {flag}" for flag, number in now.flags)
    slow = "".join(f"; {who}: {where} has been running for {seconds:.0f} s" for who, where, seconds in now.slow)
    done = f"{now.student}: {now.per_minute:.1f} per minute" if now.student else "0 graded"
    return f"{done}{left}{flags}{slow}"


def _show_class(report: ClassReport) -> None:
    rows = []
    for row in report.rows:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.max_points:g}"
        rows.append([row.student, points, row.state, ", ".join(row.flags)])
        for remark in row.remarks:
            print(f"{row.student}: {remark}", file=sys.stderr)
    table(report.assignment, ["student", "points", "state", "flags"], rows)
    done = f"{counted(len(rows), 'submission')} in {report.wall_s:.1f} s, {report.jobs} at the same time"
    print(f"{done}, sandbox: {report.level}, seed {report.seed}")
