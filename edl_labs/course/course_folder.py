"""A course: the folders that its authors write, and those that nbgrader collects and grades.

Authors find it by its `solutions/`, class runs by its `nbgrader_config.py`; often both lie in one folder.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.checks.lab_exercises import module_path
from edl_labs.course.assignment import Assignment, load_assignment
from edl_labs.errors import SourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    from edl_labs.course.course_file import CourseFile
    from edl_labs.course.sandbox.limits import Limits

# jsonschema imports it, where it is installed, for the formats of internet names; it builds 38 parsers when imported.
_GRAMMARS = "rfc3987_syntax"


@contextmanager
def without_grammars() -> Iterator[None]:
    """While active, a first import of jsonschema (through nbformat or nbgrader) does without them."""
    if _GRAMMARS in sys.modules:
        yield
        return
    sys.modules[_GRAMMARS] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(_GRAMMARS, None)


LAB_NAME = re.compile(r"lab\d\d[a-z]?_[a-z0-9]+(_[a-z0-9]+)*")
_PACKAGE = Path(__file__).resolve().parents[1]
NBGRADERS = "assignments"
"""A course's folder for assignments that nbgrader's own rules grade: one subfolder each, as in nbgrader's `source/`."""
_ASSIGNMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def use_own_exercises(root: Path) -> None:
    """Let this process, and those that it starts, check with the exercises of the course in `root`, if it has its own.

    Where it has none, EDL_LABS_EXERCISES says where they lie, else they are the package's: one rule for every verb.
    """
    own = (root / "edl_labs" / "exercises").resolve()
    if own.is_dir() and own != _PACKAGE / "exercises":
        os.environ["EDL_LABS_EXERCISES"] = str(own)


