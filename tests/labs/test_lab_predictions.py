"""Each prediction of a lab is asked for once, and what came out is revealed further down, before the next section."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}


def names_of(source: str, function: str) -> Iterator[str]:
    """The names in calls of `predict` or `revealed`; `*asked` is a tuple of the same cell."""
    tree = ast.parse(source)
    tuples = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Tuple)
        if all(isinstance(item, ast.Constant) for item in node.value.elts)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == function:
            for one in call.args[:1] if function == "predict" else call.args:
                yield from tuples[one.value.id] if isinstance(one, ast.Starred) else (one.value,)


def problems(cells: Sequence[tuple[str, str]]) -> list[str]:
    """What is wrong with the predictions of (kind, source) cells."""
    found: list[str] = []
    open_names: dict[str, None] = {}
    seen: set[str] = set()
    for kind, source in cells:
        if kind == "markdown":
            found += [f"{name} is not revealed in its section" for name in open_names if source.startswith("## ")]
            open_names = {} if source.startswith("## ") else open_names
            continue
        for name in names_of(source, "predict"):
            found += [f"{name} is asked twice"] if name in seen else []
            seen.add(name)
            open_names[name] = None
        for name in names_of(source, "reveal_prediction"):
            found += [] if name in open_names else [f"{name} is revealed and was not asked"]
            open_names.pop(name, None)
    return found


@pytest.mark.parametrize("lab", LABS)
def test_what_is_asked_is_revealed_in_its_section(lab: str) -> None:
    cells = [(cell.kind, cell.source) for cell in LABS[lab].cells]

    assert [] == problems(cells)


def test_the_first_five_labs_have_boxes() -> None:
    boxes = [sum("\npredict(" in f"\n{cell.source}" for cell in LABS[lab].cells) for lab in sorted(LABS)[:5]]

    assert all(count >= 6 for count in boxes)


def test_a_prediction_without_an_answer_is_found() -> None:
    asked, shown = (
        ("code", 'predict("a", "A", unit="s")'),
        ("code", 'with reveal_prediction("a") as truth:\n    truth(1.0)'),
    )
    section = ("markdown", "## 2. Next")

    assert [] == problems([asked, shown, section])
    assert ["a is not revealed in its section", "a is revealed and was not asked"] == problems([asked, section, shown])
    assert ["a is asked twice"] == problems([asked, asked, shown])
