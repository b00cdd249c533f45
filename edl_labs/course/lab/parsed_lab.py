"""A lab as its author wrote it: its cells, its lab.toml and its known mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edl_labs.course.lab.lab_toml import LabExercise, LabToml
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.source import Cell
from edl_labs.device import QUICK
from edl_labs.errors import UsageError


@dataclass(frozen=True)
class Lab:
    """One valid lab. `file` is its source as messages show it."""

    name: str
    folder: Path
    file: str
    cells: tuple[Cell, ...]
    toml: LabToml
    mistakes: tuple[Mistake, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def handed_in(self) -> dict[str, bytes]:
        """Files of its `handed_in/` by name: what lies next to the notebook when its answers are proved."""
        return {path.name: path.read_bytes() for path in sorted((self.folder / "handed_in").glob("*"))}

    @property
    def title(self) -> str:
        """The lab's title, from lab.toml."""
        return self.toml.title

    @property
    def minutes(self) -> int:
        """How long the lab takes a student."""
        return self.toml.minutes

    @property
    def sittings(self) -> tuple[float, ...]:
        """Minutes of each sitting, where exercises have theirs: one for most labs."""
        found = [0.0]
        for one in self.exercises:
            found[-1] += 0.0 if one.optional else one.minutes
            found += [0.0] * one.pause_after
        return tuple(found)

    @property
    def device(self) -> str:
        """What its real-device cells would like: `any` or `cuda`."""
        return self.toml.device

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """papermill's parameters for `smoke` and `full`."""
        return {mode: self.toml.parameters[mode] for mode in ("smoke", "full")}

    @property
    def exercises(self) -> tuple[LabExercise, ...]:
        """The exercises in the order of their cells."""
        order = [c.name for c in self.cells if c.role in ("solve", "explain")]
        return tuple(sorted(self.toml.exercises, key=lambda e: order.index(e.name)))

    @property
    def points(self) -> float:
        """The points of the whole lab."""
        return sum(e.points for e in self.exercises)

    def exercise(self, name: str) -> LabExercise:
        """The exercise called `name`; UsageError when the lab has none."""
        for found in self.toml.exercises:
            if found.name == name:
                return found
        names = ", ".join(e.name for e in self.exercises)
        raise UsageError(f"{self.name} has no exercise called {name!r}", why=f"its exercises are {names}")

    def cell(self, role: str, name: str | None = None) -> Cell:
        """The first cell with that role and name."""
        return next(c for c in self.cells if (c.role, c.name) == (role, name))

    def namespace_cells(self) -> list[tuple[str, str]]:
        """(label, code) of the cells that together define the solution's names, in the notebook's order."""
        return [(c.label, c.source) for c in self.cells if c.role in ("setup", "parameters", "given", "solve")]

    def all_cells(self) -> list[tuple[str, str]]:
        """(label, code) of all cells but checks, in the notebook's order, with the parameters of a quick run."""
        quick = "\n".join(f"{name} = {value!r}" for name, value in self.parameters["smoke"].items())
        least = f"import os\nos.environ[{QUICK!r}] = '1'"  # as grading has it, until evidence is asked for
        cells = [c for c in self.cells if c.kind == "code" and c.role != "check"]
        texts = [(c.label, f"{c.source}\n{quick}" if c.role == "parameters" else c.source) for c in cells]
        return [("quick run", least), *texts, ("end of the quick run", f"del os.environ[{QUICK!r}]")]

    def solution_cell(self, name: str) -> str:
        """The code of an exercise's solution."""
        return self.cell("solve", name).source
