"""Commands for other eyes than the instructor's: gradescope, canvas, leaderboard."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from edl_labs.cli.authors import need_instructor_tools
from edl_labs.cli.instructors import Assignment
from edl_labs.cli.output import AsJson, emit, print_board, stop, table
from edl_labs.errors import NothingToDo, UsageError
from edl_labs.units import counted

_FOLLOWED_S = 5.0  # a graded student takes seconds


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (gradescope, canvas, leaderboard):
        app.command()(command)


def canvas(
    assignment: Assignment,
    url: Annotated[str, typer.Option(help="Canvas's address, as in https://canvas.example.edu.")],
    course: Annotated[int, typer.Option(help="The course's number in Canvas.")],
    to: Annotated[int, typer.Option(help="The assignment's number in Canvas.")],
    send: Annotated[bool, typer.Option("--send", help="Enter the marks; otherwise only show them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the marks that Canvas would get by its API; --send enters them. The token is in CANVAS_TOKEN."""
    need_instructor_tools()
    from edl_labs.course.marks.canvas_api import send_to_canvas

    token = os.environ.get("CANVAS_TOKEN", "")
    found = send_to_canvas(assignment, url=url, course_number=course, assignment_number=to, token=token, send=send)
    if as_json:
        emit(found.to_json())
    else:
        table(assignment, ["student", "points"], [[who, f"{points:g}"] for who, points in found.marks])
        if found.possible != found.max_points:
            print(f"Canvas has {found.possible:g} points, the lab {found.max_points:g}; sent as is", file=sys.stderr)
        for said, names in (
            ("not in Canvas's course", found.unknown),
            ("no marks for", found.without),
            ("prose not marked yet", found.waiting),
        ):
            if names:
                print(f"{said}: {', '.join(names)}", file=sys.stderr)
        done = "entered in Canvas" if found.sent else "to send, nothing was sent: --send does that"
        print(f"{counted(len(found.marks), 'mark')} {done}")
    stop(found.exit_code)


def leaderboard(
    assignment: Assignment,
    html: Annotated[Path | None, typer.Option("--html", help="Write it as a page, too.")] = None,
    named: Annotated[bool, typer.Option("--named", help="Students' ids instead of pseudonyms.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Write the page again while a class is graded, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Who came nearest to light in what is graded so far; ties go to less memory, then to less money."""
    need_instructor_tools()
    from edl_labs.course.marks.leaderboard import leaderboards, write_page

    if follow and html is None:
        raise UsageError("--follow without --html", why="it keeps a page up to date", next="add --html PAGE.html")
    while True:
        try:
            boards = leaderboards(assignment, named=named)
        except NothingToDo:
            if not follow:
                raise
            boards = ()
        if html is not None and boards:
            write_page(boards, html, refreshed=follow)
        if not follow:
            break
        time.sleep(_FOLLOWED_S)
    if as_json:
        # Without --named what leaves the course names nobody.
        emit([hidden(board.to_json(), named=named) for board in boards])
        return
    for board in boards:
        print_board(board)
    if html is not None:
        print(f"written: {html}")


def hidden(board: dict[str, Any], *, named: bool) -> dict[str, Any]:
    """A board's JSON; the students' ids are left out unless names were asked for."""
    rows = [{key: value for key, value in row.items() if named or key != "student"} for row in board["standings"]]
    return {**board, "standings": rows}


def gradescope(
    assignment: Assignment,
    out: Annotated[Path | None, typer.Option(help="The zip to write.")] = None,
    wheel: Annotated[Path | None, typer.Option(help="The instructors' wheel; in a checkout it is built.")] = None,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Grade unfenced where no sandbox works there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a zip for Gradescope, whose autograder runs the judge outside the student's kernel."""
    need_instructor_tools()
    from edl_labs.course.marks.gradescope import gradescope_zip

    found = gradescope_zip(assignment, out or Path(f"{assignment}_gradescope.zip"), wheel=wheel, unsafe=unsafe)
    if as_json:
        emit(found.to_json())
        return
    by_hand = f", {counted(found.by_hand, 'point')} by hand" if found.by_hand else ""
    print(f"{found.archive}: {counted(found.points, 'point')} by its autograder{by_hand}; it holds solutions: keep it")
