"""Globals of the notebooks do not collide: a cell that is run again finds what it found the first time."""

from __future__ import annotations

import symtable
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from edl_labs.checks.lab_cells import bound_names
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}


def free_names(source: str) -> set[str]:
    """The globals that a cell reads and does not bind itself, in its functions too."""

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        yield from (one.get_name() for one in table.get_symbols() if one.is_referenced() and one.is_global())
        for child in table.get_children():
            yield from read(child)

    top = symtable.symtable(source, "cell", "exec")
    referenced = {one.get_name() for one in top.get_symbols() if one.is_referenced()}
    return (referenced | set(read(top))) - set(bound_names(source))


def collisions(cells: Sequence[str]) -> dict[str, int]:
    """Names that some cell takes from another one, and that more than one cell binds; with how many do.

    Whoever runs one of those cells again, and then the one that reads the name, gets the wrong one's.
    """
    taken = {name for source in cells for name in free_names(source)}
    bound = [name for source in cells for name in bound_names(source)]
    return {name: bound.count(name) for name in sorted(taken) if bound.count(name) > 1}


@pytest.mark.parametrize("lab", LABS)
def test_what_a_cell_takes_from_another_is_bound_once(lab: str) -> None:
    cells = [c.source for c in LABS[lab].cells if c.kind == "code" and c.role not in ("check", "explain")]

    assert len(cells) > 20
    assert {} == collisions(cells)


def test_a_collision_is_found_and_a_cells_own_names_are_none() -> None:
    first, second = "spans = [1]\nprint(spans)", "spans = {}"
    loop = "for name in 'ab':\n    print(name)"

    assert {"spans": 2} == collisions([first, second, "def used():\n    return len(spans)"])
    assert {} == collisions([first, second, loop, loop])
    assert {} == collisions(["spans = [1]", "print(spans)", loop])
