"""Commands for instructors: course, collect, feedback, export, regrade, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edl_labs.cli.authors import need_instructor_tools, need_system
from edl_labs.cli.output import AsJson, ProgressLines, emit, print_board, stop, table
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.marks.class_report import ExerciseOverview

_NAMES_SHOWN = 20  # about three lines of a terminal
Assignment = Annotated[str, typer.Argument(help="The lab.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (course, collect, feedback, export, regrade, report):
        app.command()(command)


def course(
    folder: Annotated[Path, typer.Argument(help="The course's folder; a new course needs a new or empty folder.")],
    name: Annotated[str, typer.Option(help="The name of the course (default: the folder's name).")] = "",
    labs: Annotated[
        str, typer.Option(help="Labs of edl_labs to copy, separated by commas, or all; also into an existing course.")
    ] = "",
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Upgrade the copied labs to the installed release.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create your own course: nbgrader's configuration, course.toml and labs (of edl_labs, or a first of yours)."""
    need_instructor_tools()
    from edl_labs.course.own_course import make_course
    from edl_labs.course.taken_labs import chosen_labs, labs_to_upgrade

    if upgrade or (labs and (folder / "nbgrader_config.py").is_file()):
        _take_labs(folder, labs_to_upgrade(folder) if upgrade else chosen_labs(labs), as_json=as_json)
        return
    with ProgressLines(quiet=as_json) as progress:
        report = make_course(folder, name=name, labs=chosen_labs(labs) if labs else (), progress=progress)
    if as_json:
        emit(report.to_json())
        return
    for file in report.written:
        print(f"written: {file}")
    then = "enter the due dates in course.toml" if labs else f"edl-labs test, then edl-labs edit {report.lab}"
    print(f"next: cd {folder}, then {then}")