@dataclass(frozen=True)
class Course:
    """The course in `root`; it need not be this repository. `db_url_override` is another gradebook than nbgrader's."""

    root: Path
    db_url_override: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).resolve())

    @property
    def solutions(self) -> Path:
        """The source of every lab; instructors only."""
        return self.root / "solutions"

    @property
    def labs(self) -> Path:
        """What students get: generated and committed."""
        return self.root / "labs"

    @property
    def source(self) -> Path:
        """nbgrader's source notebooks, solutions included: generated, never committed."""
        return self.root / "build" / "source"

    @property
    def exercises(self) -> Path:
        """One folder or module a lab: its cases, probes and compares.

        It lies in the course; a folder that EDL_LABS_EXERCISES names counts only where the course has none.
        """
        own, named = self.root / "edl_labs" / "exercises", os.environ.get("EDL_LABS_EXERCISES", "")
        return own if own.is_dir() or not named else Path(named).resolve()

    def exercise_module(self, lab: str) -> Path:
        """The file that lists or holds a lab's exercises, there or not."""
        return module_path(lab, self.exercises)

    @property
    def goldens(self) -> Path:
        """What the build publishes for `check` and `hint`."""
        return self.exercises / "goldens"

    @classmethod
    def find(cls, start: Path | str | None = None) -> Course:
        """The course with `solutions/` around `start` (default: the working directory); else UsageError."""
        then = "go to the course's folder, or create one with edl-labs course DIR; students run edl-labs start instead"
        return cls(_around(start, "solutions", called="a solutions/ folder", then=then))

    @classmethod
    def find_class(cls, start: Path | None = None) -> Course:
        """The course with `nbgrader_config.py` around `start` (default: the working directory); else UsageError."""
        called, then = "an nbgrader_config.py", "go to the course's folder, or create one with edl-labs course DIR"
        return cls(_around(start, "nbgrader_config.py", called=called, then=then))

    @classmethod
    def around(cls, directory: Any, config: Any) -> Course:
        """The course of a running nbgrader command, its options and configuration included."""
        course = cls(Path(directory.root), str(directory.db_url))
        course.__dict__.update(directory=directory, config=config)
        return course

    def lab_names(self) -> list[str]:
        """The labs in solutions/, in order; SourceError for a folder that is not named like a lab."""
        if not self.solutions.is_dir():
            return []
        folders = sorted(p for p in self.solutions.iterdir() if p.is_dir() and not p.name.startswith((".", "__")))
        for folder in folders:
            if not LAB_NAME.fullmatch(folder.name):
                raise SourceError(
                    f"{folder.name!r} is not a lab's name",
                    file=self.shown(folder),
                    line=1,
                    why="a lab's name is lab, two digits, an underscore and lower-case words, such as lab01_gpu_basics",
                    next="rename the folder, or move it out of solutions/",
                )
        return [folder.name for folder in folders]

    def shown(self, path: Path) -> str:
        """`path` as messages show it: from the course's root, with forward slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    @contextmanager
    def activated(self) -> Iterator[None]:
        """While active, `edl_labs.checks` takes exercises and goldens from this course."""
        before = os.environ.get("EDL_LABS_EXERCISES")
        own = self.exercises == _PACKAGE / "exercises"
        if own:
            os.environ.pop("EDL_LABS_EXERCISES", None)
        else:
            os.environ["EDL_LABS_EXERCISES"] = str(self.exercises)
        try:
            yield
        finally:
            os.environ.pop("EDL_LABS_EXERCISES", None)
            if before is not None:
                os.environ["EDL_LABS_EXERCISES"] = before

    @cached_property
    def config(self) -> Any:
        """nbgrader's configuration, read by nbgrader's own loader."""
        from traitlets.config import PyFileConfigLoader

        return PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()

    @cached_property
    def directory(self) -> Any:
        """nbgrader's CourseDirectory."""
        try:
            with without_grammars():
                from nbgrader.coursedir import CourseDirectory
        except ImportError as error:
            raise UsageError(
                "nbgrader is not installed", why=str(error), next="run pip install 'edl-labs[instructor]'"
            ) from None
        directory = CourseDirectory(config=self.config)
        if "root" not in self.config.CourseDirectory:
            directory.root = str(self.root)
        return directory

    @cached_property
    def file(self) -> CourseFile:
        """What course.toml says."""
        from edl_labs.course.course_file import read_course_file  # msgspec, which students need not have

        return read_course_file(self.root)

    @cached_property
    def limits(self) -> Limits:
        """The limits of grading: those of `[limits]` in course.toml, else the usual ones."""
        from edl_labs.course.course_file import set_limits

        return set_limits(self.file.limits)

    @property
    def all_cells(self) -> bool:
        """Whether grading runs demonstrations too: `[grading] all_cells` of course.toml."""
        return self.file.grading.all_cells

    @property
    def db_url(self) -> str:
        """The gradebook's address."""
        return self.db_url_override or str(self.directory.db_url)

    @property
    def course_id(self) -> str:
        """The course's name in the gradebook."""
        return str(self.directory.course_id)

    def path(self, step: str, *, student: str, assignment: str) -> Path:
        """A folder of one student and assignment at one step: submitted, autograded or feedback."""
        return Path(self.directory.format_path(getattr(self.directory, f"{step}_directory"), student, assignment))

    def assignment(self, name: str) -> Assignment:
        """What the instructor knows of an assignment. From here on this process checks with the course's exercises."""
        if not _ASSIGNMENT.fullmatch(name):
            raise UsageError(
                f"an assignment cannot be called {name!r}",
                next="pass the assignment's name, for example: edl-labs grade lab01_gpu_basics",
            )
        use_own_exercises(self.root)
        source, release = (self.path(step, student=".", assignment=name) for step in ("source", "release"))
        if not any((*source.glob("*.ipynb"), *release.glob("*.ipynb"))) and not (self.solutions / name).is_dir():
            raise self._no_assignment(name)
        return load_assignment(name, source=source, release=release)

    def _no_assignment(self, name: str) -> UsageError:
        known, packaged = self.assignments(), module_path(name, _PACKAGE / "exercises").is_file()
        then = did_you_mean(name, known)
        if packaged:
            then = f"run edl-labs course . --labs {name} in {self.root.name}"
        elif (self.root / NBGRADERS / name).is_dir():
            then = f"run edl-labs build, then nbgrader generate_assignment {name}"
        elif (self.root / "source" / name).is_dir():
            then = f"move source/{name} to {NBGRADERS}/{name}, then run edl-labs build"
        elif not then and LAB_NAME.fullmatch(name):
            then = f"create a lab of that name with edl-labs new {name}"
        elif not then:
            then = f"put an nbgrader assignment into {NBGRADERS}/{name}, then run edl-labs build"
        return UsageError(f"the course has no {name}", why=f"it has {', '.join(known) or 'no lab yet'}", next=then)

    def assignments(self) -> list[str]:
        """Every assignment that was released, in order."""
        folder = self.path("release", student=".", assignment="NAME").parent
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []

    def students(self, assignment: str) -> list[str]:
        """Everyone who handed something in for `assignment`, in order; what lies there may be anything."""
        folder = self.path("submitted", student="STUDENT", assignment=assignment).parent.parent
        if not folder.is_dir():
            return []
        names = (entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
        return sorted(name for name in names if _handed_in(folder / name, assignment))

    def grading(self, assignment: str) -> Path:
        """Where class runs keep the seed, references and results of an assignment."""
        return self.path("autograded", student="STUDENT", assignment=assignment).parents[2] / "grading" / assignment


def _around(start: Path | str | None, name: str, *, called: str, then: str) -> Path:
    """The nearest folder, from `start` (default: the working directory) upwards, that has `name`."""
    here = Path(start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / name).exists():
            return folder
    why = f"neither {here.name or here} nor any folder above it contains {called}"
    raise UsageError("this is not a course", why=why, next=then)


def _handed_in(student: Path, assignment: str) -> bool:
    entry = student / assignment
    return not student.is_symlink() and (entry.is_symlink() or entry.exists())
