"""The instructor's facts about an assignment: released cells, the solution's cells, exercises and points."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from edl_labs.checks import RegisteredExercise
from edl_labs.checks.lab_exercises import exercises_folder, load_lab, module_path
from edl_labs.course.own_files import own_files
from edl_labs.errors import UsageError
from edl_labs.units import counted

CHECK_PREFIX = "check_"
GRADED_WITH = "graded_with"  # of a source notebook's metadata: the parameters that a notebook is graded with
LAB_ROLES = ("setup", "parameters", "given")  # metadata.edl_labs.role of cells in a source notebook: grading runs them
PARAMETERS = "parameters"  # the id that the build gives the parameters cell of every lab
_PACKAGE = Path(__file__).resolve().parents[1]
_THAT_MARK = ("assignment.py", "grade", "sandbox", "marks")  # the parts of the course whose code a mark depends on


@dataclass(frozen=True)
class KnownCell:
    """One cell of the release. `role` is solve, check, answer, locked or empty; `solution` is the instructor's text.

    `lab_role` is setup, parameters or given, as the instructor's source declares it, never a student's notebook.
    """

    kind: str
    id: str
    source: str
    solution: str
    metadata: dict[str, Any]
    role: str = ""
    grade_id: str = ""
    points: float = 0.0
    lab_role: str = ""

    @property
    def exercise(self) -> str:
        """The exercise that the cell belongs to; empty where it belongs to none."""
        return self.grade_id.removeprefix(CHECK_PREFIX) if self.role in ("solve", "check", "answer") else ""

    def is_released(self, source: str) -> bool:
        """Whether a source is the released one."""
        return source.strip() == self.source.strip()

    def is_untouched(self, source: str) -> bool:
        """Whether a source holds no work: it is empty, or the released one."""
        return not source.strip() or self.is_released(source)


@dataclass(frozen=True)
class Assignment:
    """One lab as it is graded."""

    name: str
    cells: tuple[KnownCell, ...]
    exercises: tuple[RegisteredExercise, ...]
    notebook_metadata: dict[str, Any]
    files: dict[str, bytes]
    """The files next to the released notebook, and in a course of its own also the exercise modules."""
    own_exercises: bool
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of a quick run, which replace the released parameters while a notebook is graded."""

    @cached_property
    def by_grade_id(self) -> dict[str, KnownCell]:
        """The cells that nbgrader knows, by its id."""
        return {cell.grade_id: cell for cell in self.cells if cell.grade_id}

    @cached_property
    def points(self) -> dict[str, float]:
        """Points by exercise, those marked by hand included, in the lab's order."""
        return {cell.exercise: cell.points for cell in self.cells if cell.role in ("check", "answer")}

    @cached_property
    def digest(self) -> str:
        """Changes whenever the release, the solution, the exercises or the library that judges them change."""
        state = hashlib.sha256()
        for cell in self.cells:
            state.update(json.dumps([cell.source, cell.solution, cell.grade_id, cell.points, cell.role]).encode())
            state.update(cell.lab_role.encode())
        folders = (exercises_folder(), _PACKAGE / "checks", *(_PACKAGE / "course" / part for part in _THAT_MARK))
        if self.own_exercises:
            folders += tuple(sorted((_PACKAGE / "exercises").glob("*.py")))  # what modules of several labs share
        for path in [path for folder in folders for path in _modules(folder)]:
            state.update(path.read_bytes())
        state.update(json.dumps(dict(self.parameters), sort_keys=True).encode())
        for name, content in sorted(self.files.items()):
            state.update(name.encode() + content)
        return state.hexdigest()

    @property
    def remarks(self) -> tuple[str, ...]:
        """A line where the instructor's source was built before the release: roles of cells are read from it alone."""
        stale = [cell for cell in self.cells if not cell.lab_role and _lab_role(cell.metadata)]
        if not stale:
            return ()
        what = f"the source notebook of {self.name} is older than its release: it lacks {counted(len(stale), 'role')}"
        return (f"{what} of cells, which tell grading what to run; run edl-labs build",)

    def exercise(self, name: str) -> RegisteredExercise:
        """The exercise called `name`."""
        return next(e for e in self.exercises if e.name == name)

    def built_on(self, name: str) -> set[str]:
        """Every exercise that `name` uses, directly or through another."""
        uses = set(self.exercise(name).uses)
        for used in tuple(uses):
            uses |= self.built_on(used)
        return uses


