"""The exercises of a lab: where their folder or module lies, and reading it."""

from __future__ import annotations

import importlib
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from edl_labs.checks._exercise import DRAWINGS, PACKAGE, REGISTERED, RegisteredExercise
from edl_labs.errors import EdlError, UsageError

COURSES = "edl_labs.courses"  # the entry points by which wheels of other courses say that they hold labs
_FOLDER = Path(__file__).resolve().parents[1] / "exercises"
_LOADED: dict[str, Path] = {}


def exercises_folder() -> Path:
    """Where the exercise modules lie: the package's folder, or what EDL_LABS_EXERCISES names (a course of your own)."""
    own = os.environ.get("EDL_LABS_EXERCISES")
    return Path(own).resolve() if own else _FOLDER


def exercises_folders() -> tuple[Path, ...]:
    """Where labs are looked for: what EDL_LABS_EXERCISES names, else the package, the course around, installed ones."""
    if os.environ.get("EDL_LABS_EXERCISES"):
        return (exercises_folder(),)
    return (_FOLDER, *own_course_above(), *installed_courses().values())


def own_course_above() -> tuple[Path, ...]:
    """The exercises of the course of your own that the working directory lies in, where it lies in one.

    Its notebooks check themselves there before a wheel of it is installed. A checkout of edl_labs is no such course:
    with the library of another version its exercises would not fit.
    """
    with suppress(OSError):  # the working directory may be gone
        here = Path.cwd()
        for package in (folder / "edl_labs" for folder in (here, *here.parents)):
            own = package / "exercises"
            if own.is_dir() and not (package / "__init__.py").is_file() and _is_trusted(own):
                return (own.resolve(),)
    return ()


def _is_trusted(folder: Path) -> bool:
    """Whether a folder's code is run here: this user's or the system's own, where nobody else may write."""
    kept = folder.stat()
    return not hasattr(os, "getuid") or (kept.st_uid in (os.getuid(), 0) and not kept.st_mode & stat.S_IWOTH)


@lru_cache(maxsize=1)
def installed_courses() -> dict[str, Path]:
    """The exercises' folder of each course whose wheel is installed (`edl-labs wheel` makes one), by its package."""
    found = {}
    for name in sorted({point.value for point in entry_points(group=COURSES)}):
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec else []:
            found[name] = Path(place).resolve() / "exercises"
    return found


def folder_of(lab: str) -> Path:
    """The exercises' folder that has `lab`, the package's where none has. Wheels are looked for when they must be."""
    first = exercises_folder()
    if module_path(lab, first).is_file():
        return first
    return next((folder for folder in exercises_folders() if module_path(lab, folder).is_file()), first)


def built_labs() -> dict[str, Path]:
    """Every lab whose facts the build has published, in order, with the file that holds them."""
    found = [path for folder in reversed(exercises_folders()) for path in (folder / "goldens").glob("*.json")]
    return {path.stem: path for path in sorted(found, key=lambda path: path.stem)}


def lab_names(folder: Path | None = None) -> list[str]:
    """Every lab that has exercises, in order: a folder with an `__init__.py`, or a module, called lab…"""
    entries = [path for home in ((folder,) if folder else exercises_folders()) for path in home.glob("lab*")]
    return sorted({path.stem for path in entries if path.suffix == ".py" or (path / "__init__.py").is_file()})


def module_path(lab: str, folder: Path | None = None) -> Path:
    """The file that lists or holds a lab's exercises, there or not: its folder's `__init__.py`, or its module."""
    listed = (folder or folder_of(lab)) / lab / "__init__.py"
    return listed if listed.is_file() else listed.parent.with_suffix(".py")


def load_lab(lab: str) -> list[RegisteredExercise]:
    """The exercises of one lab, importing them when they were not yet.

    They come in the order of its `EXERCISES`; of their classes where it has none.
    """
    path = module_path(lab)
    if _LOADED.get(lab) != path:
        if not path.is_file():
            raise UsageError(
                f"there are no exercises for {lab}",
                why="its module is missing",
                next=f"create it with `edl-labs new {lab}`",
            )
        if lab in _LOADED or folder_of(lab) != _FOLDER:
            forget(lab)
        _import(lab)
        _LOADED[lab] = path
    return [e for e in REGISTERED.values() if e.lab == lab]


def forget(lab: str) -> None:
    """Let the next `load_lab` read the lab's files anew, its judge's part included."""
    _LOADED.pop(lab, None)
    for name in [name for name, known in REGISTERED.items() if known.lab == lab]:
        del REGISTERED[name]
    home = f"{PACKAGE}.{lab}"
    for name in [name for name, drawing in DRAWINGS.items() if drawing.__module__.startswith(f"{home}.")]:
        del DRAWINGS[name]
    for name in [name for name in sys.modules if name == home or name.startswith(f"{home}.")]:
        del sys.modules[name]


def find(name: str) -> RegisteredExercise:
    """The exercise called `name`, whichever lab it is in; UsageError with near names when there is none."""
    for lab in lab_names():
        for found in load_lab(lab):
            if found.name == name:
                return found
    import difflib

    names = [e.name for e in REGISTERED.values()]
    near = difflib.get_close_matches(str(name), names, n=1)
    raise UsageError(
        f"there is no exercise called {name!r}",
        why=f"the known exercises are: {', '.join(names) or 'none'}",
        next=f'try check("{near[0]}")' if near else "use the name in the cell's title",
    )


def _import(lab: str) -> None:
    """Run the lab's modules. Those of another course are parts of the package too, so that their imports work there."""
    package = importlib.import_module(PACKAGE)
    package.__path__ = list(dict.fromkeys(map(str, (folder_of(lab), _FOLDER))))
    importlib.invalidate_caches()
    listed = getattr(importlib.import_module(f"{PACKAGE}.{lab}"), "EXERCISES", None)
    if listed is not None:
        _put_in_order(lab, listed)


def _put_in_order(lab: str, listed: Iterable[type]) -> None:
    places = {cls: place for place, cls in enumerate(listed)}
    found = [known for known in REGISTERED.values() if known.lab == lab]
    strangers = [known.name for known in found if type(known.spec) not in places]
    if strangers:
        raise EdlError(
            f"EXERCISES of {lab} lacks {', '.join(strangers)}",
            next="add each missing class to that list, in the order of the lab",
        )
    for known in sorted(found, key=lambda known: places[type(known.spec)]):
        REGISTERED[known.name] = REGISTERED.pop(known.name)
