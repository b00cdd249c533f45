"""Which cells run: the student's, those that the lab declares, and cells that define what those read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.cell_names import cell_names, needed
from edl_labs.course.grade.declared_cells import declared_plan
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell

SETUP = KnownCell("code", "setup", "import math", "import math", {}, lab_role="setup")


def released(name: str, source: str, *, lab_role: str = "") -> PlannedCell:
    return PlannedCell("code", source, KnownCell("code", name, source, source, {}, lab_role=lab_role), runs=True)


def plan(*cells: PlannedCell) -> MarkingPlan:
    return MarkingPlan((released("setup", "import math", lab_role="setup"), *cells), ())


def run_of(given: MarkingPlan) -> list[str]:
    return [cell.source for cell in declared_plan(given).cells if cell.runs]


def test_a_demonstration_does_not_run_and_what_the_lab_declares_does():
    given = plan(released("a", "print(1)"), released("b", "x = 2", lab_role="given"))

    assert ["import math", "x = 2"] == run_of(given)


def test_a_demonstration_that_the_student_changed_runs():
    changed = replace(released("a", "print(1)"), source="print(2)")

    assert ["import math", "print(2)"] == run_of(plan(changed))


def test_a_cell_of_the_students_own_runs_with_all_that_it_reads():
    mine = PlannedCell("code", "print(table[0])", runs=True)
    given = plan(released("a", "rows = [1]"), released("b", "table = rows"), released("c", "print(rows)"), mine)

    assert ["import math", "rows = [1]", "table = rows", "print(table[0])"] == run_of(given)


def test_all_cells_run_of_a_release_that_declares_none():
    given = MarkingPlan((released("setup", "import math"), released("a", "print(1)")), ())

    assert given is declared_plan(given)


@pytest.mark.parametrize("source", ["def f(:", "x = !ls", "\0"])
def test_all_cells_run_where_the_students_code_cannot_be_read(source: str):
    given = plan(released("a", "print(1)"), PlannedCell("code", source, runs=True))

    assert given is declared_plan(given)


@pytest.mark.parametrize("source", ["%matplotlib inline\nprint(x)", "if y:\n    !ls\nprint(x)"])
def test_lines_of_ipython_are_passed_over(source: str):
    names = cell_names(source)

    assert names is not None
    assert "x" in names.reads


@pytest.mark.parametrize(
    ("source", "binds", "reads"),
    [
        ("def f(x):\n    return x + y", {"f"}, {"y"}),
        ("def f():\n    global n\n    n = m", {"f", "n"}, {"m"}),
        ("class A:\n    x = x", {"A"}, {"x"}),
        ("from a import b as c\nimport d.e", {"c", "d"}, set()),
        ("for i in range(3):\n    t = [j for j in u]", {"i", "t"}, {"range", "u"}),
        ("x += 1", {"x"}, set()),
        ("lambda a: a(b)", set(), {"b"}),
        ("(w := v)", {"w"}, {"v"}),
    ],
)
def test_names_that_a_cell_binds_and_reads(source: str, binds: set[str], reads: set[str]):
    names = cell_names(source)

    assert names is not None
    assert (binds, reads) == (set(names.binds), set(names.reads))


def test_what_a_star_import_binds_may_be_anything():
    assert [0, 2] == needed(["from math import *", "x = 1", "print(pi)"], [True, True, False])


def test_each_cell_that_binds_a_name_runs():
    assert [0, 1, 2] == needed(["x = 1", "x = 2", "print(x)"], [True, True, False])
