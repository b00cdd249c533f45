"""Commands whose results are shown outside the course: gradescope, canvas, leaderboard."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edl_labs.cli.authors import need_instructor_tools
from edl_labs.cli.instructors import Assignment
from edl_labs.cli.output import AsJson, ProgressLines, emit, print_board, stop, table
from edl_labs.errors import UsageError
from edl_labs.units import counted, seconds

if TYPE_CHECKING:
    from edl_labs.course.marks.entry_timelines import EntryTimelines
    from edl_labs.course.marks.leaderboard import Leaderboard, Standing

_FOLLOWED_S = 5.0  # a graded student takes seconds


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (gradescope, canvas, leaderboard):
        app.command()(command)


def canvas(
    assignment: Assignment,
    url: Annotated[str, typer.Option(help="The address of Canvas, such as https://canvas.example.edu.")],
    course: Annotated[int, typer.Option(help="The number of the course in Canvas.")],
    to: Annotated[int, typer.Option(help="The number of the assignment in Canvas.")],
    send: Annotated[bool, typer.Option("--send", help="Send the marks to Canvas; without it, only show them.")] = False,
    times: Annotated[
        Path | None, typer.Option(help="Only write the submission times to this CSV file, for collect --times.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the marks that --send would send to Canvas through its API. The token is read from CANVAS_TOKEN."""
    need_instructor_tools()
    from edl_labs.course.marks.canvas_api import read_canvas_times, send_to_canvas, write_canvas_times

    token = os.environ.get("CANVAS_TOKEN", "")
    if times is not None:
        moments = read_canvas_times(url=url, course_number=course, assignment_number=to, token=token)
        write_canvas_times(times, moments)
        emit(moments) if as_json else print(f"{counted(len(moments), 'time')} in {times}")
        return
    found = send_to_canvas(assignment, url=url, course_number=course, assignment_number=to, token=token, send=send)
    if as_json:
        emit(found.to_json())
    else:
        table(assignment, ["student", "points"], [[who, f"{points:g}"] for who, points in found.marks])
        if found.possible != found.max_points:
            print(
                f"Canvas has {found.possible:g} points, the lab {found.max_points:g}: marks are not rescaled",
                file=sys.stderr,
            )
        for said, names in (
            ("not in the Canvas course", found.unknown),
            ("in Canvas, but without marks here", found.without),
            ("written answers not yet marked", found.waiting),
        ):
            if names:
                print(f"{said}: {', '.join(names)}", file=sys.stderr)
        done = "entered in Canvas" if found.sent else "ready; nothing was sent yet (--send sends them)"
        print(f"{counted(len(found.marks), 'mark')} {done}")
    stop(found.exit_code)


