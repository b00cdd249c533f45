"""Commands that lead to other systems: gradescope, canvas."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from edl_labs.cli.authors import need_instructor_tools
from edl_labs.cli.instructors import Assignment
from edl_labs.cli.output import AsJson, emit, stop, table
from edl_labs.units import counted


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (gradescope, canvas):
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
