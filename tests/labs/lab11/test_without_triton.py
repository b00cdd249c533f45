"""The lab needs no Triton: where it cannot be imported, every solution is probed, evaluated and right."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import load_lab
from edl_labs.checks.spec import given_halves
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LAB = next(lab for lab in read_labs(Course(Path(__file__).resolve().parents[3])) if lab.name == "lab11_tiles")
EXERCISES = {one.name: one for one in load_lab(LAB.name)}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names of a notebook in which the given cells and the solutions have run."""
    monkeypatch.setitem(sys.modules, "triton", None)
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in LAB.cells:
        if cell.kind == "code" and cell.role in ("given", "solve"):
            file = f"<{cell.label}>"
            linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(keepends=True), file)
            exec(compile(cell.source, file, "exec"), names)
    return names


@pytest.mark.parametrize("name", EXERCISES)
def test_a_solution_is_right_where_triton_cannot_be_imported(name: str, notebook: dict[str, object]) -> None:
    cases = EXERCISES[name].draw_cases(3)
    records = collect(EXERCISES[name], notebook, given_halves(cases))
    wanted = [{} if EXERCISES[name].spec.source_is_evidence else record["value"] for record in records]
    outcome = judge(EXERCISES[name], cases, records, wanted, points=1.0)

    assert ("passed", "") == (outcome.state, outcome.what)
    with pytest.raises(ImportError):
        __import__("triton")
