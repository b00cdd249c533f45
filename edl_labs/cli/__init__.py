"""The command `edl-labs`: parses, calls, prints, sets exit codes. Logic lives in the modules it calls.

Exit codes: 0 all good, 1 something failed, 2 usage or environment, 4 a notebook crashed or a cell
never ran, 5 tampered with, 6 nothing to do.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from edl_labs import __version__
from edl_labs.cli import authors, graders, instructors, maintainers, outside, planners, students
from edl_labs.errors import EdlError, UsageError

# Where several extras bring a package, the first of these is named; other extras are asked for where they are used.
_EXTRAS = ("lab", "instructor", "vision", "data")
_PACKAGES = {"PIL": "pillow", "cv2": "opencv-python-headless"}  # whose names differ from their modules'

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Work on, write, grade and run labs on efficient deep learning.",
)


def main(command: Callable[[], object] = app) -> None:
    """Run `command`, by default the whole `edl-labs`: errors become sentences on standard error and an exit code."""
    try:
        command()
    except EdlError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if not error.name or error.name.split(".")[0] == "edl_labs":
            raise  # a mistake of this package's, which a traceback says more about
        print(not_installed(error.name.split(".")[0]), file=sys.stderr)
        sys.exit(UsageError.exit_code)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def not_installed(module: str) -> UsageError:
    """What to say where `module`, another package's, is missing: which of this package's extras brings it."""
    try:
        needs = importlib.metadata.requires("edl-labs") or []
    except importlib.metadata.PackageNotFoundError:
        needs = []
    package = _PACKAGES.get(module, module)
    mine = [need for need in needs if re.split(r"[^\w.-]", need)[0].lower() == package.lower().replace("_", "-")]
    brings = {found for need in mine for found in re.findall(r"extra == ['\"]([\w-]+)", need)}
    extra = next((one for one in _EXTRAS if one in brings), None)
    return UsageError(
        f"{module} is not installed",
        why="this command needs it" if extra is None else f"this command needs it; the extra `{extra}` installs it",
        next=f"run pip install {package}" if extra is None else f'run pip install "edl-labs[{extra}]"',
    )


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


for _module in (students, planners, authors, maintainers, instructors, graders, outside):
    _module.add_to(app)