def leaderboard(
    assignment: Assignment,
    html: Annotated[Path | None, typer.Option("--html", help="Also write the leaderboard to this HTML page.")] = None,
    named: Annotated[bool, typer.Option("--named", help="Show students' ids instead of pseudonyms.")] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Keep the page up to date while a class is graded; Ctrl-C writes it one last time."
        ),
    ] = False,
    entry: Annotated[
        str, typer.Option(help="Compare this entry with the instructor's, step by step; NAME is as shown.")
    ] = "",
    trace: Annotated[
        Path | None, typer.Option(help="With --entry: write both timelines to this file, for Perfetto.")
    ] = None,
    instructor: Annotated[
        bool | None,
        typer.Option(help="Show memory, money and timelines on the page (default: only after the last due date)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rank the graded entries by efficiency; in a tie, less memory wins, then less money."""
    need_instructor_tools()
    from edl_labs.course.course_folder import Course
    from edl_labs.course.marks.entry_timelines import is_over
    from edl_labs.course.marks.leaderboard import found_entry, leaderboards

    if follow and html is None:
        raise UsageError(
            "--follow needs --html",
            why="--follow keeps the page that --html writes up to date",
            next="add --html PAGE.html",
        )
    if trace is not None and not entry:
        raise UsageError("--trace needs --entry", why="a trace shows a single entry", next="add --entry NAME")
    if entry:
        board, row, kept = found_entry(leaderboards(assignment, named=named), entry)
        _show_entry(board, row, kept, trace, as_json=as_json)
        return
    page = _Page(assignment, html, named=named, quiet=as_json) if html is not None else None
    if page is not None and follow:
        page.follow()
    boards = leaderboards(assignment, named=named)
    if page is not None:
        shows = is_over(Course.find_class(), assignment) if instructor is None else instructor
        page.write(boards, instructor=shows)
        if not shows:
            print(
                "the page shows only places and whole percentages; --instructor adds memory, money and timelines",
                file=sys.stderr,
            )
    if as_json:
        # Without --named what leaves the course names nobody.
        emit([hidden(board.to_json(), named=named) for board in boards])
        return
    for board in boards:
        print_board(board)
    if html is not None:
        print(f"written: {html}")


@dataclass(frozen=True)
class _Page:
    """A leaderboard's page, written once or again and again."""

    assignment: str
    path: Path
    named: bool
    quiet: bool

    def write(self, boards: Iterable[Leaderboard], *, instructor: bool = False, refreshed: bool = False) -> None:
        from edl_labs.course.marks.leaderboard import write_page

        with ProgressLines(quiet=self.quiet or refreshed) as progress:
            write_page(
                self.assignment, boards, self.path, instructor=instructor, refreshed=refreshed, progress=progress
            )

    def follow(self) -> None:
        """Write it anew until Ctrl-C, and say what is waited for and what came."""
        said = ""
        try:
            while True:
                boards = self._so_far()
                self.write(boards, refreshed=True)
                news = self._news(boards)
                if news != said:
                    print(news, file=sys.stderr, flush=True)
                said = news
                time.sleep(_FOLLOWED_S)
        except KeyboardInterrupt:
            print("the page was written one last time; browsers no longer reload it", file=sys.stderr, flush=True)
            if not self._so_far():
                self.write(())

    def _so_far(self) -> tuple[Leaderboard, ...]:
        from edl_labs.course.marks.leaderboard import NobodyRanked, leaderboards

        try:
            return leaderboards(self.assignment, named=self.named)
        except NobodyRanked:
            return ()

    def _news(self, boards: Iterable[Leaderboard]) -> str:
        ranked = {row.student for board in boards for row in board.standings}
        if ranked:
            return f"{self.path}: {counted(len(ranked), 'student')} ranked"
        then = f"run edl-labs grade {self.assignment} in another terminal; Ctrl-C stops this command"
        return f"{self.path}: no entry is ranked yet; {then}"


def _show_entry(board: Leaderboard, row: Standing, kept: EntryTimelines, trace: Path | None, *, as_json: bool) -> None:
    """An entry step by step: theirs, the instructor's, the difference, and where it lies."""
    from edl_labs.course.marks.entry_timelines import signed

    if trace is not None:
        trace.write_text(json.dumps(kept.to_chrome_trace(row.name)), encoding="utf-8")
    steps = kept.rows()
    if as_json:
        emit({"exercise": board.exercise, "name": row.name, "case": kept.case, "steps": [s.to_json() for s in steps]})
        return
    lines = [
        [s.step, *map(seconds, (s.theirs.duration_s, s.reference.duration_s)), signed(s.difference_s), s.gap]
        for s in steps
    ]
    title = f"{board.assignment}: {board.exercise} of {row.name}, case: {kept.case}"
    table(title, ["step", "this entry", "instructor", "difference", "kernels, or what they waited for"], lines)
    if kept.theirs.gpus != kept.reference.gpus:
        print(f"this entry rented {counted(kept.theirs.gpus, 'GPU')}, the instructor's {kept.reference.gpus}")
    if trace is not None:
        print(f"written: {trace}")


def hidden(board: dict[str, Any], *, named: bool) -> dict[str, Any]:
    """A board's JSON; the students' ids are left out unless names were requested."""
    rows = [{key: value for key, value in row.items() if named or key != "student"} for row in board["standings"]]
    return {**board, "standings": rows}


def gradescope(
    assignment: Assignment,
    out: Annotated[Path | None, typer.Option(help="The zip to write.")] = None,
    wheel: Annotated[
        Path | None, typer.Option(help="The instructors' wheel (default in a checkout: build it).")
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Grade without a sandbox if the container does not allow one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build a zip for Gradescope; its autograder runs the judge outside the student's kernel."""
    need_instructor_tools()
    from edl_labs.course.marks.gradescope import gradescope_zip

    found = gradescope_zip(assignment, out or Path(f"{assignment}_gradescope.zip"), wheel=wheel, unsafe=unsafe)
    if as_json:
        emit(found.to_json())
        return
    by_hand = f", {counted(found.by_hand, 'point')} marked by hand" if found.by_hand else ""
    print(
        f"{found.archive}: {counted(found.points, 'point')} from the autograder{by_hand}; "
        "do not share this file: it contains solutions"
    )
