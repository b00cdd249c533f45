"""Small notebooks for the tests of running: check cells that put out a score as real ones do, without an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from edl_labs.course.run.run_report import RunLimits

QUICK = RunLimits(cell_s=120, notebook_s=240)

SETUP = """
import json
class Score(float):
    def _repr_mimebundle_(self, **_):
        mime = "application/vnd.edl-labs.score+json"
        return {"text/plain": repr(float(self)), "text/html": "<b>score</b>", mime: self.outcome}
RESULTS = {}
def check(name):
    points, most, state = RESULTS.get(name, (0.0, 2.0, "not attempted"))
    score = Score(points)
    score.outcome = {"schema": 1, "name": name, "lab": "lab90_small", "state": state, "points": points,
                     "max_points": most, "what": "the sum is wrong", "why": "2 + 2", "next": f'hint("{name}")'}
    return score
"""


def marks(grade_id: str, **more: Any) -> dict[str, Any]:
    base = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    return {"nbgrader": {**base, "grade_id": grade_id, **more}}


def code(source: str, cell_id: str = "", *, tags: tuple[str, ...] = ()) -> Any:
    cell = new_code_cell(source, metadata={"tags": list(tags)} if tags else {})
    cell["id"] = cell_id or cell["id"]
    return cell


def solve(name: str, source: str) -> Any:
    cell = new_code_cell(source, id=f"solve-{name.replace('_', '-')}")
    cell.metadata.update(marks(name, solution=True))
    return cell


def check(name: str, *, points: float = 2.0) -> Any:
    cell = new_code_cell(f'check("{name}")', id=f"check-{name.replace('_', '-')}")
    cell.metadata.update(marks(f"check_{name}", grade=True, locked=True, points=points))
    return cell


def explain(name: str, answer: str = "Because.") -> list[Any]:
    question = new_markdown_cell("Why?", id=f"explain-{name.replace('_', '-')}")
    question.metadata.update(marks(f"{name}_question", locked=True))
    cell = new_markdown_cell(answer, id=f"answer-{name.replace('_', '-')}")
    cell.metadata.update(marks(name, grade=True, solution=True, points=2.0))
    return [question, cell]


def passed(*names: str, most: float = 2.0) -> Any:
    """A cell after which the checks of these names pass."""
    return code("\n".join(f"RESULTS[{name!r}] = ({most}, {most}, 'passed')" for name in names))


def notebook(*cells: Any) -> Any:
    return new_notebook(cells=[new_markdown_cell("# Small", id="title"), code(SETUP, "setup"), *cells])


def write(folder: Path, name: str, *cells: Any) -> Path:
    path = folder / f"{name}.ipynb"
    nbformat.write(notebook(*cells), path)
    return path


def raw(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path
