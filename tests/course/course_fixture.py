"""A small course in a temporary folder: one lab, its exercises and goldens, and submissions to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat

REPOSITORY = Path(__file__).resolve().parents[2]
LAB = "lab90_shapes"
SECOND_LAB = "lab91_shapes"

EXERCISES = '''
from edl_labs.checks import Case, Exercise, Wrong, close, exercise


class Numbers(Exercise):
    answers = "all"

    def cases(self, rng):
        return [Case(given={"sides": [float(s) for s in rng.integers(2, 40, size=2)]}) for _ in range(4)]

    def compare(self, case, got, want):
        if not close(got, want):
            raise Wrong(f"{self.name} is wrong", why="it differs from the reference", next="measure again")


@exercise("area", timeout_s=2)
class Area(Numbers):
    """The area of a rectangle."""

    name = "the area"

    def probe(self, student, given):
        return student.area(*given["sides"])


@exercise("box_area", uses=("area",), timeout_s=2)
class BoxArea(Numbers):
    """The surface of a square box, which builds on area."""

    name = "the surface"

    def probe(self, student, given):
        return student.box_area(given["sides"][0])


@exercise("halves", timeout_s=2)
class Halves(Numbers):
    """Each side halved; half the credit when only the first one is right."""

    def probe(self, student, given):
        return student.halves(list(given["sides"]))

    def compare(self, case, got, want):
        right = [close(g, w) for g, w in zip(got, want)]
        if len(got) != len(want) or not right[0]:
            raise Wrong("the first half is wrong", why="a half is value / 2", next="divide by two")
        return 1.0 if all(right) else 0.5


@exercise("longest", trusting=True, timeout_s=2)
class Longest(Numbers):
    """The longest side."""

    name = "the longest side"

    def probe(self, student, given):
        return student.longest(list(given["sides"]))
'''

POINTS = {"area": 2, "box_area": 2, "halves": 2, "longest": 1, "why_square": 2}
STUB = "raise NotImplementedError"
SOLUTIONS = {
    "area": ("def area(width, height):", "return width * height"),
    "box_area": ("def box_area(side):", "return 6 * area(side, side)"),
    "halves": ("def halves(values):", "return [value / 2 for value in values]"),
    "longest": ("def longest(values):", "return max(values)"),
}
SETUP = "from edl_labs import check, hint"
PARAMETERS = "repeats = 3"
QUESTION = "Why is the largest rectangle of a given outline a square?"
MODEL_ANSWER = "Because the product of two numbers with a fixed sum is largest when they are equal."


def solve_cell(name: str, *, body: str) -> str:
    """The solve cell of an exercise with `body` in place of its solution."""
    return f"{SOLUTIONS[name][0]}\n    {body}"


@dataclass(frozen=True)
class Course:
    """A course folder with nbgrader_config.py, a source notebook and exercise modules."""

    root: Path
    lab: str = LAB
    own_exercises: bool = True

    @property
    def exercises(self) -> Path:
        """The folder that EDL_LABS_EXERCISES names."""
        return self.root / "exercises"

    @property
    def env(self) -> dict[str, str]:
        """The environment of commands on this course: its own exercises, the project's programs on PATH."""
        bin_folder = str(Path(sys.executable).parent)
        own = {"EDL_LABS_EXERCISES": str(self.exercises)} if self.own_exercises else {}
        return dict(
            os.environ,
            **own,
            PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            JUPYTER_PREFER_ENV_PATH="1",
            HOME=str(self.root / "home"),
            MPLBACKEND="agg",
        )

    def nbgrader(self, *arguments: str, ok: bool = True) -> str:
        """What an nbgrader command logged; fails the test when its exit code is not as expected."""
        command = [sys.executable, "-m", "nbgrader", *arguments]
        done = subprocess.run(command, cwd=self.root, env=self.env, capture_output=True, text=True, timeout=280)
        log = done.stdout + done.stderr
        if ok and done.returncode != 0:
            raise AssertionError(f"nbgrader {' '.join(arguments)} exited with {done.returncode}:\n{log}")
        return log

    def released(self) -> nbformat.NotebookNode:
        """The notebook that students get."""
        return nbformat.read(self.root / "labs" / self.lab / f"{self.lab}.ipynb", as_version=4)

    def submit(self, student: str, notebook: nbformat.NotebookNode | bytes) -> Path:
        """A student's submission, written where nbgrader collects it."""
        folder = self.root / "course" / "submitted" / student / self.lab
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.lab}.ipynb"
        if isinstance(notebook, bytes):
            path.write_bytes(notebook)
        else:
            path.write_text(json.dumps(notebook), encoding="utf-8")
        for name, data in self.handed_in.items():
            (folder / name).write_bytes(data)
        return path

    @property
    def handed_in(self) -> dict[str, bytes]:
        """What is handed in next to the notebook of a lab that asks for files."""
        folder = REPOSITORY / "solutions" / self.lab / "handed_in"
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}

    def answered(self, sources: Mapping[str, str] | None = None, *, prose: str = "") -> nbformat.NotebookNode:
        """The released notebook with every solve cell answered, those in `sources` as given there."""
        notebook = self.released()
        called = second_name if self.lab == SECOND_LAB else str
        for name, (_, body) in SOLUTIONS.items():
            text = (sources or {}).get(name, solve_cell(name, body=body))
            cell_of(notebook, called(name))["source"] = _second(text) if self.lab == SECOND_LAB else text
        if prose:
            cell_of(notebook, called("why_square"))["source"] = prose
        return notebook

    def scores(self, student: str) -> dict[str, float | None]:
        """The automatic score of each graded cell of a student, from the gradebook."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.root / 'course' / 'gradebook.db'}") as gradebook:
            notebook = gradebook.find_submission_notebook(self.lab, self.lab, student)
            return {grade.name: grade.auto_score for grade in notebook.grades}


def cell_of(notebook: nbformat.NotebookNode, grade_id: str) -> nbformat.NotebookNode:
    """The cell with nbgrader id `grade_id`."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def make_course(root: Path) -> Course:
    """A course folder, released: source, goldens, labs/."""
    course = Course(root)
    (root / "home").mkdir(parents=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    course.exercises.mkdir()
    (course.exercises / f"{LAB}.py").write_text(EXERCISES, encoding="utf-8")
    source = root / "build" / "source" / LAB
    source.mkdir(parents=True)
    notebook = source_notebook()
    nbformat.write(notebook, source / f"{LAB}.ipynb")
    _write_goldens(course, notebook)
    course.nbgrader("generate_assignment", LAB)
    return course


def add_second_lab(course: Course) -> Course:
    """Another lab of the same form in the same course, its names ending in _two."""
    second = Course(course.root, SECOND_LAB)
    (course.exercises / f"{SECOND_LAB}.py").write_text(_second(EXERCISES), encoding="utf-8")
    source = course.root / "build" / "source" / SECOND_LAB
    source.mkdir(parents=True)
    notebook = nbformat.from_dict(json.loads(_second(json.dumps(source_notebook()))))
    nbformat.write(notebook, source / f"{SECOND_LAB}.ipynb")
    _write_goldens(second, notebook, points={second_name(name): most for name, most in POINTS.items()})
    second.nbgrader("generate_assignment", SECOND_LAB)
    return second


def second_name(name: str) -> str:
    """What an exercise of the first lab is called in the second one."""
    return f"{name}_two"


def _second(text: str) -> str:
    names = "|".join(sorted(POINTS, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z])(check_)?({names})(?![A-Za-z_])", r"\1\2_two", text)


def make_lab_course(root: Path, name: str) -> Course:
    """A course folder around a lab of this repository, built and released as the build does it."""
    from edl_labs.course.course_folder import Course as Repository
    from edl_labs.course.lab.read import read_lab
    from edl_labs.course.lab.source_notebook import dumps, release, source_notebook

    course = Course(root, name, own_exercises=False)
    (root / "home").mkdir(parents=True)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    text = dumps(source_notebook(read_lab(Repository(REPOSITORY), name)))
    for folder, content in (("build/source", text), ("labs", dumps(release({name: text})[name]))):
        (root / folder / name).mkdir(parents=True)
        (root / folder / name / f"{name}.ipynb").write_text(content, encoding="utf-8")
    return course


def solved(course: Course) -> nbformat.NotebookNode:
    """The released notebook with the solution in every solve cell, as a student would hand it in."""
    notebook = course.released()
    source = nbformat.read(course.root / "build" / "source" / course.lab / f"{course.lab}.ipynb", as_version=4)
    for cell in source.cells:
        meta = cell.metadata.get("nbgrader", {})
        if meta.get("solution"):
            cell_of(notebook, meta["grade_id"])["source"] = cell["source"]
    return notebook


def source_notebook() -> nbformat.NotebookNode:
    """The instructor's notebook, with nbgrader's markers around the solutions."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell(f"# Shapes\n{QUESTION}", id="title")]
    cells.append(v4.new_code_cell(SETUP, id="setup"))
    cells.append(v4.new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}))
    for name, (head, body) in SOLUTIONS.items():
        solution = f"{head}\n    ### BEGIN SOLUTION\n    {body}\n    ### END SOLUTION"
        cells.append(v4.new_code_cell(solution, id=f"solve-{name}", metadata=_nbgrader(name, solution=True)))
        grade = _nbgrader(f"check_{name}", grade=True, points=POINTS[name])
        cells.append(v4.new_code_cell(f'check("{name}")', id=f"check-{name}", metadata=grade))
    answer = _nbgrader("why_square", solution=True, grade=True, points=POINTS["why_square"])
    answer_cell = f"### BEGIN SOLUTION\n{MODEL_ANSWER}\n### END SOLUTION"
    cells.append(v4.new_markdown_cell(answer_cell, id="why-square", metadata=answer))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def _nbgrader(
    grade_id: str, *, solution: bool = False, grade: bool = False, points: float | None = None
) -> dict[str, dict[str, object]]:
    meta = {"grade": grade, "solution": solution, "locked": not solution, "task": False, "schema_version": 3}
    return {"nbgrader": {"grade_id": grade_id, **meta, **({} if points is None else {"points": points})}}


def _write_goldens(course: Course, notebook: nbformat.NotebookNode, *, points: Mapping[str, float] = POINTS) -> None:
    solve = [c.source for c in notebook.cells if c.cell_type == "code" and not c.source.startswith("check(")]
    command = [sys.executable, str(Path(__file__).parent / "write_goldens.py")]
    request = json.dumps([course.lab, solve, dict(points)])
    done = subprocess.run(command, input=request, env=course.env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    folder = course.exercises / "goldens"
    folder.mkdir(exist_ok=True)
    (folder / f"{course.lab}.json").write_text(done.stdout, encoding="utf-8")
