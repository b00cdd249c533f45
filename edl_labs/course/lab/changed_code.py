"""Replaces a few statements of a solution, and leaves the rest as its author wrote it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from edl_labs.course.lab.source import BEGIN, END
from edl_labs.errors import SourceError

_Block = list[tuple[ast.stmt, str]]


@dataclass(frozen=True)
class Change:
    """Statements of a solution, and what stands in their place; `line` is where an author wrote it."""

    old: str
    new: str
    line: int


@dataclass(frozen=True)
class _Place:
    """Lines `first` to `last` of a solution, which a change replaces."""

    first: int
    last: int
    indent: int
    change: Change


def changed_code(solution: str, changes: Sequence[Change], *, exercise: str, file: str) -> str:
    """The definitions of `solution` that the changes touch, with the changes made; empty without changes.

    Statements are compared as Python, however they are indented and broken into lines. SourceError, with `file` and
    line, where the solution has the old ones nowhere or twice, where two changes meet, or where nothing changes.
    """
    blocks = _blocks(solution)
    places = sorted((_place(blocks, one, exercise, file) for one in changes), key=lambda one: one.first)
    for before, after in pairwise(places):
        if after.first <= before.last:
            why = f"the change at line {before.change.line} also replaces some of them"
            raise _refused(
                after.change, "two changes replace the same lines", file, why, "combine the two changes into one"
            )
    lines, found = solution.split("\n"), []
    for node, _ in blocks[0] if places else ():
        inside = [one for one in places if _first(node) <= one.first <= (node.end_lineno or 0)]
        if inside:
            found.append(_changed(lines, node, inside))
    code = "\n\n\n".join(filter(None, found))
    try:
        ast.parse(code)
    except SyntaxError as error:
        why = f"{error.msg} in {(error.text or '').strip()!r}"
        then = "a block needs a statement: write pass"
        raise _refused(changes[0], "the changed solution is not valid Python", file, why, then) from None
    return code


def _place(blocks: Sequence[_Block], change: Change, exercise: str, file: str) -> _Place:
    old, new = ([ast.dump(node) for node in ast.parse(text).body] for text in (change.old, change.new))
    found = []
    for block in blocks:
        dumps = [dump for _, dump in block]
        found += [block[i : i + len(old)] for i in range(len(block)) if dumps[i : i + len(old)] == old]
    if len(found) != 1:
        times = f"{len(found)} times" if found else "nowhere"
        why = f"a change must replace whole statements that occur exactly once in the cell; these occur {times}"
        then = "include more of the statements around them" if found else "copy whole statements from the solution"
        raise _refused(change, f"the solution of {exercise} contains these lines {times}", file, why, then)
    if old == new:
        raise _refused(
            change, "nothing changes", file, "both sides are the same Python code", "write the mistake below # %% by"
        )
    nodes = [node for node, _ in found[0]]
    return _Place(_first(nodes[0]), nodes[-1].end_lineno or 0, nodes[0].col_offset, change)


def _refused(change: Change, what: str, file: str, why: str, then: str) -> SourceError:
    return SourceError(what, file=file, line=change.line, why=why, next=then)


@lru_cache(maxsize=32)  # one exercise after the other, and each has a dozen mistakes
def _blocks(solution: str) -> list[_Block]:
    """Every list of statements in the text, however deep, with the dump of each; the text's own is first."""
    return [
        [(one, ast.dump(one)) for one in value]
        for node in ast.walk(ast.parse(solution))
        for _, value in ast.iter_fields(node)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt)
    ]


def _first(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _changed(lines: list[str], node: ast.stmt, places: Sequence[_Place]) -> str:
    """The text of one definition with its changes made, and without the marks of the solution."""
    at, kept = _first(node), []
    for place in places:
        kept += lines[at - 1 : place.first - 1] + _indented(place.change.new, place.indent)
        at = place.last + 1
    kept += lines[at - 1 : node.end_lineno]
    return "\n".join(line for line in kept if line.strip() not in (BEGIN, END)).strip("\n")


def _indented(text: str, indent: int) -> list[str]:
    """The lines further to the right, but for those inside a text of many lines."""
    inside = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno:
            inside |= set(range(node.lineno + 1, node.end_lineno + 1))
    lines = text.split("\n") if text else []
    return [line if number in inside or not line else " " * indent + line for number, line in enumerate(lines, start=1)]
