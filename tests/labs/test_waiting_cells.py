"""Run All Cells goes to the end of a lab that nothing is written in: cells that use an answer wait for it.

`edl-labs check` goes on after a cell that an unwritten function stops; JupyterLab does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)  # their bodies run when something calls them


def used_at_once(node: ast.AST) -> Iterator[str]:
    """Names that a cell calls while it runs, but for those in a block that catches what they raise."""
    is_guarded = isinstance(node, ast.Try) or (
        isinstance(node, ast.With)
        and any(
            isinstance(one.context_expr, ast.Call) and "requires_solution" in ast.unparse(one) for one in node.items
        )
    )
    if is_guarded or isinstance(node, _LATER):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func.id
    for inner in ast.iter_child_nodes(node):
        yield from used_at_once(inner)


def written_by_students(lab: str) -> set[str]:
    trees = [cell.tree for cell in LABS[lab].cells if cell.kind == "code" and cell.role == "solve"]
    return {one.name for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("lab", LABS)
def test_a_cell_waits_for_the_answer_that_it_calls(lab: str) -> None:
    names = written_by_students(lab)
    others = [cell for cell in LABS[lab].cells if cell.kind == "code" and cell.role not in ("solve", "check")]

    assert names
    assert [] == [(cell.label, name) for cell in others for name in used_at_once(cell.tree) if name in names]


def test_a_call_is_found_unless_it_waits() -> None:
    text = (
        "f(1)\nwith requires_solution('f'):\n    g(2)\ntry:\n    h(3)\nexcept ValueError:\n    pass\ndef k():\n    m(4)"
    )

    assert ["f"] == list(used_at_once(ast.parse(text)))
