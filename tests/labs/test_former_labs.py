"""Notebooks of an earlier release still check and grade: students hand in what they began with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from edl_labs.checks.lab_facts import facts
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_lab
from edl_labs.course.run.checkfile import check_notebook, lab_of_notebook, tampering
from edl_labs.course.run.run_report import RunLimits

ROOT = Path(__file__).resolve().parents[2]
ENDED = {"fastest_decoder"}  # an essay; its points are decode_once's since, and nothing before 1.0 was released
KEPT = sorted((ROOT / "tests" / "data" / "labs").glob("*.ipynb.gz"))


def former(path: Path) -> Any:
    return nbformat.reads(gzip.decompress(path.read_bytes()).decode(), as_version=4)


def marks(notebook: Any) -> dict[str, float]:
    """Points by nbgrader's name of the cell."""
    found = (cell.metadata.get("nbgrader", {}) for cell in notebook.cells)
    return {meta["grade_id"]: meta["points"] for meta in found if meta.get("grade")}


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition("_")[0])
def test_every_grade_id_is_still_there_and_no_locked_cell_counts_as_changed(path: Path) -> None:
    notebook = former(path)
    lab = lab_of_notebook(notebook, path)
    now = json.loads((ROOT / "labs" / lab.lab / f"{lab.lab}.ipynb").read_text(encoding="utf-8"))

    assert marks(notebook).keys() - ENDED <= marks(nbformat.from_dict(now)).keys()
    held = {cell["id"] for cell in notebook.cells}
    checks = {cell: digest for cell, digest in facts(lab.lab).locked.items() if cell in held and "check-" in cell}
    assert len(checks) > 5
    assert {} == tampering(notebook, checks)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name.partition("_")[0])
def test_a_former_notebook_with_the_solutions_has_every_point_it_asks_for(path: Path, tmp_path: Path) -> None:
    notebook = former(path)
    lab = read_lab(Course(ROOT), lab_of_notebook(notebook, path).lab)
    solutions = {f"solve-{e.name.replace('_', '-')}": e.name for e in lab.exercises if e.kind == "code"}
    for cell in notebook.cells:
        if cell["id"] in solutions:
            cell["source"] = lab.solution_cell(solutions[cell["id"]])
        if "parameters" in cell.metadata.get("tags", []):
            cell["source"] += "\n" + "\n".join(f"{k} = {v!r}" for k, v in lab.parameters["smoke"].items())
    target = tmp_path / f"{lab.name}.ipynb"
    nbformat.write(notebook, target)

    report = check_notebook(target, limits=RunLimits(cell_s=400))

    asked = {name.removeprefix("check_") for name in marks(notebook)}
    assert {"passed", "marked by hand"} == {e.state for e in report.exercises if e.name in asked}
    assert [] == [f for f in report.failures if f.kind != "tampered"]
