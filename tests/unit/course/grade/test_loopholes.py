"""Notebooks that set out to alter what an answer sees where no name shows it: the altering cell must run.

`loopholes.txt` has them: released cells, the cell that alters something, and what the answer returns, with `---`
between them. `(after)`: it alters the answer itself, behind it. `(draws)`: the last one draws for the answer.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from edl_labs.course.grade.needed_cells import names_of
from tests.unit.course.grade.test_needed_cells import APART, SHOWS, given, left_out, solved

_BLOCK = re.compile(r"^### ([^\n]+) \((\w+)\)\n(.*?)\n(?=\n###|\Z)", re.MULTILINE | re.DOTALL)
LOOPHOLES = {
    (name, kind): body.split("\n---\n")
    for name, kind, body in _BLOCK.findall(Path(__file__).with_name("loopholes.txt").read_text(encoding="utf-8"))
}


RELEASED = sorted((Path(__file__).parents[4] / "labs").glob("lab*/lab*.ipynb"))


def named(kind: str) -> list[str]:
    return [name for name, of in LOOPHOLES if of == kind]


def cells(texts: list[str], alters: str) -> list:
    return [*(given(f"c-{number}", text) for number, text in enumerate(texts)), given("c-alters", alters)]


def answering(returns: str):
    return solved(f"def area(width, h):\n    return {returns}")


@pytest.mark.parametrize("name", named("before"))
def test_a_loophole_is_seen(name: str):
    *texts, alters, returns = LOOPHOLES[name, "before"]

    assert "c-alters" not in left_out(*cells(texts, alters), answering(returns), SHOWS)


@pytest.mark.parametrize("name", named("after"))
def test_what_alters_the_answer_itself_is_seen(name: str):
    *texts, alters, returns = LOOPHOLES[name, "after"]
    *before, altering = cells(texts, alters)

    assert "c-alters" not in left_out(*before, answering(returns), altering)


@pytest.mark.parametrize("name", named("draws"))
def test_a_draw_before_one_that_is_needed_is_seen(name: str):
    *texts, alters, then = LOOPHOLES[name, "draws"]
    seen = given("c-seen", f"def seen():\n    return {'K' if 'K' in then else 'b'}")

    assert "c-alters" not in left_out(*cells(texts, alters), given("c-then", then), seen, answering("seen()"))


def test_what_shows_is_spared_beside_nearly_all_of_them():
    """Seeing the loopholes is no blunt refusal: a cell apart from them does not run."""
    spared = [
        "c-plots" in left_out(*cells(texts, alters), answering(returns), APART)
        for (_, kind), (*texts, alters, returns) in LOOPHOLES.items()
        if kind == "before"
    ]

    assert len(spared) > 80
    assert 0.85 * len(spared) < sum(spared)


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_the_first_cells_of_the_released_notebooks_can_be_decided(path: Path):
    """One that cannot would make every notebook of its lab run whole."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [text for cell in cells if cell["cell_type"] == "code" if (text := "".join(cell["source"]))]

    assert len(code) > 20
    assert [] == [text for text in code[:2] if not names_of(text).decidable]


@pytest.mark.slow
@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_the_released_notebooks_are_spared_much(path: Path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    plan = [given(cell["id"], "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]

    assert all(names_of(cell.source).decidable for cell in plan)
    assert 0.3 * len(plan) < len(left_out(*plan))
