"""Commands of those who give a course: course, collect, grade, feedback, export, regrade, report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.authors import need_instructor_tools, need_system
from edl_labs.cli.output import AsJson, ProgressLines, emit, print_board, stop, table
from edl_labs.errors import UsageError
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.grade.classrun import ClassProgress, ClassReport
    from edl_labs.course.marks.class_report import ExerciseOverview

_NAMES_SHOWN = 20  # about three lines of a terminal
Assignment = Annotated[str, typer.Argument(help="The lab.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (course, collect, grade, feedback, export, regrade, report):
        app.command()(command)


def course(
    folder: Annotated[Path, typer.Argument(help="A folder that is not there yet, or is empty.")],
    name: Annotated[str, typer.Option(help="What the course is called; the folder's name without it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a course of your own: nbgrader's configuration, course.toml, and a first lab that passes `test`."""
    need_instructor_tools()
    from edl_labs.course.own_course import make_course

    with ProgressLines(quiet=as_json) as progress:
        report = make_course(folder, name=name, progress=progress)
    if as_json:
        emit(report.to_json())
        return
    for file in report.written:
        print(f"written: {file}")
    print(f"next: cd {folder}, then edl-labs test, then edl-labs edit {report.lab}")


def collect(
    assignment: Assignment,
    path: Annotated[Path, typer.Argument(help="The zip that was downloaded, or a folder.")],
    kind: Annotated[str, typer.Option("--from", help="canvas, moodle or dir.")],
    roster: Annotated[Path | None, typer.Option(help="The class as CSV; course.toml may name it.")] = None,
    times: Annotated[Path | None, typer.Option(help="Submission times, e.g. Moodle's grading worksheet.")] = None,
    pattern: Annotated[
        str, typer.Option(help="With --from dir: a regular expression with groups user or name, file, time, late.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Take a learning system's download: the newest notebook of each student goes where it is graded."""
    need_instructor_tools()
    from edl_labs.course.marks.collect import collect as take

    found = take(assignment, path, kind=kind, roster=roster, times=times, pattern=pattern)
    if as_json:
        emit(found.to_json())
    else:
        rows = [[r.student, r.name, r.state, r.submitted or "–", "; ".join(r.remarks)] for r in found.rows]
        table(assignment, ["student", "name", "state", "submitted", "remarks"], rows)
        for row in found.rows:
            if row.problem:
                print(f"{row.student}: {row.problem}", file=sys.stderr)
        for name in found.unmatched:
            print(f"not matched: {name}", file=sys.stderr)
        for remark in found.remarks:
            print(remark, file=sys.stderr)
        if found.missing:
            print(f"nothing from {counted(len(found.missing), 'student')}: {_first(found.missing)}", file=sys.stderr)
    stop(found.exit_code)


def grade(
    assignment: Annotated[str, typer.Argument(help="The lab that was handed in.")],
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", min=1, help="Submissions at a time.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw other secret cases; recorded for the class.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Students, or patterns such as 's1*'; repeatable.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade again what was graded.")] = False,
    all_cells: Annotated[
        bool, typer.Option("--all-cells", help="Run demonstrations too, which no mark needs.")
    ] = False,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="No sandbox; results are marked untrusted.")] = False,
    backend: Annotated[str, typer.Option(help="Where: local, ray or slurm. Machines share the course's folder.")] = "",
    address: Annotated[str, typer.Option(help="The Ray cluster's address.")] = "",
    partition: Annotated[str, typer.Option(help="The Slurm partition.")] = "",
    gpus: Annotated[float, typer.Option(min=0, help="GPUs leased for each task of Ray or Slurm.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Grade a whole class in sandboxes, judged from outside, into nbgrader's gradebook; resumes where it stopped."""
    need_instructor_tools()
    need_system("grading", fences=not unsafe)
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.classrun import grade as grade_class
    from edl_labs.course.grade.cluster.backends import make_backend
    from edl_labs.course.grade.cluster.grading_units import spread_class
    from edl_labs.course.marks.roster import course_remarks
    from edl_labs.course.sandbox import Level

    level = Level.UNSAFE if unsafe else None
    if backend:
        if fresh:
            why = "machines work out the results that are missing, and keep the others"
            raise UsageError("--fresh and --backend do not go together", why=why, next="leave one of them out")
        where = make_backend(backend, jobs=jobs or 2, address=address, partition=partition, gpus=gpus)
        with ProgressLines(quiet=as_json) as progress:
            spread_class(
                assignment,
                where,
                only=only or (),
                seed=seed,
                level=level,
                gpu=gpus > 0,
                all_cells=all_cells or None,
                progress=lambda done, total: progress(done, total, "units"),
            )
    with ProgressLines(quiet=as_json) as progress:

        def tell(so_far: ClassProgress) -> None:
            if as_json:
                print(json.dumps(so_far.to_json()), file=sys.stderr, flush=True)
            progress(so_far.done, so_far.total, _so_far(so_far))

        report = grade_class(
            assignment,
            jobs=jobs,
            seed=seed,
            only=only or (),
            fresh=fresh,
            level=level,
            on_gpu=bool(backend) and gpus > 0,
            all_cells=all_cells or None,
            progress=tell,
        )
        remarks = course_remarks(Course.find_class())
    if as_json:
        emit(report.to_json())
    else:
        _show_class(report)
        for remark in remarks:
            print(remark, file=sys.stderr)
    stop(report.exit_code)


def _so_far(now: ClassProgress) -> str:
    left = "" if now.left_s is None else f", about {now.left_s:.0f} s left"
    flags = "".join(f", {number} {flag}" for flag, number in now.flags)
    slow = "".join(f"; {who} has been at {where} for {seconds:.0f} s" for who, where, seconds in now.slow)
    done = f"{now.student}: {now.per_minute:.1f} a minute" if now.student else "nobody is done yet"
    return f"{done}{left}{flags}{slow}"


def _show_class(report: ClassReport) -> None:
    rows = []
    for row in report.rows:
        points = "not graded" if row.points is None else f"{row.points:g}/{row.max_points:g}"
        rows.append([row.student, points, row.state, ", ".join(row.flags)])
        for remark in row.remarks:
            print(f"{row.student}: {remark}", file=sys.stderr)
    table(report.assignment, ["student", "points", "state", "flags"], rows)
    print(f"{counted(len(rows), 'submission')} in {report.wall_s:.1f} s, sandbox: {report.level}, seed {report.seed}")


def feedback(
    assignment: Assignment,
    archive: Annotated[Path | None, typer.Option("--zip", help="Also pack them as the learning system wants.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Students; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page for each student: points, what was wrong, why, what next, and the notebook; needs nothing else."""
    need_instructor_tools()
    from edl_labs.course.marks.feedback import feedback as give

    with ProgressLines(quiet=as_json) as progress:
        found = give(assignment, only=only or (), archive=archive, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        for student, why in found.without.items():
            print(f"{student} has no page: {why}", file=sys.stderr)
        if found.waiting:
            print(f"prose not marked yet: {_first(found.waiting)}", file=sys.stderr)
        print(f"{counted(len(found.pages), 'page')}{f', packed in {found.archive}' if found.archive else ''}")
    stop(found.exit_code)


def export(
    assignment: Assignment,
    kind: Annotated[str, typer.Option("--to", help="canvas, moodle or csv.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    template: Annotated[
        Path | None, typer.Option("--file", help="The file downloaded from there, to be filled in.")
    ] = None,
    column: Annotated[str, typer.Option(help="The column to fill, when its name is not the lab's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Fill marks into the file that the learning system gave out, matched by id."""
    need_instructor_tools()
    from edl_labs.course.marks.export import export as give

    found = give(assignment, kind=kind, out=out, template=template, column=column)
    if as_json:
        emit(found.to_json())
    else:
        for student, points in found.unknown:
            print(f"not in {template}: {student}, {counted(points, 'point')}", file=sys.stderr)
        for name in found.without:
            print(f"no marks for {name}", file=sys.stderr)
        if found.waiting:
            print(f"prose not marked yet: {_first(found.waiting)}", file=sys.stderr)
        print(f"{counted(len(found.filled), 'mark')} in {found.file}")
    stop(found.exit_code)


def regrade(
    assignment: Assignment,
    exercises: Annotated[list[str], typer.Argument(help="The exercises that were corrected.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the marks; otherwise only show what would change.")
    ] = False,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Submissions at a time.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Grade corrected exercises again for all who attempted them: shows what changes; --apply writes the marks."""
    need_instructor_tools()
    need_system("grading")
    from edl_labs.course.marks.regrade import regrade as again

    with ProgressLines(quiet=as_json) as progress:
        found = again(assignment, exercises, apply=apply, jobs=jobs, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        rows = [
            [c.student, c.exercise, f"{c.before:g}", f"{c.after:g}", "the mark given by hand stays" if c.stands else ""]
            for c in found.changes
        ]
        table(f"{assignment}: {counted(len(rows), 'change')}", ["student", "exercise", "before", "after", ""], rows)
        for student, why in found.failed:
            print(f"{student} could not be graded and keeps the old marks: {why}", file=sys.stderr)
        said = "the changes are in the gradebook" if found.applied else "nothing was written: --apply does that"
        print(f"attempted by {counted(found.graded, 'student')}; {said}")
    stop(found.exit_code)


def _first(names: Sequence[str]) -> str:
    """As many names as a screen has room for."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}"


def report(
    assignment: Assignment,
    out: Annotated[Path | None, typer.Option(help="The HTML file.")] = None,
    alike: Annotated[
        float, typer.Option(min=0.1, max=1.0, help="Show pairs who share at least this much of their code.")
    ] = 0.8,
    as_json: AsJson = False,
) -> None:
    """The class at a glance: a histogram for each exercise, the most frequent mistakes, flags, and what looks alike."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.marks.class_page import write_report
    from edl_labs.course.marks.class_report import class_report
    from edl_labs.course.marks.leaderboard import leaderboards_or_none

    course = Course.find_class()
    found, solutions = class_report(assignment, course=course, least_alike=alike)
    path = out or course.grading(assignment).parent.parent / "reports" / f"{assignment}.html"
    boards = leaderboards_or_none(assignment, course)
    write_report(found, solutions, path, boards=boards)
    if as_json:
        emit(found.to_json())
    else:
        rows = [[e.name, _mean(e), e.mistakes[0][0] if e.mistakes else ""] for e in found.exercises]
        table(assignment, ["exercise", "mean", "most frequent mistake"], rows)
        alike_pairs = counted(len(found.pairs), "pair")
        circles = f", {counted(len(found.clusters), 'circle')} of three or more" if found.clusters else ""
        for board in boards:
            print_board(board)
        print(f"{counted(found.students, 'student')}, {alike_pairs} much alike{circles}, report in {path}")


def _mean(exercise: ExerciseOverview) -> str:
    """The mean share of the points; practice has none, and nothing is known where nobody's counts."""
    if not exercise.max_points:
        return "practice"
    return f"{exercise.mean:.0%}" if exercise.shares else "–"
