"""Mutants: one small mistake each, in what students write, called the same wherever the lines stand."""

from __future__ import annotations

import ast

import pytest

from edl_labs.course.lab.source import Cell
from tools.mutants.changes import MAX_IDENTITY, mutants_of, sampled


def solve(body: str, *, above: str = "", first: int = 10) -> Cell:
    """A solve cell whose function has the lines of `body` as its solution."""
    inside = "".join(f"    {line}\n" for line in body.split("\n"))
    source = f"{above}def f(x, y):\n    ### BEGIN SOLUTION\n{inside}    ### END SOLUTION"
    return Cell("solve", "f", "code", source, first - 1, first, "lab.py")


def changes(body: str) -> set[str]:
    """What the mutants of a body do, without where."""
    return {mutant.identity.removeprefix("f: ") for mutant in mutants_of(solve(body))}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x + y", "- return x + y + return x - y"),
        ("return x / y", "- return x / y + return x // y"),
        ("return x // y", "- return x // y + return x / y"),
        ("return x < y", "- return x < y + return x <= y"),
        ("return x >= y", "- return x >= y + return x > y"),
        ("return x == y", "- return x == y + return x != y"),
        ("return 7", "- return 7 + return 0"),
        ("return 7", "- return 7 + return 8"),
        ("return 7", "- return 7 + return 6"),
        ("return 7", "- return 7 + return 14"),
        ("return 2.0", "- return 2.0 + return 1.998"),
        ("return True", "- return True + return False"),
        ("return x and y", "- return x and y + return x or y"),
        ("return x and y", "- return x and y + return y"),
        ("return not x", "- return not x + return x"),
        ("return -x", "- return -x + return x"),
        ("return min(x, y)", "- return min(x, y) + return max(x, y)"),
        ("return math.floor(x)", "- return math.floor(x) + return math.ceil(x)"),
        ("return abs(x)", "- return abs(x) + return x"),
        ("return g(x, y)", "- return g(x, y) + return g(y, x)"),
        ("return x if y else 0", "- return x if y else 0 + return x if not y else 0"),
        ("return x if y else 0", "- return x if y else 0 + return x if True else 0"),
        ("if x:\n    y = 1\nreturn y", "- if x: + if not x:"),
        ("if x:\n    y = 1\nreturn y", "- if x: … + pass"),
        ("y.append(x)\nreturn y", "- y.append(x) + pass"),
        ("y += x\nreturn y", "- y += x + y -= x"),
        ("y += x\nreturn y", "- y += x + return y"),
        ("return [i for i in x if i > y]", "- return [i for i in x if i > y] + return [i for i in x]"),
        ("for i in x:\n    y += i\nreturn y", "- for i in x: … + break"),
        ("return y", "- return y + return"),
    ],
)
def test_each_kind_of_mistake_is_made(body, expected):
    assert expected in changes(body)


def test_every_mutant_is_another_program_that_compiles():
    cell = solve(
        "total = 0\nfor i in range(x):\n    if i % 2 and i < y:\n        total += abs(i - 3) * 2\nreturn total"
    )
    whole = ast.unparse(ast.parse(cell.source))

    found = mutants_of(cell)

    assert len(found) == len({mutant.source for mutant in found}) == len({mutant.identity for mutant in found}) > 30
    assert whole not in {mutant.source for mutant in found}
    for mutant in found:
        compile(mutant.source, "cell", "exec")


def test_what_is_given_stays_as_it_is():
    cell = solve("return x * LIMIT", above="LIMIT = 3\n\n\n")

    assert {15} == {mutant.line for mutant in mutants_of(cell)}
    assert all("LIMIT = 3" in mutant.source for mutant in mutants_of(cell))


def test_text_formats_and_docstrings_are_no_place_for_mistakes():
    assert {'- return f"{x:.3f} of {3}" + return'.replace('"', "'")} == changes(
        '"""Three: 3."""\nreturn f"{x:.3f} of {3}"'
    )


def test_a_statement_whose_name_would_be_missing_is_not_dropped():
    assert not any(one.endswith("+ pass") for one in changes("z = x\nreturn z"))
    assert any(one.endswith("+ pass") for one in changes("y = x\nreturn y"))


def test_identities_survive_moved_lines_and_other_layout():
    one = solve("total = x + y\nreturn total")
    other = solve("# a comment\ntotal = (\n    x + y\n)\nreturn total", above="import math\n\n\n", first=50)

    assert [m.identity for m in mutants_of(one)] == [m.identity for m in mutants_of(other)]
    assert [m.line for m in mutants_of(one)] != [m.line for m in mutants_of(other)]


def test_the_same_change_on_two_lines_has_two_identities():
    found = [mutant.identity for mutant in mutants_of(solve("x += 1\nx += 1\nreturn x"))]

    assert {"f: - x += 1 + x -= 1", "f: - x += 1 + x -= 1 #2"} <= set(found)


def test_a_long_line_is_cut_and_still_told_apart():
    long = " + ".join(f"a_long_name_{i} * 2" for i in range(12))

    found = [mutant.identity for mutant in mutants_of(solve(f"return {long}"))]

    assert len(set(found)) == len(found)
    assert max(map(len, found)) <= MAX_IDENTITY


def test_a_sample_is_always_the_same_and_in_order():
    found = mutants_of(solve("return x * 3 + y * 4 - 5"))

    chosen = sampled(found, 5)

    assert 5 == len(chosen)
    assert chosen == sampled(list(found), 5) == [mutant for mutant in found if mutant in chosen]
    assert found == sampled(found, None) == sampled(found, 1000)
