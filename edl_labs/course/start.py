"""Starting a student: the labs copied to where they say, never over their work, and JupyterLab opened."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from edl_labs.checks.lab_exercises import installed_courses
from edl_labs.checks.lab_facts import facts
from edl_labs.course.own_files import own_files
from edl_labs.errors import UsageError, did_you_mean
from edl_labs.values import Value

PUBLISHED = ".edl-labs-published.json"
START = "START.ipynb"
"""The page that opens first: the list of labs, what to do in a lab, and how to hand it in."""
_PACKAGE = Path(__file__).resolve().parents[1]
_OURS = _PACKAGE.name


@dataclass(frozen=True, repr=False)
class StartReport(Value):
    """What was done, as paths inside `folder`: `copied` is new, `kept` is the student's, `beside` a newer version."""

    folder: Path
    labs: tuple[str, ...]
    copied: tuple[str, ...]
    kept: tuple[str, ...]
    beside: tuple[str, ...]


def start(
    target: Path | str,
    lab: str | None = None,
    *,
    open: bool = True,
    labs: Path | None = None,
    course: str | None = None,
    launch: Callable[[Path], None] | None = None,
) -> StartReport:
    """Copy the released labs (or one) into `target`, then open JupyterLab there.

    `README.md` and a START page come along, and that page opens where all labs were requested; with `lab`, the lab's
    folder. A file that exists is never touched. Where a newer version of a file exists, it is written next to the
    student's, as `NAME.new-DIGEST.ipynb`. `labs` is where the released labs are (default: with the installed course,
    else with the package); `course` names one of several: the package of its wheel, or edl_labs.
    """
    source = labs or labs_folder(course)
    folder = Path(target).expanduser().absolute()
    if open and launch is None:
        _need_jupyterlab()
    chosen = _chosen(source, lab)
    _make(folder)
    copied, kept, beside = _copy(_files(source, chosen), folder)
    report = StartReport(folder, tuple(chosen), tuple(copied), tuple(kept), tuple(beside))
    if open:
        (launch or open_jupyterlab)(folder / (chosen[0] if lab else START))
    return report


def labs_folder(course: str | None = None) -> Path:
    """The released labs: a published tree around us, else an installed course, else the package or its repository.

    UsageError where `course`, a package, is not installed, and where several are and none is named.
    """
    here = [Path.cwd() / "labs"] if (Path.cwd() / PUBLISHED).is_file() and course is None else []
    courses = {name: exercises.parent / "labs" for name, exercises in installed_courses().items()}
    known = ", ".join((*courses, _OURS))
    if course not in (None, _OURS, *courses):
        raise UsageError(
            f"no course is called {course!r}", why=f"the installed courses are {known}", next="use one of them"
        )
    if course is None and not here and len(courses) > 1:
        then = f"run edl-labs start --course {next(iter(courses))}"
        raise UsageError("several courses are installed", why=f"they are {known}", next=then)
    theirs = [] if course == _OURS else [folder for name, folder in courses.items() if course in (None, name)]
    for folder in (*here, *theirs, _PACKAGE / "labs", _PACKAGE.parent / "labs"):
        if folder.is_dir() and any(folder.glob("lab*/*.ipynb")):
            return folder
    raise UsageError(
        "no labs were found",
        why="neither the installed package nor the folder that contains it has labs",
        next="install the wheel that your course gives you; in a checkout, run edl-labs build",
    )


def open_jupyterlab(folder: Path) -> None:
    """Run JupyterLab in `folder` until it is stopped."""
    _need_jupyterlab()
    try:
        subprocess.run(jupyterlab_command(folder), check=False)
    except KeyboardInterrupt:
        return


def jupyterlab_command(path: Path) -> list[str]:
    """The command that opens a folder or a notebook; JupyterLab needs a flag when it is run as root."""
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [sys.executable, "-m", "jupyterlab", *root, str(path)]


def _need_jupyterlab() -> None:
    if find_spec("jupyterlab") is None:
        raise UsageError(
            "JupyterLab is not installed",
            why=f"the Python at {sys.executable} does not have it",
            next='run pip install "edl-labs[lab]", or start with --no-open and open the notebooks in your own editor',
        )


def _chosen(source: Path, lab: str | None) -> list[str]:
    names = sorted(path.parent.name for path in source.glob("lab*/*.ipynb") if path.stem == path.parent.name)
    return names if lab is None else [one_called(lab, names)]


