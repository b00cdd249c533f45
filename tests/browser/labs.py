"""What a lab holds for a student who opens it: read from its source, so that a new lab needs nothing here."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat

import edl_labs.ui
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.lab_toml import LabExercise
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from edl_labs.ui.live_or_still import LiveOrStill
from tests.browser.jupyter import ROOT


@dataclass(frozen=True)
class Material:
    """A lab and what the tests do in it."""

    lab: Lab

    @property
    def short(self) -> str:
        """The lab's number, for names of pictures."""
        return self.lab.name.partition("_")[0]

    @property
    def coded(self) -> list[LabExercise]:
        """The exercises that a check judges."""
        return [one for one in self.lab.exercises if one.kind == "code"]

    @property
    def first(self) -> LabExercise:
        """The first exercise with points: what is written wrongly, then rightly."""
        return next(one for one in self.coded if not one.optional)

    def mistake(self) -> Mistake:
        """A known mistake in it."""
        return next(one for one in self.lab.mistakes if one.exercise == self.first.name)

    def mistaken(self) -> str:
        """The first exercise's cell with that mistake."""
        return f"{self.lab.solution_cell(self.first.name)}\n\n\n{self.mistake().code}"

    def live_pictures(self, *, solved: bool) -> int:
        """How many cells show a live picture: all of them, or those that wait for no exercise."""
        code = [cell.tree for cell in self.lab.cells if cell.kind == "code"]
        return sum(calls_one_of(tree, live_names()) and (solved or not waits(tree)) for tree in code)

    def write_solved(self, released: Path, target: Path) -> None:
        """The released notebook with every solution in it and the quick parameters, as `target`."""
        notebook = nbformat.read(released, as_version=4)
        solutions = {f"solve-{one.name.replace('_', '-')}": one.name for one in self.coded}
        for cell in notebook.cells:
            if cell["id"] in solutions:
                cell["source"] = self.lab.solution_cell(solutions[cell["id"]])
            if "parameters" in cell.metadata.get("tags", []):
                quick = self.lab.parameters["smoke"].items()
                cell["source"] = "\n".join(f"{name} = {value!r}" for name, value in quick)
        nbformat.write(notebook, target)


@cache
def material(name: str) -> Material:
    """The lab called `name`."""
    return Material(read_lab(Course(ROOT), name))


@cache
def live_names() -> frozenset[str]:
    """The names of all live pictures of the package."""
    for module in pkgutil.iter_modules(edl_labs.ui.__path__):
        importlib.import_module(f"edl_labs.ui.{module.name}")
    return frozenset(one.__name__ for one in LiveOrStill.__subclasses__())


def calls_one_of(tree: ast.AST, names: frozenset[str]) -> bool:
    """Whether code calls one of `names`."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Name) and one.id in names for one in called)


def waits(tree: ast.AST) -> bool:
    """Whether code shows something only once an exercise is written."""
    return calls_one_of(tree, frozenset({"requires_solution"}))
