"""The command `edl-labs`: parses, calls, prints, sets exit codes. Logic lives in the modules it calls.

Exit codes: 0 all good, 1 something failed, 2 usage or environment, 3 inconclusive only, 4 a notebook crashed or a cell
never ran, 5 tampered with, 6 nothing to do.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from edl_labs import __version__
from edl_labs.cli import authors, instructors, maintainers, outside, planners, students
from edl_labs.errors import EdlError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Labs on efficient deep learning: work on them, write them, grade them, run them.",
)


def main() -> None:
    """Entry point: errors become sentences on standard error and an exit code."""
    try:
        app()
    except EdlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


for _module in (students, planners, authors, maintainers, instructors, outside):
    _module.add_to(app)
