"""A lab as notebooks: nbgrader's source, with the same bytes in every build, and the release made from it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edl_labs.course.assignment import GRADED_WITH, LAB_ROLES
from edl_labs.course.lab.hosts import hosted, unhosted
from edl_labs.course.lab.install_line import install_line
from edl_labs.course.lab.own_wheel import distribution, has_own_labs
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.source import Cell
from edl_labs.errors import EdlError, UsageError

RUBRIC_HEAD = "**Rubric**"  # behind the model answer, for those who mark
NBGRADER_SCHEMA = 3  # of nbgrader's cell metadata, as its versions 0.6 to 0.9 write it
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


def source_notebook(lab: Lab) -> dict[str, Any]:
    """The lab with its solutions as an nbformat 4.5 notebook: what nbgrader takes as its source."""
    cells: list[dict[str, Any]] = []
    for cell, cell_id in zip(lab.cells, cell_ids(lab.cells), strict=True):
        cells += _explain_cells(lab, cell, cell_id) if cell.role == "explain" else [_cell(lab, cell, cell_id)]
    graded = {GRADED_WITH: lab.parameters["smoke"]} if lab.toml.graded_with == "smoke" else {}
    metadata = {**METADATA, "edl_labs": {"lab": lab.name, **graded}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def cell_ids(cells: tuple[Cell, ...]) -> list[str]:
    """One id a cell, from its role; a cell without a role counts from the last one that has it, or from `title`."""
    ids, anchor, count = [], "title", 0
    for index, cell in enumerate(cells):
        if cell.role in (None, "given") and index > 0:
            count += 1
            ids.append(f"c-{anchor}-{count}")
        else:
            anchor, count = "-".join(filter(None, (cell.role, cell.name))).replace("_", "-") or "title", 0
            ids.append(anchor)
    return ids


def dumps(notebook: dict[str, Any]) -> str:
    """The notebook as text: sorted keys, one-space indent, a newline at the end."""
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def stamped(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with `metadata.edl_labs.release`, a digest of its cells: a student's copy keeps it.

    What a course hosts makes no other release: students check it with edl_labs, which knows the usual one.
    """
    cells = json.dumps([_as_usual(cell) for cell in notebook["cells"]], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(cells.encode()).hexdigest()[:16]
    told = {key: value for key, value in notebook["metadata"]["edl_labs"].items() if key != GRADED_WITH}
    metadata = {**notebook["metadata"], "edl_labs": {**told, "release": digest}}
    return {**notebook, "metadata": metadata}


def _as_usual(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["metadata"].get("edl_labs", {}).get("role") != "setup":
        return cell
    return {**cell, "source": unhosted("".join(cell["source"])).splitlines(keepends=True)}


def locked_digests(notebook: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each locked cell's source, by cell id."""
    locked = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("locked")]
    return {c["id"]: hashlib.sha256("".join(c["source"]).encode()).hexdigest() for c in locked}


def _cell(lab: Lab, cell: Cell, cell_id: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if cell.role in LAB_ROLES:
        metadata["edl_labs"] = {"role": cell.role}
    if cell.role == "setup":
        metadata["jupyter"] = {"source_hidden": True}  # nobody's first code should be an installer
    if cell.role == "parameters":
        metadata["tags"] = ["parameters"]
    if cell.role == "solve":
        metadata["nbgrader"] = _nbgrader(str(cell.name), solution=True)
    if cell.role == "check":
        points = lab.exercise(str(cell.name)).points
        metadata["nbgrader"] = _nbgrader(f"check_{cell.name}", grade=True, locked=True, points=points)
    source = _setup(lab, cell.source) if cell.role == "setup" else cell.source
    return _notebook_cell(cell.kind, cell_id, source, metadata)


def _setup(lab: Lab, source: str) -> str:
    """The set-up cell; on a rented host it installs the library, or the wheel of the course that the lab is of."""
    root = lab.folder.parents[1]
    module = distribution(root).package if has_own_labs(root) else "edl_labs"
    return hosted(source, module=module, install=install_line(root).release)


def _explain_cells(lab: Lab, cell: Cell, cell_id: str) -> list[dict[str, Any]]:
    """The question, locked, and the answer, whose solution is the model answer with the rubric below it."""
    name = str(cell.name)
    exercise = lab.exercise(name)
    question = _nbgrader(f"{name}_question", locked=True)
    answer = _nbgrader(name, grade=True, solution=True, points=exercise.points)
    answer_id = "answer" + cell_id.removeprefix("explain")
    solution = "\n".join(
        [exercise.model_answer.strip(), "", RUBRIC_HEAD, "", *(f"* {line}" for line in exercise.rubric)]
    )
    return [
        _notebook_cell("markdown", cell_id, cell.source, {"nbgrader": question}),
        _notebook_cell("markdown", answer_id, solution, {"nbgrader": answer}),
    ]


def _nbgrader(
    grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = False, points: float | None = None
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": NBGRADER_SCHEMA,
        "solution": solution,
        "task": False,
    }
    return found if points is None else {**found, "points": points}


def _notebook_cell(kind: str, cell_id: str, source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    cell = {"cell_type": kind, "id": cell_id, "metadata": metadata, "source": source.splitlines(keepends=True)}
    return {**cell, "execution_count": None, "outputs": []} if kind == "code" else cell


def release(notebooks: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The released notebook of each lab (name → text of its source notebook), stamped with its digest.

    nbgrader sees nothing but these notebooks: it would copy every other file next to them into the release.
    """
    with tempfile.TemporaryDirectory(prefix="edl-release-") as folder:
        root = Path(folder)
        for name, text in notebooks.items():
            (root / "source" / name).mkdir(parents=True)
            (root / "source" / name / f"{name}.ipynb").write_text(text, encoding="utf-8")
        return {name: _one(root, name) for name in notebooks}


def _one(root: Path, name: str) -> dict[str, Any]:
    with _quiet() as heard, _directory_kept():
        try:
            _generate(root, name)
        except (Exception, SystemExit) as error:
            raise EdlError(
                f"nbgrader could not create the release of {name}",
                why=_reason(heard, error),
                next="fix the lab's source, then run `edl-labs build` again",
            ) from None
    made = root / "release" / name / f"{name}.ipynb"
    if not made.is_file():
        raise EdlError(f"nbgrader created no release of {name}", why="; ".join(heard[-2:]))
    notebook = json.loads(made.read_text(encoding="utf-8"))
    _check_complete(json.loads((root / "source" / name / f"{name}.ipynb").read_text(encoding="utf-8")), notebook, name)
    return stamped(notebook)


def _reason(heard: list[str], error: BaseException) -> str:
    """The last exception that nbgrader logged a traceback of; its own message only points at that."""
    lines = [line for text in heard for line in text.split("\n")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return raised[-1] if raised else str(error)


def _generate(root: Path, name: str) -> None:
    try:
        from nbgrader.converters import GenerateAssignment
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config import Config
    except ImportError as error:
        raise UsageError(
            "nbgrader is not installed", why=str(error), next="run pip install 'edl-labs[instructor]'"
        ) from None
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = name
    config.GenerateAssignment.no_database = True  # what `nbgrader generate_assignment --no-db` sets
    config.SaveCells.enabled = False
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()


def _check_complete(source: dict[str, Any], released: dict[str, Any], name: str) -> None:
    wanted, got = ([cell["id"] for cell in notebook["cells"]] for notebook in (source, released))
    if wanted != got:
        raise EdlError(f"nbgrader changed the cells of {name}", why=f"{sorted({*wanted} ^ {*got}) or 'their order'}")


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collects what nbgrader logs instead of printing it."""
    heard: list[str] = []
    logger = logging.getLogger("traitlets")
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    before, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    try:
        yield heard
    finally:
        logger.handlers, logger.propagate = before, propagate


@contextmanager
def _directory_kept() -> Iterator[None]:
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)
