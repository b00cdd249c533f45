"""Writes what students may see, a tree of labs with README and licence, and a wheel, after a scan for leaks."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.lab import leaks
from edl_labs.course.lab.build import Progress, build
from edl_labs.course.lab.install_line import install_line
from edl_labs.course.lab.own_wheel import build_own_wheel, distribution, is_own_course, refuse_changed_exercises
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.secret_functions import secret_functions
from edl_labs.course.own_files import LEFT_BEHIND, own_files
from edl_labs.course.start import PUBLISHED, START, start_page
from edl_labs.errors import EdlError, UsageError
from edl_labs.values import Value

MANIFEST = PUBLISHED
SOLUTIONS = "edl_labs/course/solutions"  # no student's kernel sees `course`
_NEVER = """\
# edl_labs with the judge: never publish

For instructors only: this wheel contains the solutions of the labs and the code that draws their secret cases. Install
it where you grade, never where students work, and never upload it to a place that students can reach. Students get the
wheel that `edl-labs wheel` builds.
"""
_README = """\
# {title}

[labs/README.md](labs/README.md) lists the labs, with the time that each one takes and the points that it gives.

In this folder, install the package that your course gives you, with JupyterLab: {install}. Then run

```
edl-labs start my-labs
```

This copies the labs into `my-labs` and opens them. It never overwrites your work: if a lab has changed, the new version
is put next to yours. If you work in this folder itself, for example on a JupyterHub, begin with
[labs/START.ipynb](labs/START.ipynb) instead. `edl-labs doctor` shows what your machine can do; no lab needs a GPU.

Each section asks you to *predict* before you measure. `check("name")` says what is right, what is wrong, and what to
try next; `hint("name")` gives one hint at a time; `edl-labs check FILE` runs all checks of a notebook.

