"""Records what a build was made from, so that a lab with the same sources and results is not built again.

The stamps lie in `build/`, which is never committed; without them everything is built. `build --check` never looks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.install_line import install_line
from edl_labs.course.lab.own_wheel import distribution
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.own_files import own_files

_PACKAGE = Path(__file__).resolve().parents[2]
_ALSO = ("torch", "numpy", "nbgrader")  # what goldens and releases are computed with, beside this package


class Stamps:
    """The stamps of one course, as the last build left them."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self._path = course.root / "build" / "stamps.json"
        self._made: dict[str, dict[str, Any]] = {}

    @cached_property
    def _before(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def _library(self) -> str:
        """The digest of all code that builds and probes: without the exercises of each lab, with what they share."""
        labs = _PACKAGE / "exercises"
        code = (path for path in sorted(_PACKAGE.rglob("*.py")) if labs not in path.parents[1:])
        return _digest(code, *map(_version, _ALSO))

    def _sources(self, lab: Lab) -> str:
        module = self.course.exercise_module(lab.name)
        code = sorted(module.parent.rglob("*.py")) if module.name == "__init__.py" else [module]
        return _digest([*own_files(lab.folder), *(path for path in code if path.is_file())], self._library, self._host)

    @cached_property
    def _host(self) -> str:
        """What the first cell of each notebook installs: a course's first lab of its own changes it in all."""
        return f"{distribution(self.course.root)} {install_line(self.course.root).release}"

    def unchanged(self, lab: Lab) -> dict[Path, bytes] | None:
        """The lab's generated files, where they are what a build made of the sources as they are; else None."""
        known = self._before.get(lab.name)
        if not isinstance(known, dict) or known.get("sources") != self._sources(lab):
            return None
        files = self.on_disk(known.get("files", {}))
        same = files is not None and {self.course.shown(p): _sha(d) for p, d in files.items()} == known["files"]
        if same:
            self._made[lab.name] = known
        return files if same else None

    def built(self, lab: Lab, names: Iterable[str]) -> dict[Path, bytes] | None:
        """A lab's generated files as they are on disk; None when one is missing or installs something else."""
        known = self._before.get(lab.name)
        return self.on_disk(names) if isinstance(known, dict) and known.get("host") == self._host else None

    def on_disk(self, names: Iterable[str]) -> dict[Path, bytes] | None:
        """The bytes of files of the course; None when one is missing."""
        paths = [self.course.root / name for name in names]
        return {path: path.read_bytes() for path in paths} if all(path.is_file() for path in paths) else None

    def keep(self, lab: Lab, files: dict[Path, bytes]) -> None:
        """Remember what was made of a lab."""
        made = {self.course.shown(path): _sha(data) for path, data in files.items()}
        self._made[lab.name] = {"sources": self._sources(lab), "host": self._host, "files": made}

    def write(self) -> None:
        """Keep the stamps for the next build."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({**self._before, **self._made}, sort_keys=True, indent=1), encoding="utf-8")


def _digest(paths: Iterable[Path], *more: str) -> str:
    state = hashlib.sha256("\0".join(more).encode())
    for path in paths:
        state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
