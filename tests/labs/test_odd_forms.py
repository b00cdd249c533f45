"""Right answers of every exercise in unusual forms, through probe and judge: named tuples, enums, 0-d arrays.

No exercise is left out. Where a function returns nothing (four loops of `bug_hunt`, the methods of a loss scaler but
`scale`), what is judged are tensors that the check itself made: no other form of them is the student's to choose.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_exercises import lab_names, load_lab
from edl_labs.checks.spec import given_halves
from tests.labs.conftest import SOLUTIONS, parse
from tests.marks.answer_forms import boxed, lazy, named, oddly


@pytest.mark.slow  # every exercise of a lab, with all cases of a draw
@pytest.mark.parametrize("form", [named, lazy, boxed])
@pytest.mark.parametrize("lab", lab_names())
def test_the_solution_passes_whatever_form_its_answers_have(lab: str, form: Callable[[Any], Any]):
    source = SOLUTIONS / lab / f"{lab}.py"
    cells = parse(source.read_text(encoding="utf-8"), file=source.name)
    names: dict[str, Any] = {}
    for cell in cells:
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    told = {}
    for exercise in load_lab(lab):
        cell = next(cell for cell in cells if cell.role == "solve" and cell.name == exercise.name)
        kinds = ast.FunctionDef | ast.ClassDef
        asked = [node.name for node in ast.parse(cell.source).body if isinstance(node, kinds)]
        cases = exercise.draw_cases(1)
        wants = [record["value"] for record in collect(exercise, names, given_halves(cases))]
        found = collect(exercise, {**names, **{name: oddly(names[name], form) for name in asked}}, given_halves(cases))
        outcome = judge(exercise, cases, found, wants, points=1.0)
        if outcome.state != "passed":
            told[exercise.name] = (outcome.what, outcome.why)

    assert {} == told
