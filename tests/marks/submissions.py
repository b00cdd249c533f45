"""The submissions to a lab whose marks are recorded: right and wrong work, unusual forms of it, attacks.

Practice has no points of its own; here it counts one, so that it is recorded whether it passes. Notebooks are graded
with the parameters of a quick run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from edl_labs.course.assignment import GRADED_WITH
from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.lab.mistakes import Mistake
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.source_notebook import cell_ids
from tests.course.course_fixture import REPOSITORY, Course, cell_of, make_lab_course, solved

FOLDER = Path(__file__).parent
FORMS = ("named", "lazy", "boxed")
ATTACKS = ("constant", "echo", "equal_to_all", "first_for_ever")
FORGERIES = "forgeries"
DRAWS, WRONG_DRAWS = 8, 2
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Submission:
    """One of a lab's: its name, how to make its notebook, how many draws it is graded with.

    `carried` is the wrong answer in it, by exercise.
    """

    name: str
    make: Callable[[Course], NotebookNode]
    draws: int = DRAWS
    carried: dict[str, str] = field(default_factory=dict)


def make_oracle_course(root: Path, name: str) -> Course:
    """A course folder around a lab, in which practice counts, and notebooks run with the parameters of a quick run."""
    course = make_lab_course(root, name)
    for part in ("build/source", "labs"):
        path = root / part / name / f"{name}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["metadata"]["edl_labs"][GRADED_WITH] = lab_of(name).parameters["smoke"]
        for cell in notebook["cells"]:
            meta = cell["metadata"].get("nbgrader", {})
            if meta.get("grade"):
                meta["points"] = meta["points"] or 1
        path.write_text(json.dumps(notebook), encoding="utf-8")
    return course


def lab_of(name: str) -> Lab:
    """The lab as its author wrote it."""
    return read_lab(Repository(REPOSITORY), name)


def full_marks(lab: Lab) -> dict[str, float]:
    """The most points of each exercise that has code."""
    return {one.name: float(one.points or 1) for one in lab.exercises if one.kind == "code"}


def submissions(lab: Lab) -> Iterator[Submission]:
    """All that are recorded, in their order in the data."""
    yield Submission("stub", lambda course: course.released())
    yield Submission("solution", solved)
    for name in (*FORMS, *ATTACKS):
        yield Submission(name, lambda course, name=name: _formed(lab, solved(course), name))
    forgeries = sorted((FOLDER / FORGERIES / lab.name).glob("*.cell"))
    if forgeries:
        yield Submission(FORGERIES, lambda course: _replaced(course, [_forgery(path) for path in forgeries]))
    yield from _wrong_submissions(lab)


def _formed(lab: Lab, notebook: NotebookNode, form: str) -> NotebookNode:
    """The notebook with every solve cell's functions and classes changed by what answer_forms calls `form`.

    Cells that plot and measure are empty: with such answers they may take minutes.
    """
    text = (FOLDER / "answer_forms.py").read_text(encoding="utf-8")
    notebook.cells.insert(0, new_code_cell(text, id="answer-forms"))
    shows = {one for one, cell in zip(cell_ids(lab.cells), lab.cells, strict=True) if cell.role is None}
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.id in shows:
            cell["source"] = ""
    for known in lab.cells:
        if known.role == "solve":
            names = [node.name for node in ast.parse(known.source).body if isinstance(node, _DEFINITIONS)]
            change = "oddly({0}, {1}, inside=globals())" if form in FORMS else "{1}({0})"
            lines = [f"{name} = {change.format(name, form)}" for name in names]
            cell_of(notebook, str(known.name))["source"] += "\n\n\n" + "\n".join(lines)
    return notebook


def _forgery(path: Path) -> tuple[str, str]:
    """The exercise that a file names, and its code."""
    code = path.read_text(encoding="utf-8")
    return code.partition("\n")[0].removeprefix("# exercise: ").strip(), code


def _replaced(course: Course, answers: list[tuple[str, str]]) -> NotebookNode:
    """The solution, with other code behind the solutions of exercises."""
    notebook = solved(course)
    for exercise, code in answers:
        cell_of(notebook, exercise)["source"] += "\n\n\n" + code
    return notebook


def _wrong_submissions(lab: Lab) -> Iterator[Submission]:
    """One wrong answer of each exercise in each, but none of an exercise together with one that it uses."""
    found: dict[int, list[Mistake]] = {}
    for exercise, first in _places(lab).items():
        for number, one in enumerate(one for one in lab.mistakes if one.exercise == exercise):
            found.setdefault(first + number, []).append(one)
    for number, mistakes in sorted(found.items()):
        answers = [(one.exercise, one.code) for one in mistakes]
        make = lambda course, answers=answers: _replaced(course, answers)  # noqa: E731
        yield Submission(f"wrong {number:02}", make, WRONG_DRAWS, {one.exercise: one.name for one in mistakes})


def _places(lab: Lab) -> dict[str, int]:
    """Where the wrong answers of each exercise begin: after those of all that it uses."""
    from edl_labs.checks.lab_exercises import load_lab

    uses = {one.name: one.uses for one in load_lab(lab.name)}
    counts = {name: sum(one.exercise == name for one in lab.mistakes) for name in uses}

    def first(name: str) -> int:
        return max((first(used) + counts[used] for used in uses[name]), default=0)

    return {name: first(name) for name in uses}