Your points so far are in a folder `.edl_labs` next to each notebook, so you keep them when the kernel restarts. Marks
do not depend on this folder: do not hand it in, and delete it whenever you like.
"""


@dataclass(frozen=True, repr=False)
class PublishReport(Value):
    """What was published: the files in `target`, and those removed because no lab has them any more."""

    target: str
    files: tuple[str, ...]
    removed: tuple[str, ...]


def publish(course: Course, target: Path | str, *, progress: Progress | None = None) -> PublishReport:
    """Write the students' tree into `target`.

    Refuses a stale labs/, a leak, a target inside solutions/ or around the course, and a target that holds files which
    an earlier publish did not write (a `.git` folder may be there).
    """
    folder = Path(target).resolve()
    _refuse_inside(course, folder)
    refuse_changed_exercises(course)
    before = _published_before(folder)
    stale = build(course, check=True, progress=progress)
    if not stale.ok:
        raise EdlError(
            f"labs/ is out of date: {', '.join(stale.changed)}",
            why="the published files must match the sources",
            next="run edl-labs build, then publish again",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".edl-publish-", dir=folder.parent) as temporary:
        staged = Path(temporary) / "tree"
        files = _stage(course, staged)
        labs = read_labs(course)
        known, functions = leaks.secrets(labs), secret_functions(course, labs)
        leaks.refuse(leaks.scan([staged], known, functions=functions, root=staged))
        return _move(staged, folder, files, before)


def build_wheel(course: Course, folder: Path, *, judge: bool = False) -> Path:
    """The course's wheel in `folder`: the students', scanned for leaks, or the instructors' with the judge's parts.

    The instructors' holds the solutions too, and has `+judge` in its version, which public indexes refuse. An
    instructor's own course has a small wheel for students with its own labs, unless its own pyproject.toml describes
    another.
    """
    if find_spec("hatchling") is None:
        why, then = "it is needed to build wheels", 'run pip install "edl-labs[instructor]"'
        raise UsageError("hatchling is not installed", why=why, next=then)
    own = is_own_course(course.root) and not (course.root / "pyproject.toml").is_file()
    if own and judge:
        why, then = "only edl_labs itself has an instructors' wheel", "leave out --judge, and grade in this folder"
        raise UsageError(
            "your own course needs no wheel with the judge: it is graded in its folder", why=why, next=then
        )
    with tempfile.TemporaryDirectory(prefix="edl-wheel-") as temporary:
        made = build_own_wheel(course, Path(temporary)) if own else _package_wheel(course, Path(temporary), judge=judge)
        if not judge:
            labs = read_labs(course)
            leaks.refuse(
                leaks.scan([made], leaks.secrets(labs), functions=secret_functions(course, labs), root=made.parent)
            )
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, folder))


def _package_wheel(course: Course, folder: Path, *, judge: bool) -> Path:
    """The wheel that the pyproject.toml of a checkout of edl_labs describes."""
    from hatchling.builders.wheel import WheelBuilder

    project = course.root / "pyproject.toml"
    if not project.is_file():
        why = "it has neither its own exercises nor a pyproject.toml"
        raise UsageError(
            "this course has no wheel", why=why, next="create a course with its own exercises: edl-labs course DIR"
        )
    config = tomllib.loads(project.read_text(encoding="utf-8"))
    if judge:
        config["tool"]["hatch"]["build"].pop("exclude")
        config["project"]["version"] += "+judge"
        config["project"]["readme"] = {"content-type": "text/markdown", "text": _NEVER}
        config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]["solutions"] = SOLUTIONS
    _name_own_files(course.root, config)
    return Path(next(WheelBuilder(str(course.root), config=config).build(directory=str(folder), versions=["standard"])))


def _name_own_files(root: Path, config: dict[str, Any]) -> None:
    """Put the files of a folder in its place where it is packed by name: hatchling would pack whatever lies there."""
    wheel = config["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name, place in tuple(wheel.get("force-include", {}).items()):
        if (root / name).is_dir():
            del wheel["force-include"][name]
            paths = [path.relative_to(root / name).as_posix() for path in own_files(root / name)]
            wheel["force-include"] |= {f"{name}/{path}": f"{place}/{path}" for path in paths}


def _refuse_inside(course: Course, folder: Path) -> None:
    private = (course.solutions, course.labs, course.root / "edl_labs", course.root / ".git")
    if folder == course.root or any(folder == place or place in folder.parents for place in private):
        raise UsageError(
            f"cannot publish to {folder.name}",
            why="this folder is part of the course itself",
            next="choose a folder outside the course, or a new one in build/",
        )


def _published_before(folder: Path) -> list[str]:
    """The files that an earlier publish left in `folder`; UsageError when others are there."""
    if not folder.exists():
        return []
    if not folder.is_dir():
        raise UsageError(f"{folder.name} is a file", next="choose a folder")
    present = {p.name for p in folder.iterdir() if p.name != ".git"}
    if not present:
        return []
    before = _manifest(folder)
    inside = {p.relative_to(folder).as_posix() for p in _files(folder)}
    foreign = sorted(inside - {*before, MANIFEST})
    if not before or foreign:
        named = ", ".join(foreign[:3]) + (" ..." if len(foreign) > 3 else "")
        raise UsageError(
            f"{folder.name} contains files that publish did not write: {named}",
            why="publish neither adds its files to other files nor removes other files",
            next="choose an empty folder, or move these files elsewhere",
        )
    return before


def _manifest(folder: Path) -> list[str]:
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return [name for name in names if ".." not in PurePosixPath(name).parts and not PurePosixPath(name).is_absolute()]


def _files(folder: Path) -> list[Path]:
    found = [p for p in folder.rglob("*") if p.is_symlink() or p.is_file()]
    return sorted(p for p in found if p.relative_to(folder).parts[0] != ".git")


def _stage(course: Course, staged: Path) -> list[str]:
    shutil.copytree(course.labs, staged / "labs", ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    title = distribution(course.root).title if is_own_course(course.root) else "efficient deep learning"
    install = install_line(course.root)
    (staged / "labs" / START).write_bytes(start_page(course.lab_names(), install=install.text))
    (staged / "README.md").write_text(_README.format(title=f"Labs: {title}", install=install.text), encoding="utf-8")
    for wheel in install.wheels:
        shutil.copyfile(wheel, staged / wheel.name)
    if (course.root / "LICENSE").is_file():
        shutil.copyfile(course.root / "LICENSE", staged / "LICENSE")
    files = [p.relative_to(staged).as_posix() for p in _files(staged)]
    text = json.dumps({"schema": PublishReport.SCHEMA, "install": install.text, "files": files}, indent=1) + "\n"
    (staged / MANIFEST).write_text(text, encoding="utf-8")
    return files


def _move(staged: Path, folder: Path, files: list[str], before: list[str]) -> PublishReport:
    folder.mkdir(exist_ok=True)
    for name in [*files, MANIFEST]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(staged / name, folder / name)
    removed = sorted(set(before) - set(files))
    for name in removed:
        (folder / name).unlink(missing_ok=True)
        _remove_empty(folder, (folder / name).parent)
    return PublishReport(folder.as_posix(), tuple(files), tuple(removed))


def _remove_empty(folder: Path, inside: Path) -> None:
    while inside != folder and inside.is_dir() and not any(inside.iterdir()):
        inside.rmdir()
        inside = inside.parent