def _take_labs(folder: Path, labs: Sequence[str], *, as_json: bool) -> None:
    """Copy labs into a course, or upgrade them, and build it; without the build where files have to be merged first."""
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.build import build
    from edl_labs.course.taken_labs import UPGRADE, take_labs

    found = take_labs(Course(folder), labs)
    if not found.conflicts:
        with ProgressLines(quiet=as_json) as progress:
            build(Course(folder), progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        for file in found.kept:
            print(f"kept your version: {file}")
        for file in found.orphans:
            print(f"kept {file}, which release {found.release} no longer contains; delete it if you do not need it")
        for file in found.conflicts:
            print(
                f"both you and release {found.release} changed {file}: the release's version is {UPGRADE}/{file}",
                file=sys.stderr,
            )
        if found.conflicts:
            print("next: merge the release's changes into your files, then edl-labs build", file=sys.stderr)
        changed = counted(len(found.written) + len(found.removed), "file")
        print(f"{counted(len(found.labs), 'lab')} of release {found.release}; {changed} changed")
    stop(1 if found.conflicts else 0)


def collect(
    assignment: Assignment,
    path: Annotated[Path, typer.Argument(help="The zip from the learning system, or a folder.")],
    kind: Annotated[str, typer.Option("--from", help="The source: canvas, moodle or dir.")],
    roster: Annotated[
        Path | None, typer.Option(help="The class list as CSV (default: the one that course.toml names).")
    ] = None,
    times: Annotated[
        Path | None, typer.Option(help="A file of submission times, such as Moodle's grading worksheet.")
    ] = None,
    pattern: Annotated[
        str,
        typer.Option(
            help="With --from dir: a regular expression with the group user or name, and optionally file, time, late."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Read the submissions from a learning system's download, and keep each student's newest notebook for grading."""
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
            print(f"belongs to no known student: {name}", file=sys.stderr)
        for remark in found.remarks:
            print(remark, file=sys.stderr)
        if found.missing:
            missing = counted(len(found.missing), "student")
            print(f"no submission from {missing}: {_first(found.missing)}", file=sys.stderr)
    stop(found.exit_code)


def feedback(
    assignment: Assignment,
    archive: Annotated[
        Path | None, typer.Option("--zip", help="Also pack the pages into this zip, for the learning system.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only these students; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained page for each student: points, what was wrong, why, what to do next, and the notebook."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.grade.nbgrader_assignments import is_nbgraders
    from edl_labs.course.marks.feedback import feedback as give
    from edl_labs.course.marks.nbgrader_feedback import nbgraders_feedback

    with ProgressLines(quiet=as_json) as progress:
        writer = nbgraders_feedback if is_nbgraders(Course.find_class(), assignment) else give
        found = writer(assignment, only=only or (), archive=archive, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        for student, why in found.without.items():
            print(f"{student} has no page: {why}", file=sys.stderr)
        if found.waiting:
            print(f"written answers not yet marked: {_first(found.waiting)}", file=sys.stderr)
        print(f"{counted(len(found.pages), 'page')}{f', packed in {found.archive}' if found.archive else ''}")
    stop(found.exit_code)


def export(
    assignment: Assignment,
    kind: Annotated[str, typer.Option("--to", help="The format: canvas, moodle or csv.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    template: Annotated[
        Path | None, typer.Option("--file", help="The file from the learning system that is to be filled in.")
    ] = None,
    column: Annotated[str, typer.Option(help="The column to fill in (default: the one with the lab's name).")] = "",
    as_json: AsJson = False,
) -> None:
    """Fill the marks into the file from the learning system, matching students by id."""
    need_instructor_tools()
    from edl_labs.course.marks.export import export as give

    found = give(assignment, kind=kind, out=out, template=template, column=column)
    if as_json:
        emit(found.to_json())
    else:
        for student, points in found.unknown:
            print(f"not in {template}: {student}, {counted(points, 'point')}", file=sys.stderr)
        for name in found.without:
            print(f"there are no marks for {name}", file=sys.stderr)
        if found.waiting:
            print(f"written answers not yet marked: {_first(found.waiting)}", file=sys.stderr)
        print(f"{counted(len(found.filled), 'mark')} in {found.file}")
    stop(found.exit_code)


def regrade(
    assignment: Assignment,
    exercises: Annotated[list[str], typer.Argument(help="The exercises that were corrected.")],
    apply: Annotated[
        bool, typer.Option("--apply", help="Save the new marks; without it, only show what would change.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=1, help="How many submissions to grade at the same time.")
    ] = 2,
    as_json: AsJson = False,
) -> None:
    """Grade corrected exercises again for all students who attempted them, and show the changes; --apply saves them."""
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
        said = "the changes are in the gradebook" if found.applied else "nothing was saved; --apply saves the changes"
        print(f"attempted by {counted(found.graded, 'student')}; {said}")
    stop(found.exit_code)


def _first(names: Sequence[str]) -> str:
    """As many names as a screen has room for."""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{', '.join(names[:_NAMES_SHOWN])}{more}"


def report(
    assignment: Assignment,
    out: Annotated[Path | None, typer.Option(help="The HTML file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the class at a glance: a histogram for each exercise, frequent mistakes, flags, and similar submissions."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.marks.class_page import write_report
    from edl_labs.course.marks.class_report import class_report
    from edl_labs.course.marks.leaderboard import leaderboards_or_none

    course = Course.find_class()
    found, solutions = class_report(assignment, course=course)
    path = out or course.grading(assignment).parent.parent / "reports" / f"{assignment}.html"
    boards = leaderboards_or_none(assignment, course)
    write_report(found, solutions, path, boards=boards)
    if as_json:
        emit(found.to_json())
    else:
        rows = [[e.name, _mean(e), e.mistakes[0][0] if e.mistakes else ""] for e in found.exercises]
        table(assignment, ["exercise", "mean", "most frequent mistake"], rows)
        alike_pairs = counted(len(found.pairs), "pair")
        circles = f", {counted(len(found.clusters), 'group')} of three or more" if found.clusters else ""
        for board in boards:
            print_board(board)
        print(f"{counted(found.students, 'student')}, {alike_pairs} of similar submissions{circles}; report: {path}")


def _mean(exercise: ExerciseOverview) -> str:
    """The mean share of the points; practice has none, and nothing is known where nobody's counts."""
    if not exercise.max_points:
        return "practice"
    return f"{exercise.mean:.0%}" if exercise.shares else "–"
