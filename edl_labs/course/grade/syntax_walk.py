"""Walks through syntax trees that nobody alters, each node's parts looked up once.

An analysis of names goes through each tree some twenty times; finding a node's parts is most of what `ast.walk` takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_PARTS = "_edl_parts"  # the attribute of a node that remembers them


def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """What `ast.iter_child_nodes` gives; the tree must stay as it is from then on.

    >>> [type(part).__name__ for part in children(ast.parse("f(x)").body[0])]
    ['Call']
    """
    known = node.__dict__.get(_PARTS)
    if known is None:
        known = node.__dict__[_PARTS] = tuple(ast.iter_child_nodes(node))
    return known


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """What `ast.walk` gives, in its order; the tree must stay as it is from then on."""
    found = [node]
    for one in found:
        found += children(one)
        yield one
