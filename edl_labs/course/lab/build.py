"""The build: from solutions/ to everything that is generated, or a diff of what is stale."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.course.lab import leaks
from edl_labs.course.lab.goldens import goldens
from edl_labs.course.lab.hosts import repository
from edl_labs.course.lab.notebook import dumps, locked_digests, source_notebook
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.release import release
from edl_labs.course.lab.table import table
from edl_labs.course.layout import Course
from edl_labs.errors import EdlError

SCHEMA = 1
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class BuildReport:
    """What a build changed, or what `check` found stale: files, and their difference as a unified diff."""

    labs: tuple[str, ...]
    changed: tuple[str, ...]
    diff: str
    warnings: tuple[str, ...] = ()
    written: bool = True

    @property
    def ok(self) -> bool:
        """Whether everything on disk is what the sources make."""
        return self.written or not self.changed

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON, with a schema number."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "labs": list(self.labs),
            "changed": list(self.changed),
            "diff": self.diff,
            "warnings": list(self.warnings),
            "written": self.written,
        }


def build(course: Course, *, check: bool = False, progress: Progress | None = None) -> BuildReport:
    """Make notebooks, labs/ and goldens from solutions/. With `check`, write nothing but report what is stale."""
    labs = read_labs(course)
    step = _Steps(progress, total=2 * len(labs) + 2)
    sources = {lab.name: dumps(source_notebook(lab)) for lab in labs}
    step(f"read {len(labs)} lab{'' if len(labs) == 1 else 's'}")
    expected, source_files = _generate(course, labs, sources, step)
    _refuse_foreign(course, expected)
    changes = _changes(course, expected)
    if check:
        leaks.refuse(leaks.scan_course(course, leaks.secrets(labs)))
    else:
        _write({**source_files, **changes})
        _remove_old_sources(course, source_files)
    step("compared" if check else "written")
    return BuildReport(
        labs=tuple(lab.name for lab in labs),
        changed=tuple(course.shown(path) for path in changes),
        diff="".join(_diff(course, path, new) for path, new in changes.items()),
        warnings=tuple(warning for lab in labs for warning in lab.warnings),
        written=not check,
    )


class _Steps:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, text: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total, text)


def _generate(
    course: Course, labs: list[Lab], sources: dict[str, str], step: _Steps
) -> tuple[dict[Path, bytes], dict[Path, bytes | None]]:
    """(what is committed, what nbgrader reads), leak-scanned before a byte of it is written."""
    expected: dict[Path, bytes] = {}
    source_files: dict[Path, bytes | None] = {}
    for lab in labs:
        released = release({lab.name: sources[lab.name]})[lab.name]
        step(f"{lab.name}: released")
        expected[course.labs / lab.name / f"{lab.name}.ipynb"] = dumps(released).encode()
        expected[course.goldens / f"{lab.name}.json"] = goldens(course, lab, locked=locked_digests(released)).encode()
        step(f"{lab.name}: goldens")
        source_files[course.source / lab.name / f"{lab.name}.ipynb"] = sources[lab.name].encode()
        for name in lab.toml.data:
            data = (lab.folder / name).read_bytes()
            expected[course.labs / lab.name / name] = source_files[course.source / lab.name / name] = data
    expected[course.labs / "README.md"] = table(labs, repository=repository(course.root)).encode()
    known = leaks.secrets(labs)
    leaks.refuse([leak for p, data in expected.items() for leak in leaks.scan_bytes(course.shown(p), data, known)])
    return expected, source_files


def _present(course: Course) -> list[Path]:
    """The files on disk where only generated ones belong."""
    inside = [p for p in sorted(course.labs.rglob("*")) if p.is_file() and ".ipynb_checkpoints" not in p.parts]
    return [*inside, *sorted(course.goldens.glob("*.json"))]


def _refuse_foreign(course: Course, expected: dict[Path, bytes]) -> None:
    for path in _present(course):
        ours = path.parent == course.goldens or (path.suffix == ".ipynb" and path.stem == path.parent.name)
        if path not in expected and not ours:
            raise EdlError(
                f"no lab makes {course.shown(path)}",
                why=f"{course.shown(course.labs)}/ holds generated files only",
                next='move or remove it; a data file of a lab belongs beside its lab.toml, listed as data = ["..."]',
            )


def _changes(course: Course, expected: dict[Path, bytes]) -> dict[Path, bytes | None]:
    """What differs on disk: the new bytes, or None for a file that no lab makes any more."""
    found: dict[Path, bytes | None] = {
        path: data for path, data in expected.items() if not path.is_file() or path.read_bytes() != data
    }
    return {**found, **{path: None for path in _present(course) if path not in expected}}


def _diff(course: Course, path: Path, new: bytes | None) -> str:
    old = path.read_bytes() if path.is_file() else None
    name = course.shown(path)
    before, after = (_lines(data) for data in (old, new))
    made = difflib.unified_diff(
        *(before, after),
        fromfile=f"a/{name}" if old is not None else "/dev/null",
        tofile=f"b/{name}" if new is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)


def _lines(data: bytes | None) -> list[str]:
    if data is None:
        return []
    return data.decode("utf-8", errors="backslashreplace").splitlines(keepends=True)


def _write(files: dict[Path, bytes | None]) -> None:
    for path, data in files.items():
        if data is None:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _remove_old_sources(course: Course, kept: dict[Path, bytes | None]) -> None:
    """Sources of labs that are gone; nbgrader would list them as assignments, and release what lies in the others."""
    for path in sorted(course.source.rglob("*"), reverse=True):
        if path.is_file() and path not in kept:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
