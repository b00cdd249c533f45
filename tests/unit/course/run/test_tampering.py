"""Locked cells are compared with what was released, as forgiving of editors as possible and no more."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

import pytest

from edl_labs.course.run.checkfile import grade_name, tampering
from tests.unit.course.run.running_kit import check, code, explain, notebook


def released() -> Any:
    return notebook(check("sums"), check("tiles"), *explain("why_so"))


def digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


LOCKED = {cell.id: digest(cell.source) for cell in released().cells if cell.metadata.get("nbgrader", {}).get("locked")}


def whats(made: Any) -> list[str]:
    return [failure.what for failure in tampering(made, LOCKED).values()]


def test_what_was_released_is_untouched() -> None:
    assert {"check-sums", "check-tiles", "explain-why-so"} == set(LOCKED)
    assert [] == whats(released())


def test_a_lost_id_is_found_by_nbgraders_name() -> None:
    made = released()
    for number, cell in enumerate(made.cells):
        cell["id"] = f"new-{number}"

    assert [] == whats(made)


def test_a_lost_mark_is_found_by_the_id() -> None:
    made = released()
    for cell in made.cells:
        cell.metadata.pop("nbgrader", None)

    assert [] == whats(made)


def test_a_cell_without_id_and_mark_is_found_by_its_text() -> None:
    made = released()
    for number, cell in enumerate(made.cells):
        cell["id"] = f"new-{number}"
        cell.metadata.pop("nbgrader", None)

    assert [] == whats(made)


@pytest.mark.parametrize("ending", ["\n", "  \n\n", "\r\n"])
def test_white_space_at_the_end_is_no_edit(ending: str) -> None:
    made = released()
    made.cells[2].source += ending

    assert [] == whats(made)


def test_the_same_call_in_a_cell_of_ones_own_is_no_copy() -> None:
    made = released()
    made.cells.append(code('check("sums")', "mine"))

    assert [] == whats(made)


def edited(made: Any) -> None:
    made.cells[2].source = 'check("sums"); 2.0'


def deleted(made: Any) -> None:
    del made.cells[2]


def copied(made: Any) -> None:
    made.cells.append(deepcopy(made.cells[2]))
    made.cells[-1]["id"] = "copy"


def made_text(made: Any) -> None:
    made.cells[2].cell_type = "markdown"


def hidden_behind_a_twin(made: Any) -> None:
    made.cells.append(code("2.0", "check-sums"))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (edited, "the locked cell check-sums was edited"),
        (deleted, "the locked cell check-sums is missing"),
        (copied, "the locked cell check-sums occurs 2 times"),
        (made_text, "the locked cell check-sums was edited"),
        (hidden_behind_a_twin, "the locked cell check-sums occurs 2 times"),
    ],
)
def test_each_way_to_touch_a_locked_cell_is_named(change: Any, what: str) -> None:
    made = released()
    change(made)

    assert [what] == whats(made)
    assert {5} == {failure.exit_code for failure in tampering(made, LOCKED).values()}


def test_a_question_that_was_edited_is_named() -> None:
    made = released()
    made.cells[4].source = "Why not?"

    assert ["the locked cell explain-why-so was edited"] == whats(made)


@pytest.mark.parametrize(
    ("cell_id", "name"), [("check-a-b", "check_a_b"), ("explain-a-b", "a_b_question"), ("setup", "setup_")]
)
def test_ids_and_nbgraders_names_belong_together(cell_id: str, name: str) -> None:
    assert name == grade_name(cell_id)