def load_assignment(name: str, *, source: Path, release: Path) -> Assignment:
    """The assignment from its source and released notebooks; UsageError when something is missing or disagrees."""
    solved, released = (_read(folder / f"{name}.ipynb", name) for folder in (source, release))
    if not module_path(name).is_file() or not all("id" in cell for cell in (*solved["cells"], *released["cells"])):
        raise _of_nbgraders(name)
    solutions = {cell["id"]: cell for cell in solved["cells"]}
    cells = tuple(_known(cell, solutions.get(cell["id"], cell)) for cell in released["cells"])
    if set(solutions) != {cell.id for cell in cells}:
        why = "their cells have different ids"
        raise UsageError(f"the source and the release of {name} disagree", why=why, next="run edl-labs build")
    exercises = tuple(load_lab(name))
    _check_agreement(name, cells, exercises)
    own = exercises_folder().resolve() != _PACKAGE / "exercises"
    files = _beside(release, name) | (_exercise_files() if own else {})
    parameters = dict(solved["metadata"].get("edl_labs", {}).get(GRADED_WITH, {}))
    return Assignment(name, cells, exercises, _notebook_metadata(released), files, own, parameters)


def _of_nbgraders(name: str) -> UsageError:
    """What to say of an assignment that has no exercises of edl_labs, where those are needed."""
    why = "it has no exercises of edl_labs, so nbgrader's own rules apply to it"
    then = "use collect, grade, report, feedback or export for it; this command works only for labs of edl_labs"
    return UsageError(f"{name} is not a lab of edl_labs", why=why, next=then)


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"metadata": {}, "cells": found["cells"], **found}
    except (ValueError, TypeError, KeyError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{path.name} in {path.parent.parent.name}/ is not a notebook", why=why, next="run edl-labs build"
        ) from None
    except FileNotFoundError:
        if any(path.parent.glob("*.ipynb")):
            raise _of_nbgraders(name) from None
        why = f"there is no {path.name} in {path.parent.parent.name}/"
        raise UsageError(f"{name} has not been built", why=why, next="run edl-labs build") from None


def _known(cell: dict[str, Any], solved: dict[str, Any]) -> KnownCell:
    meta = cell["metadata"].get("nbgrader", {})
    return KnownCell(
        kind=cell["cell_type"],
        id=cell["id"],
        source="".join(cell["source"]),
        solution="".join(solved["source"]),
        metadata=cell["metadata"],
        role=_role(meta),
        grade_id=meta.get("grade_id", ""),
        points=float(meta.get("points", 0.0)),
        lab_role=_lab_role(solved["metadata"]),
    )


def _lab_role(metadata: dict[str, Any]) -> str:
    role = metadata.get("edl_labs", {}).get("role", "")
    return role if role in LAB_ROLES else ""


def _role(meta: dict[str, Any]) -> str:
    if not meta:
        return ""
    if meta["grade"]:
        return "answer" if meta["solution"] else "check"
    return "solve" if meta["solution"] else "locked"


def _check_agreement(name: str, cells: Iterable[KnownCell], exercises: tuple[RegisteredExercise, ...]) -> None:
    checked = {cell.exercise for cell in cells if cell.role == "check"}
    known = {e.name for e in exercises}
    if checked != known:
        why = f"only one of the two contains {', '.join(sorted(checked ^ known))}"
        raise UsageError(f"{name} and its exercise module disagree", why=why, next="run edl-labs build")


def _notebook_metadata(notebook: dict[str, Any]) -> dict[str, Any]:
    return {key: notebook["metadata"][key] for key in ("kernelspec", "language_info") if key in notebook["metadata"]}


def _beside(release: Path, name: str) -> dict[str, bytes]:
    kept = (path for path in own_files(release) if path.suffix != ".ipynb" and path.name != "timestamp.txt")
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in kept}


def _exercise_files() -> dict[str, bytes]:
    """A course's own exercises as the student's kernel gets them: without the judge's parts."""
    folder = exercises_folder()
    files = {path.relative_to(folder): path for path in _modules(folder)}
    return {
        f".edl/exercises/{at.as_posix()}": path.read_bytes() for at, path in files.items() if "judge" not in at.parts
    }


def _modules(part: Path) -> list[Path]:
    return [part] if part.is_file() else sorted(part.rglob("*.py"))