def one_called(lab: str, names: list[str]) -> str:
    """The one of `names` that is called `lab`, or begins with it as `lab04` does; UsageError with the nearest name."""
    matching = [name for name in names if name == lab] or [name for name in names if name.startswith(f"{lab}_")]
    if len(matching) != 1:
        raise UsageError(
            f"there is no lab called {lab!r}",
            why=f"the labs are {', '.join(names)}",
            next=did_you_mean(lab, names, cutoff=0.3) or "leave the name out to get them all",
        )
    return matching[0]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{folder} is not a folder", next="choose a folder for your labs") from None
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be created", why=str(error.strerror), next="choose a folder that you can write to"
        ) from None


def _files(source: Path, names: list[str]) -> Iterator[tuple[Path, bytes]]:
    """What belongs into a student's folder: each lab's files, the table of labs, and the page to start from."""
    for name in names:
        for path in own_files(source / name):
            yield path.relative_to(source), path.read_bytes()
    if (source / "README.md").is_file():
        yield Path("README.md"), (source / "README.md").read_bytes()
    yield Path(START), start_page(_chosen(source, None), install=_install(source))


def _copy(files: Iterable[tuple[Path, bytes]], folder: Path) -> tuple[list[str], list[str], list[str]]:
    copied: list[str] = []
    kept: list[str] = []
    beside: list[str] = []
    for inside, data in files:
        if _write_new(folder / inside, data):
            copied.append(inside.as_posix())
            continue
        kept.append(inside.as_posix())
        newer = _newer_name(folder / inside, data)
        if newer is not None and _write_new(newer, data):
            beside.append(newer.relative_to(folder).as_posix())
    return copied, kept, beside


_HOW = """\
# Start here

| lab | about | minutes | points |
|---|---|---|---|
{rows}

Click a lab to open it. The labs build on each other, so begin with the first. If a link does not work, that lab is not
in this folder yet; run `edl-labs start` with the name of this folder to add it.

## What to do in a lab

1. Run one cell after the other with **Shift+Enter**. Where the text says **Predict**, write your number down first.
2. In each exercise, replace `raise NotImplementedError()` with your code, run the cell, and run the `check` below it.
   The check says what is wrong, why, and what to try next. `hint("name")` gives one hint at a time.
3. You can save and stop at any time; your points so far are kept. When you continue, use *Run All Above*.

## How to hand in

1. Choose *Kernel → Restart Kernel and Run All Cells*, and make sure that each check shows the result that you expect.
2. Save. Hand in only the lab's notebook, without renaming it, in the place that your course names. Leave locked cells
   and the folder `.edl_labs` as they are.
3. To see beforehand how many points the public checks give, run `edl-labs check LAB/LAB.ipynb` in a terminal.

To install the labs on another machine: {install}. For more, see [README.md](README.md).
"""
_INSTALL = '`pip install "edl-labs[lab]"`, or the command that your course gave you'


def _install(source: Path) -> str:
    """How to install: as the published tree around the labs says, else the release."""
    try:
        return str(json.loads((source.parent / PUBLISHED).read_text(encoding="utf-8"))["install"])
    except (OSError, ValueError, KeyError, TypeError):
        return _INSTALL


def start_page(names: list[str], *, install: str) -> bytes:
    """The START page as a notebook of one cell, which JupyterLab shows as a page; its release is its own digest."""
    text = _HOW.format(rows="\n".join(map(_lab_row, names)), install=install)
    cell = {"cell_type": "markdown", "id": "start", "metadata": {"editable": False}, "source": text}
    stamp = {"release": hashlib.sha256(text.encode()).hexdigest()[:16]}
    page = {"cells": [cell], "metadata": {"edl_labs": stamp}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page, indent=1, ensure_ascii=False).encode()


def _lab_row(name: str) -> str:
    link = f"[{name}]({name}/{name}.ipynb)"
    try:
        known = facts(name)
    except UsageError:  # a lab of a course of its own, whose facts lie elsewhere
        return f"| {link} | | | |"
    return f"| {link} | {known.title} | {known.minutes_said} | {known.points:g} |"


def _write_new(path: Path, data: bytes) -> bool:
    """Write a file that does not exist yet; False, and nothing done, when anything has that name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written", why=str(error.strerror), next="choose a folder that you can write to"
        ) from None
    return True


def _newer_name(path: Path, data: bytes) -> Path | None:
    """Where a version goes that is not the one at `path`; None when that is this version, worked on or not."""
    if path.is_file() and path.read_bytes() == data:
        return None
    release = _release(data)
    if release is not None and path.is_file() and _release(path.read_bytes()) == release:
        return None
    if release is None:
        release = hashlib.sha256(data).hexdigest()
    return path.with_name(f"{path.stem}.new-{release[:8]}{path.suffix}")


def _release(data: bytes) -> str | None:
    """The digest that the build stamped into a notebook; saving a notebook keeps it."""
    try:
        return str(json.loads(data)["metadata"]["edl_labs"]["release"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
