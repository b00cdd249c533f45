"""Commands of a term: collect, feedback, export, regrade, report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edl_labs.cli.author import need_instructor_tools
from edl_labs.cli.output import AsJson, Progress, emit, stop, table

Assignment = Annotated[str, typer.Argument(help="The lab.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (collect, feedback, export, regrade, report):
        app.command()(command)


def collect(
    assignment: Assignment,
    path: Annotated[Path, typer.Argument(help="The zip that was downloaded, or a folder.")],
    kind: Annotated[str, typer.Option("--from", help="canvas, moodle or dir.")],
    roster: Annotated[Path | None, typer.Option(help="The class as CSV; course.toml may name it.")] = None,
    times: Annotated[Path | None, typer.Option(help="Submission times, e.g. Moodle's grading worksheet.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a learning system's download: the newest notebook of each student goes where it is graded."""
    need_instructor_tools()
    from edl_labs.course.marks.collect import collect as take

    found = take(assignment, path, kind=kind, roster=roster, times=times)
    if as_json:
        emit(found.to_json())
    else:
        rows = [[r.student, r.name, r.state, r.submitted or "–", "; ".join(r.remarks)] for r in found.rows]
        table(assignment, ["student", "name", "state", "submitted", "remarks"], rows)
        for name in found.unmatched:
            print(f"not matched: {name}", file=sys.stderr)
        for remark in found.remarks:
            print(remark, file=sys.stderr)
        if found.missing:
            print(f"nothing from {len(found.missing)}: {', '.join(found.missing[:20])}", file=sys.stderr)
    stop(found.exit_code)


def feedback(
    assignment: Assignment,
    archive: Annotated[Path | None, typer.Option("--zip", help="Also pack them as the learning system wants.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Students; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """One page for each student: points, what was wrong, why, what next, and the notebook; needs nothing else."""
    need_instructor_tools()
    from edl_labs.course.marks.feedback import feedback as give

    with Progress(quiet=as_json) as progress:
        found = give(assignment, only=only or (), archive=archive, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        for student, why in found.without:
            print(f"{student} has no page: {why}", file=sys.stderr)
        if found.waiting:
            print(f"prose not marked yet: {', '.join(found.waiting[:20])}", file=sys.stderr)
        print(f"{len(found.pages)} pages{f', packed in {found.archive}' if found.archive else ''}")
    stop(found.exit_code)


def export(
    assignment: Assignment,
    kind: Annotated[str, typer.Option("--to", help="canvas, moodle or csv.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    template: Annotated[Path | None, typer.Option("--file", help="The file downloaded from there.")] = None,
    column: Annotated[str, typer.Option(help="The column to fill, when its name is not the lab's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Marks into the file that the learning system gave out, matched by id."""
    need_instructor_tools()
    from edl_labs.course.marks.export import export as give

    found = give(assignment, kind=kind, out=out, template=template, column=column)
    if as_json:
        emit(found.to_json())
    else:
        for student, points in found.unknown:
            print(f"not in {template}: {student}, {points:g} points", file=sys.stderr)
        for name in found.without:
            print(f"no marks for {name}", file=sys.stderr)
        if found.waiting:
            print(f"prose not marked yet: {', '.join(found.waiting[:20])}", file=sys.stderr)
        print(f"{len(found.filled)} marks in {found.file}")
    stop(found.exit_code)


def regrade(
    assignment: Assignment,
    exercises: Annotated[list[str], typer.Argument(help="The exercises that were mended.")],
    apply: Annotated[bool, typer.Option("--apply", help="Write the marks; else only show what would change.")] = False,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Submissions at a time.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Grade mended exercises again for all who attempted them: a table of changes; with --apply, the marks."""
    need_instructor_tools()
    from edl_labs.course.marks.regrade import regrade as again

    with Progress(quiet=as_json) as progress:
        found = again(assignment, exercises, apply=apply, jobs=jobs, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        rows = [
            [c.student, c.exercise, f"{c.before:g}", f"{c.after:g}", "a person's mark stands" if c.stands else ""]
            for c in found.changes
        ]
        table(f"{assignment}: {len(rows)} changes", ["student", "exercise", "before", "after", ""], rows)
        for student, why in found.failed:
            print(f"{student} keeps the marks there are: {why}", file=sys.stderr)
        said = "written" if found.applied else "nothing was written; --apply writes them"
        print(f"{found.graded} attempted it; {said}")
    stop(found.exit_code)


def report(
    assignment: Assignment,
    out: Annotated[Path | None, typer.Option(help="The HTML file.")] = None,
    alike: Annotated[float, typer.Option(min=0.1, max=1.0, help="Share of code from which pairs are shown.")] = 0.8,
    as_json: AsJson = False,
) -> None:
    """The class at a glance: a histogram for each exercise, which mistake how often, flags, and what looks alike."""
    need_instructor_tools()
    from edl_labs.course.grade.course_folder import CourseFolder
    from edl_labs.course.marks.glance import glance, write_glance

    course = CourseFolder.find()
    found, solutions = glance(assignment, course=course, least_alike=alike)
    path = out or course.grading(assignment).parent.parent / "reports" / f"{assignment}.html"
    write_glance(found, solutions, path)
    if as_json:
        emit(found.to_json())
    else:
        rows = [[e.name, f"{e.mean:.0%}", e.mistakes[0][0] if e.mistakes else ""] for e in found.exercises]
        table(assignment, ["exercise", "mean", "most frequent mistake"], rows)
        print(f"{found.students} students, {len(found.pairs)} pairs much alike, report in {path}")
