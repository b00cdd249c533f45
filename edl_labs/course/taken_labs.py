"""Labs of edl_labs in an instructor's own course: copied there, and brought to another release without losing changes.

A copy is the lab's source and its exercises; the build makes the rest. `taken_labs.json` keeps a digest of each file as
it was copied, so that an upgrade can tell the release's changes from the instructor's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs import __version__
from edl_labs.checks.lab_exercises import module_path
from edl_labs.course.course_folder import LAB_NAME, Course
from edl_labs.course.own_files import own_files
from edl_labs.errors import NothingToDo, UsageError, did_you_mean
from edl_labs.values import Value

STAMP = "taken_labs.json"
UPGRADE = "build/upgrade"  # where a release's file lies that could not take the place of a changed one
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, repr=False)
class TakenLabs(Value):
    """What was copied: files written and removed, and files that the instructor changed and that stay."""

    labs: tuple[str, ...]
    release: str
    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    orphans: tuple[str, ...]
    """Files that were changed in the course and are no longer in the release: they are kept."""
    conflicts: tuple[str, ...]
    """Files changed in the course and in the release: the course's are kept, the release's go to build/upgrade/."""


def offered_labs() -> dict[str, Path]:
    """The labs that this installation has with solutions and judges, in order, with the folders of their sources.

    A checkout has them in `solutions/`, the instructors' wheel in `edl_labs/course/solutions/`, the students' nowhere.
    """
    checkout = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE / "course"
    found = (path for path in sorted((checkout / "solutions").glob("lab*")) if LAB_NAME.fullmatch(path.name))
    return {path.name: path for path in found if module_path(path.name, _PACKAGE / "exercises").is_file()}


def chosen_labs(names: str) -> list[str]:
    """The labs that `names` means: names with commas between them, or `all`; UsageError for one that is not offered."""
    offered = offered_labs()
    if not offered:
        raise UsageError(
            "this installation has no labs to copy",
            why="the solutions are in a checkout and in the instructors' wheel, but not in the students' wheel",
            next='run edl-labs wheel --judge in a checkout, then pip install "FILE.whl[instructor,lab]" here',
        )
    chosen = list(offered) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    for name in chosen:
        if name not in offered:
            then = did_you_mean(name, offered, cutoff=0.4) or f"choose from {', '.join(offered)}"
            raise UsageError(f"edl_labs has no lab named {name!r}", next=then)
    return chosen


def labs_to_upgrade(root: Path) -> list[str]:
    """The labs that the course in `root` took and this release still has; NothingToDo where there are none."""
    names = sorted(_stamped(root))
    if not names:
        why = f"{STAMP} does not list any"
        raise NothingToDo("the course has no labs of edl_labs", why=why, next="copy one: edl-labs course . --labs LAB")
    return chosen_labs(",".join(sorted({*names} & {*offered_labs()})))


def take_labs(course: Course, names: Collection[str]) -> TakenLabs:
    """Copy labs into the course, or bring those that it has to this release; the course must be built afterwards.

    A file that only the release changed is replaced, one that only the instructor changed stays. UsageError where the
    course has a lab of its own by one of these names, before anything is written.
    """
    stamped, offered = _stamped(course.root), offered_labs()
    for name in names:
        if name not in stamped and (course.solutions / name).exists():
            why = f"{course.shown(course.solutions / name)} was not copied from edl_labs"
            raise UsageError(f"the course has a lab of its own called {name}", why=why, next="rename your lab first")
    done: dict[str, list[str]] = {what: [] for what in ("written", "removed", "kept", "orphans", "conflicts")}
    for name in names:
        new = dict(_files(name, offered[name]))
        base = stamped.get(name, {}).get("files", {})
        for file, what in _steps(course.root, base, new):
            _apply(course.root, file, new.get(file), what)
            done[what].append(file)
        golden = f"edl_labs/exercises/goldens/{name}.json"  # the build keeps it where only last digits differ
        _write(course.root / golden, (_PACKAGE.parent / golden).read_bytes())
        stamped[name] = {"release": __version__, "files": {file: _digest(data) for file, data in new.items()}}
    text = json.dumps({"schema": 1, "labs": stamped}, indent=1, sort_keys=True) + "\n"
    (course.root / STAMP).write_text(text, encoding="utf-8")
    return TakenLabs(tuple(names), __version__, **{what: tuple(files) for what, files in done.items()})


def _steps(root: Path, base: Mapping[str, str], new: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """What becomes of each file that has to change, or that the instructor changed."""
    for file in sorted({*base, *new}):
        here = _digest_of(root / file)
        release = _digest(new[file]) if file in new else ""
        if here == release:
            continue
        if here == base.get(file, ""):
            yield file, "written" if release else "removed"
        elif release == base.get(file, ""):
            yield file, "kept"
        else:
            yield file, "conflicts" if release else "orphans"


def _apply(root: Path, file: str, data: bytes | None, what: str) -> None:
    if what == "removed":
        (root / file).unlink()
    elif data is not None and what != "kept":
        _write((root / UPGRADE if what == "conflicts" else root) / file, data)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _files(lab: str, source: Path) -> Iterator[tuple[str, bytes]]:
    """Each file of a lab that is written by hand, by its place in a course."""
    module = module_path(lab, _PACKAGE / "exercises")
    code: Iterable[Path] = own_files(module.parent) if module.name == "__init__.py" else [module]
    for path in own_files(source):
        yield f"solutions/{lab}/{path.relative_to(source).as_posix()}", path.read_bytes()
    for path in code:
        yield path.relative_to(_PACKAGE.parent).as_posix(), path.read_bytes()


def _stamped(root: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((root / STAMP).read_text(encoding="utf-8"))["labs"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{STAMP} cannot be read", why=why, next="restore it from a backup or version control"
        ) from None


def _digest_of(path: Path) -> str:
    return _digest(path.read_bytes()) if path.is_file() else ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
