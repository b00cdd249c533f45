"""A course: one folder with `solutions/` in it, and the places of everything that is made from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edl_labs.checks.lab_exercises import module_path
from edl_labs.errors import SourceError, UsageError

LAB_NAME = re.compile(r"lab\d\d_[a-z0-9]+(_[a-z0-9]+)*")
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Course:
    """The paths of the course in `root`; it need not be this repository."""

    root: Path

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
        """One folder or module a lab: its cases, probes and compares."""
        return self.root / "edl_labs" / "exercises"

    def exercise_module(self, lab: str) -> Path:
        """The file that lists or holds a lab's exercises, there or not."""
        return module_path(lab, self.exercises)

    @property
    def goldens(self) -> Path:
        """What the build publishes for `check` and `hint`."""
        return self.exercises / "goldens"

    @classmethod
    def find(cls, start: Path | str | None = None) -> Course:
        """The course around `start` (default: the working directory); UsageError when there is none."""
        here = Path(start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if (folder / "solutions").is_dir():
                return cls(folder)
        raise UsageError(
            "this is not a course",
            why=f"neither {here.name or here} nor a folder above it has a solutions/ folder",
            next="change to the repository's folder; students need no course: edl-labs start",
        )

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
                    why="labs are called lab, two digits, underscore, lower-case words: lab01_gpu_basics",
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
