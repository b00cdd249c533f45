"""The walk of the analysis goes where `ast.walk` goes, in its order."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from edl_labs.course.grade import needed_cells, syntax_walk


@pytest.mark.parametrize("module", [needed_cells, syntax_walk])
def test_it_goes_through_the_same_nodes_in_the_same_order_each_time(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    expected = list(ast.walk(tree))

    assert expected == list(syntax_walk.walk(tree)) == list(syntax_walk.walk(tree))
    assert all(list(ast.iter_child_nodes(node)) == list(syntax_walk.children(node)) for node in expected)
    assert ast.dump(tree) == ast.dump(ast.parse(Path(module.__file__).read_text(encoding="utf-8")))
