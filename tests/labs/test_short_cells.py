"""A cell fits on a projected screen (15 lines, where students read and do not write), and a sitting into a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs
from edl_labs.course.lab.rules import warnings
from edl_labs.course.lab.source import Cell, parse

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
# The first line of a longer cell, and what splitting it would cost.
LONGER: dict[str, dict[str, str]] = {}


MOST_MINUTES = 150  # that a student sits at a lab; one that takes longer says where to stop for the day


@pytest.mark.parametrize("name", LABS)
def test_no_sitting_is_longer_than_a_student_can_sit(name: str) -> None:
    lab = LABS[name]

    assert all(one.minutes for one in lab.exercises if not one.optional)
    assert max(lab.sittings) <= MOST_MINUTES
    assert sum(lab.sittings) == lab.minutes


def first_lines_of_long(cells: Sequence[Cell]) -> set[str]:
    """The first lines of the cells that are longer than the house style allows."""
    by_line = {cell.line: cell.source.partition("\n")[0] for cell in cells}
    return {by_line[int(told.split(":")[1])] for told in warnings(list(cells))}


def differences(cells: Sequence[Cell], allowed: Mapping[str, str]) -> list[str]:
    """What is too long without a reason, and reasons for what is not too long."""
    found = first_lines_of_long(cells)
    stale = [f"listed and not too long: {first}" for first in sorted(set(allowed) - found)]
    return [f"too long: {first}" for first in sorted(found - set(allowed))] + stale


@pytest.mark.parametrize("lab", LABS)
def test_a_cell_that_is_read_has_fifteen_lines(lab: str) -> None:
    assert [] == differences(LABS[lab].cells, LONGER.get(lab, {}))


def test_a_long_cell_and_a_stale_exception_are_found() -> None:
    body = "\n".join(f"x{i} = {i}" for i in range(16))
    cells = parse(f"# %%\n{body}\n\n# %% given\n{body}\n\n# %%\ny = 1\n", file="lab.py")

    assert ["too long: x0 = 0"] == differences(cells, {})
    assert [] == differences(cells, {"x0 = 0": "a table"})
    assert ["listed and not too long: y = 1"] == differences(cells, {"x0 = 0": "a table", "y = 1": "none"})
